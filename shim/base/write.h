/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_WRITE_H
#define SP_WRITE_H

/* Write -- how do words get out without anything happening to the program? */

#include <stddef.h>

/**
 * sp_write() - all of it, to a descriptor of any kind
 *
 * A pipe that nobody reads any more and a file that may not grow would end the process
 * by a signal; here they are errors. What does not wait (O_NONBLOCK) is waited for,
 * while others read, and for a second at most. Keeps errno.
 *
 * Return: 0 or -errno.
 */
int sp_write(int fd, const char *bytes, size_t length);

#endif
