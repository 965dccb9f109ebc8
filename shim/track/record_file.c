/* SPDX-License-Identifier: Apache-2.0 */

/* Record, file -- where a recording is written, piece by piece */

#define _GNU_SOURCE

#include "track/record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"
#include "base/name.h"
#include "base/write.h"

/* A pipe that nobody has opened is an error, and not waited for. */
#define HOW (O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)

static const char *why(int result)
{
        if (result == -ESTALE)
                return "somebody else has changed it";
        return result == -ESPIPE ? "not a file" : strerror(-result);
}

/* By statx(), as fstat() of new C libraries is not in old ones. */
static int look(int fd, struct statx *now)
{
        return statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, now) < 0 ? -errno : 0;
}

static uint64_t device_of(const struct statx *now)
{
        return (uint64_t)now->stx_dev_major << 32 | now->stx_dev_minor;
}

static bool is_same(const struct sp_record_file *file, const struct statx *now)
{
        return device_of(now) == file->device && now->stx_ino == file->inode &&
               now->stx_size == file->bytes;
}

static int write_piece(const struct sp_record_file *file, int fd, const char *bytes, size_t length)
{
        struct statx now;
        int result = look(fd, &now);

        if (result < 0)
                return result;
        if (!is_same(file, &now))
                return -ESTALE;
        result = sp_write(fd, bytes, length);
        /* No half lines: what was there before is a recording still. */
        if (result < 0 && ftruncate(fd, (off_t)file->bytes) < 0)
                return -errno;
        return result;
}

static int open_and_write(const struct sp_record_file *file, const char *bytes, size_t length)
{
        int fd = open(file->path, HOW);
        int result;

        if (fd < 0)
                return -errno;
        result = write_piece(file, fd, bytes, length);
        if (close(fd) < 0 && result == 0)
                result = -errno;
        return result;
}

bool sp_record_file_add(struct sp_record_file *file, const char *bytes, size_t length)
{
        int result, cancel, saved = errno;

        if (file->has_ended)
                return false;
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
        result = open_and_write(file, bytes, length);
        if (result == 0) {
                file->bytes += length;
        } else {
                file->has_ended = true;
                sp_log(SP_LOG_ERROR, "STREAMPOOL_RECORD: it ends after %llu bytes: %s: %s",
                       (unsigned long long)file->bytes, why(result), file->path);
        }
        pthread_setcancelstate(cancel, NULL);
        errno = saved;
        return result == 0;
}

/* The whole name, from the root. */
static int name_file(struct sp_record_file *file, const char *pattern)
{
        char host[256] = "";
        struct sp_name name = {.process = (long)getpid(), .host = host, .rank = sp_config()->rank};
        struct sp_text path;

        if (gethostname(host, sizeof(host) - 1) < 0)
                strcpy(host, "unknown");
        sp_text_init(&path, file->path, sizeof(file->path));
        if (*pattern != '/') {
                if (!getcwd(file->path, PATH_MAX))
                        return -errno;
                path.length = strlen(file->path);
                sp_text_add(&path, "/");
        }
        sp_name_add(&path, pattern, &name);
        return path.cut ? -ENAMETOOLONG : 0;
}

/* Emptied only if it is a file: the name can be that of anything. */
static int empty(struct sp_record_file *file, int fd)
{
        struct statx made;
        int result = look(fd, &made);

        if (result < 0)
                return result;
        if (!S_ISREG(made.stx_mode))
                return -ESPIPE;
        file->device = device_of(&made);
        file->inode = made.stx_ino;
        return ftruncate(fd, 0) < 0 ? -errno : 0;
}

static int make(struct sp_record_file *file)
{
        int fd = open(file->path, HOW | O_CREAT, 0666);
        int result;

        if (fd < 0)
                return -errno;
        result = empty(file, fd);
        if (close(fd) < 0 && result == 0)
                result = -errno;
        return result;
}

bool sp_record_file_make(struct sp_record_file *file, const char *pattern)
{
        int saved = errno, result;

        *file = (struct sp_record_file){.bytes = 0};
        result = name_file(file, pattern);
        if (result == 0)
                result = make(file);
        if (result < 0)
                sp_log(SP_LOG_ERROR, "STREAMPOOL_RECORD: nothing is recorded: %s: %s", why(result),
                       *file->path ? file->path : pattern);
        errno = saved;
        return result == 0;
}
