/* SPDX-License-Identifier: Apache-2.0 */

/* Put -- how do the words of a report get to where they belong? */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/log.h"
#include "report/inner.h"

#define PATIENCE_MS 2000

/* Two that are written at once, one after a signal and one at the end, would be mixed. */
static struct sp_lock lock = SP_LOCK_INIT(SP_RANK_REPORT);

/* A pipe that nobody has opened is an error, and not waited for. Return: 0 or -errno. */
static int write_file(const char *path, const struct sp_text *words)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
        int result;

        if (fd < 0)
                return -errno;
        result = sp_text_write(words, fd);
        if (close(fd) < 0 && result == 0)
                result = -errno;
        return result;
}

/* Whoever holds the lock may be a thread that no longer runs. */
static int write_file_alone(const char *path, const struct sp_text *words)
{
        bool is_alone = sp_lock_take_bounded(&lock, PATIENCE_MS);
        int result = write_file(path, words);

        if (is_alone)
                sp_lock_drop(&lock);
        return result;
}

void sp_report_put(const char *path, const struct sp_text *words)
{
        int result = 0;

        if (strcmp(path, "-") != 0) {
                result = write_file_alone(path, words);
                if (result == 0)
                        return;
                errno = -result;
                sp_log(SP_LOG_ERROR, "the report cannot be written to %s: %m", path);
        }
        (void)sp_text_write(words, STDERR_FILENO);
}
