/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_PYTHON_LAYOUT_H
#define SP_PYTHON_LAYOUT_H

/*
 * Python layout -- where does this CPython keep what a frame consists of?
 *
 * Pure: a version and bytes go in, places and line numbers come out.
 */

#include <stddef.h>
#include <stdint.h>

/* What all known versions have in common; a test compares it with each version's headers. */
enum {
        SP_PYTHON_TYPE = 8,        /* PyObject.ob_type */
        SP_PYTHON_SIZE = 16,       /* PyVarObject.ob_size, PyASCIIObject.length */
        SP_PYTHON_TEXT_STATE = 32, /* PyASCIIObject.state */
        SP_PYTHON_BYTES = 32,      /* PyBytesObject.ob_sval */
        SP_PYTHON_TEXT_HEAD = 40,
};

enum sp_python_lines {
        SP_PYTHON_LINES_STEPS,     /* co_lnotab */
        SP_PYTHON_LINES_RANGES,    /* co_linetable of 3.10 */
        SP_PYTHON_LINES_LOCATIONS, /* co_linetable since then */
};

enum sp_python_place {
        SP_PYTHON_AT_BYTES,   /* the frame counts in bytes */
        SP_PYTHON_AT_UNITS,   /* in instructions of two bytes */
        SP_PYTHON_AT_POINTER, /* it has an address inside the code object */
};

/* Offsets. 0 is none, but for frame_code and root_frame, which are always there if they can be. */
struct sp_python_layout {
        unsigned int first_minor, last_minor; /* of CPython 3 */
        enum sp_python_lines lines;
        enum sp_python_place place;

        uint16_t thread_root; /* the innermost frame, or what holds it */
        int16_t root_frame;   /* in what holds it; -1: thread_root is the frame */

        uint16_t frame_previous, frame_code, frame_at, frame_owner;
        uint16_t frame_bytes;    /* all of the above are in these */
        uint16_t frame_code_tag; /* bits of frame_code that are no part of the address */

        uint16_t code_first_line, code_file, code_function, code_lines;
        uint16_t code_first_traceable, code_start;
        uint16_t code_bytes;

        uint16_t text_ascii, text_compact; /* where the characters begin */
};

/**
 * sp_python_layout_find() - of the interpreter that says @version
 * @version: what Py_GetVersion() says
 * @runtime: its _PyRuntime; may be NULL
 *
 * Return: NULL if this is not a CPython we know, or if its own table of offsets contradicts.
 */
const struct sp_python_layout *sp_python_layout_find(const char *version, const void *runtime);

/** sp_python_line() - the line of the instruction at @at. Return: 0 if it belongs to none. */
unsigned int sp_python_line(enum sp_python_lines kind, const unsigned char *table, size_t size,
                            int32_t first_line, int32_t at);

#endif
