/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log -- a line for the person at the terminal
 *
 * The line is made on the stack and handed to the kernel in one piece, so lines
 * of several threads do not mix. A write that fails is forgotten: a closed
 * stderr is no reason to disturb the program.
 */

#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/write.h"

static const char prefix[] = "streampool: ";

void sp_log(enum sp_log_level level, const char *format, ...)
{
        char line[SP_LOG_MAX];
        size_t used = sizeof(prefix) - 1;
        int saved = errno;
        va_list arguments;
        int added;

        if (level > sp_config()->log)
                return;
        memcpy(line, prefix, used);
        va_start(arguments, format);
        added = vsnprintf(line + used, sizeof(line) - used, format, arguments);
        va_end(arguments);
        if (added > 0) {
                used += (size_t)added;
                /* The last byte is for the end of the line, also of one that was cut. */
                if (used > sizeof(line) - 1)
                        used = sizeof(line) - 1;
                line[used++] = '\n';
                (void)sp_write(STDERR_FILENO, line, used);
        }
        errno = saved;
}
