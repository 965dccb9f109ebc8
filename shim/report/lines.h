/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_LINES_H
#define SP_LINES_H

/*
 * Lines -- which function, source file and line is this address of?
 *
 * Asks libdw of elfutils, which is loaded when the first session is opened and
 * stays loaded: the shim needs nothing but the C library. Only files of this
 * machine are read; no server for debug information is asked, whatever
 * DEBUGINFOD_URLS says.
 *
 * Everything here allocates from the heap and opens files. It belongs into a
 * report that is written by an ordinary call or at an ordinary end, and never
 * into a signal handler. A session is used by one thread at a time.
 */

#include <stddef.h>

/* "" and 0 where something is not known. What is too long ends in "...". */
struct sp_line {
        char function[256]; /* as it is written in C++ */
        char file[512];
        unsigned int line;
};

struct sp_lines;

/** sp_lines_open() - a session, of what is loaded now; NULL if libdw cannot be had. */
struct sp_lines *sp_lines_open(void);

/**
 * sp_lines_at() - the functions that were inlined into each other at @address
 * @address: of the last byte of a call, which is its return address - 1
 * @line:    return argument, the innermost first; each but the first with the
 *           line at which the one before it was called
 * @most:    entries of @line
 *
 * The outermost, which is the one the linker knows, is left out if @most is too small.
 *
 * A session that has taken some seconds in all knows nothing any more, and none
 * knows anything while memory is short: a report must not hold up the end of a
 * program, and libdw, short of memory, would change it.
 *
 * Return: entries of @line that hold something; 0 if nothing is known, as of a library that is
 * gone.
 */
unsigned int sp_lines_at(struct sp_lines *lines, const void *address, struct sp_line *line,
                         unsigned int most);

/** sp_lines_close() - NULL is fine. */
void sp_lines_close(struct sp_lines *lines);

/**
 * sp_demangle() - a name of C++ as it was written
 *
 * With the help of libstdc++.so.6 if that is in the process or can be loaded. Any
 * other name, also one of Rust, is copied as it is.
 */
void sp_demangle(const char *symbol, char *text, size_t size);

#endif
