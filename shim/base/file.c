/* SPDX-License-Identifier: Apache-2.0 */

/* File -- the text of a file that an option names */

#define _GNU_SOURCE

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Return: NULL, or why not. */
static const char *read_all(int fd, char *text, size_t *length)
{
        size_t done = 0;

        for (;;) {
                ssize_t n = read(fd, text + done, SP_FILE_MAX + 1 - done);

                if (n == 0)
                        break;
                if (n > 0)
                        done += (size_t)n;
                else if (errno != EINTR)
                        return strerror(errno);
                if (done > SP_FILE_MAX)
                        return "it is larger than 1 MiB";
        }
        text[done] = '\0';
        *length = done;
        return NULL;
}

/* By lseek(), as fstat() of new C libraries is not in old ones. */
const char *sp_file_read(const char *path, char *text, size_t *length)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        const char *why;

        if (fd < 0)
                return strerror(errno);
        why = lseek(fd, 0, SEEK_CUR) < 0 ? "it is no regular file" : read_all(fd, text, length);
        close(fd);
        return why;
}
