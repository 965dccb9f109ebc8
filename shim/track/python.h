/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_PYTHON_H
#define SP_PYTHON_H

/*
 * Python -- which lines of Python is the calling thread in?
 *
 * Knows CPython 3.8 to 3.14, release builds with the interpreter lock (GIL). In any
 * other process, thread or build there are no frames, and nothing else happens. No
 * lock is taken, the GIL included, nothing is allocated, and nothing is called that
 * runs Python.
 *
 * Not seen: threads whose state was made in another thread, in versions before 3.12.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SP_PYTHON_MAX 64

/* Longest name, in bytes, of those that are not plain ASCII. */
#define SP_PYTHON_FILE_MAX     512
#define SP_PYTHON_FUNCTION_MAX 160

/* What tells one place from another; compared as bytes, and without padding. */
struct sp_python_frame {
        const void *code;
        int32_t at; /* bytes into the instructions */
        int32_t first_line;
        const void *file; /* the string object: with the line, tells a later code object at the
                             same address from this one */
};

/* Where the code of an interpreter is, of any version. */
struct sp_python_code {
        uintptr_t begin;
        size_t size; /* 0: there is none, or one that is part of a program */
};

/** sp_python_code() - looks for it as sp_python_take() does. */
struct sp_python_code sp_python_code(void);

/** sp_python_start() - look for an interpreter, now and, while there is none, with later calls of
 * sp_python_take(), ten times a second at most. */
void sp_python_start(void);

/**
 * sp_python_take() - the frames of the calling thread, innermost first
 * @most: at most SP_PYTHON_MAX
 *
 * From any thread, with the GIL or without, but not from a signal handler. Keeps errno.
 *
 * Return: how many; 0 if the thread runs no Python, or the interpreter is at its end.
 */
unsigned int sp_python_take(struct sp_python_frame *frame, unsigned int most);

/*
 * Borrowed, not terminated, UTF-8; valid until the program's call returns, and as long as this
 * structure stays where it is.
 */
struct sp_python_words {
        const char *file, *function;
        size_t file_length, function_length;
        unsigned int line; /* 0: this instruction belongs to no line */
        char file_spelled[SP_PYTHON_FILE_MAX];
        char function_spelled[SP_PYTHON_FUNCTION_MAX];
};

/**
 * sp_python_words() - a frame in words
 *
 * Only in the call in which the frame was taken, and in the same thread. The function's name is
 * the qualified one from 3.11 on. Names that are not ASCII are spelled out in the structure, and
 * cut to its size.
 *
 * Return: false, and nothing is written, if the interpreter is at its end or is not understood.
 */
bool sp_python_words(const struct sp_python_frame *frame, struct sp_python_words *words);

#endif
