/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_FILE_H
#define SP_FILE_H

/*
 * File -- the text of a file that an option names
 */

#include <stddef.h>

/* Bytes: a thousand long rules take less, and what is larger was named by mistake. What is said
 * then has the number in words. */
#define SP_FILE_MAX (1 << 20)

/**
 * sp_file_read() - all of a file
 * @text:   return argument, SP_FILE_MAX bytes and one more for a NUL; may be written in part where
 *          the file cannot be read to its end
 * @length: return argument; may be more than strlen(), as a file may have any bytes
 *
 * A pipe is refused: its writer may be waiting for the program.
 *
 * Return: NULL, or why not, in words that are kept for ever or until strerror() is next called.
 */
const char *sp_file_read(const char *path, char *text, size_t *length);

#endif
