/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_FILE_H
#define SP_FILE_H

/*
 * File -- the text of a file that an option names
 */

#include <stddef.h>

/* Of the size of a thousand long rules; a larger file is something else, named by mistake. */
#define SP_FILE_MAX (1 << 20)

/**
 * sp_file_read() - all of a file
 * @text:   return argument, SP_FILE_MAX bytes and one more for a NUL; written in any case
 * @length: return argument
 *
 * A pipe is refused: its writer may be waiting for the program.
 *
 * Return: NULL, or why not.
 */
const char *sp_file_read(const char *path, char *text, size_t *length);

#endif
