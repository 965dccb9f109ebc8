/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_LOG_H
#define SP_LOG_H

/*
 * Log -- a line for the person at the terminal
 *
 * Messages go to stderr, one write() each, with "streampool: " in front, and
 * are cut at SP_LOG_MAX bytes. Nothing is allocated, no lock is taken, no stdio
 * buffer is touched and errno is kept, so a message may be written anywhere in
 * a stranger's process. STREAMPOOL_LOG says up to which level; before the
 * environment is read only errors pass.
 */

#define SP_LOG_MAX 512

enum sp_log_level { SP_LOG_ERROR, SP_LOG_WARNING, SP_LOG_INFO, SP_LOG_DEBUG };

void sp_log(enum sp_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
