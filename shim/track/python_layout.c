/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Python layout -- where does this CPython keep what a frame consists of?
 *
 * A layout is the same in all releases of a minor version: extensions are built
 * against one of them and run with all. The numbers come from cpython/pystate.h,
 * cpython/code.h, cpython/unicodeobject.h, internal/pycore_frame.h and, before 3.11,
 * cpython/frameobject.h of each version. Since 3.13 it also tells them itself, in
 * the first bytes of _PyRuntime (_Py_DebugOffsets, internal/pycore_debug_offsets.h or,
 * in 3.13, pycore_runtime.h), and is not believed if the two differ.
 */

#include "track/python_layout.h"

#include <stdbool.h>
#include <string.h>

static const struct sp_python_layout layouts[] = {
        {
                .first_minor = 8,
                .last_minor = 9,
                .lines = SP_PYTHON_LINES_STEPS,
                .place = SP_PYTHON_AT_BYTES,
                .thread_root = 24,
                .root_frame = -1,
                .frame_previous = 24,
                .frame_code = 32,
                .frame_at = 104,
                .frame_bytes = 112,
                .code_first_line = 40,
                .code_file = 104,
                .code_function = 112,
                .code_lines = 120,
                .code_bytes = 128,
                .text_ascii = 48,
                .text_compact = 72,
        },
        {
                .first_minor = 10,
                .last_minor = 10,
                .lines = SP_PYTHON_LINES_RANGES,
                .place = SP_PYTHON_AT_UNITS,
                .thread_root = 24,
                .root_frame = -1,
                .frame_previous = 24,
                .frame_code = 32,
                .frame_at = 96,
                .frame_bytes = 104,
                .code_first_line = 40,
                .code_file = 104,
                .code_function = 112,
                .code_lines = 120,
                .code_bytes = 128,
                .text_ascii = 48,
                .text_compact = 72,
        },
        {
                .first_minor = 11,
                .last_minor = 11,
                .lines = SP_PYTHON_LINES_LOCATIONS,
                .place = SP_PYTHON_AT_POINTER,
                .thread_root = 56,
                .root_frame = 8,
                .frame_previous = 48,
                .frame_code = 32,
                .frame_at = 56,
                .frame_owner = 69,
                .frame_bytes = 72,
                .code_first_line = 72,
                .code_file = 112,
                .code_function = 128,
                .code_lines = 136,
                .code_first_traceable = 168,
                .code_start = 184,
                .code_bytes = 184,
                .text_ascii = 48,
                .text_compact = 72,
        },
        {
                .first_minor = 12,
                .last_minor = 12,
                .lines = SP_PYTHON_LINES_LOCATIONS,
                .place = SP_PYTHON_AT_POINTER,
                .thread_root = 56,
                .root_frame = 0,
                .frame_previous = 8,
                .frame_code = 0,
                .frame_at = 56,
                .frame_owner = 70,
                .frame_bytes = 72,
                .code_first_line = 68,
                .code_file = 112,
                .code_function = 128,
                .code_lines = 136,
                .code_first_traceable = 176,
                .code_start = 192,
                .code_bytes = 192,
                .text_ascii = 40,
                .text_compact = 56,
        },
        {
                .first_minor = 13,
                .last_minor = 13,
                .lines = SP_PYTHON_LINES_LOCATIONS,
                .place = SP_PYTHON_AT_POINTER,
                .thread_root = 72,
                .root_frame = -1,
                .frame_previous = 8,
                .frame_code = 0,
                .frame_at = 56,
                .frame_owner = 70,
                .frame_bytes = 72,
                .code_first_line = 68,
                .code_file = 112,
                .code_function = 128,
                .code_lines = 136,
                .code_first_traceable = 184,
                .code_start = 200,
                .code_bytes = 200,
                .text_ascii = 40,
                .text_compact = 56,
        },
        {
                .first_minor = 14,
                .last_minor = 14,
                .lines = SP_PYTHON_LINES_LOCATIONS,
                .place = SP_PYTHON_AT_POINTER,
                .thread_root = 72,
                .root_frame = -1,
                .frame_previous = 8,
                .frame_code = 0,
                .frame_at = 56,
                .frame_owner = 74,
                .frame_bytes = 80,
                .frame_code_tag = 1, /* Py_TAG_REFCNT: the code object is immortal */
                .code_first_line = 68,
                .code_file = 112,
                .code_function = 128,
                .code_lines = 136,
                .code_first_traceable = 192,
                .code_start = 208,
                .code_bytes = 208,
                .text_ascii = 40,
                .text_compact = 56,
        },
};

/* what an interpreter says of itself */

static bool is_digit(char letter)
{
        return letter >= '0' && letter <= '9';
}

static const char *skip_number(const char *at, unsigned int *number)
{
        for (*number = 0; is_digit(*at) && *number < 1000; at++)
                *number = *number * 10 + (unsigned int)(*at - '0');
        return at;
}

/*
 * "3.11.7 (main, ...) [GCC 12.2.0]". Alpha and beta releases have layouts of their own, and others
 * that speak Python name themselves in the brackets (Graal, PyPy, Pyston) or behind a plus
 * (Cinder).
 */
static bool is_cpython(const char *version, unsigned int *minor)
{
        unsigned int rest;

        if (strncmp(version, "3.", 2) != 0)
                return false;
        version = skip_number(version + 2, minor);
        if (*version++ != '.' || !is_digit(*version))
                return false;
        version = skip_number(version, &rest);
        if (strncmp(version, "rc", 2) == 0)
                version = skip_number(version + 2, &rest);
        if (*version == '+')
                version++;
        return *version == ' ' && (strstr(version, "[GCC ") || strstr(version, "[Clang "));
}

/* The order of the table differs from version to version, so each has a column. */
enum { OF_13, OF_14, COLUMNS };

struct told {
        uint8_t word[COLUMNS]; /* of _Py_DebugOffsets, counted in uint64_t */
        uint64_t value;
};

static bool agrees(const struct sp_python_layout *layout, unsigned int minor, const void *runtime)
{
        const struct told told[] = {
                {{2, 2}, 0}, /* free_threaded */
                {{23, 26}, layout->thread_root},
                {{29, 32}, layout->frame_previous},
                {{30, 33}, layout->frame_code},
                {{31, 34}, layout->frame_at},
                {{33, 36}, layout->frame_owner},
                {{35, 40}, layout->code_file},
                {{37, 42}, layout->code_function},
                {{38, 43}, layout->code_lines},
                {{39, 44}, layout->code_first_line},
                {{43, 48}, layout->code_start},
                {{45, 51}, SP_PYTHON_TYPE},
                {{65, 75}, SP_PYTHON_SIZE},
                {{66, 76}, SP_PYTHON_BYTES},
                {{68, 78}, SP_PYTHON_TEXT_STATE},
                {{69, 79}, SP_PYTHON_SIZE},
                {{70, 80}, layout->text_ascii},
        };
        const uint64_t *words = runtime;
        int column = minor == 13 ? OF_13 : OF_14;

        if (!runtime || memcmp(runtime, "xdebugpy", 8) != 0)
                return false;
        for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
                if (words[told[i].word[column]] != told[i].value)
                        return false;
        }
        return true;
}

const struct sp_python_layout *sp_python_layout_find(const char *version, const void *runtime)
{
        unsigned int minor;

        if (!is_cpython(version, &minor))
                return NULL;
        for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
                const struct sp_python_layout *layout = &layouts[i];

                if (minor >= layout->first_minor && minor <= layout->last_minor)
                        return minor < 13 || agrees(layout, minor, runtime) ? layout : NULL;
        }
        return NULL;
}

/* lines */

/* Pairs: so many bytes of instructions, then so many lines on. (Objects/lnotab_notes.txt of 3.9) */
static int64_t step_line(const unsigned char *table, size_t size, int64_t line, int32_t at)
{
        int64_t reached = 0;

        for (size_t i = 0; i + 1 < size; i += 2) {
                reached += table[i];
                if (reached > at)
                        break;
                line += (int8_t)table[i + 1];
        }
        return line;
}

/* Pairs: first so many lines on, -128 for none, and that for so many bytes. (the same of 3.10) */
static int64_t range_line(const unsigned char *table, size_t size, int64_t line, int32_t at)
{
        int64_t end = 0;

        for (size_t i = 0; i + 1 < size; i += 2) {
                int8_t delta = (int8_t)table[i + 1];

                end += table[i];
                line += delta == -128 ? 0 : delta;
                if (end > at)
                        return delta == -128 ? 0 : line;
        }
        return 0;
}

/* Six bits a byte, the lowest ones first, and bit 6 if there are more; bit 0 of the number is its
 * sign. */
static int64_t signed_number(const unsigned char *table, size_t size, size_t i)
{
        uint64_t number = 0;

        for (unsigned int shift = 0; i < size && shift < 36; i++, shift += 6) {
                number |= (uint64_t)(table[i] & 63) << shift;
                if (!(table[i] & 64))
                        break;
        }
        return number & 1 ? -(int64_t)(number >> 1) : (int64_t)(number >> 1);
}

/*
 * Entries, which begin with the only byte of theirs that has its highest bit: a kind, and the
 * number of instructions less one. (Objects/locations.md of 3.11)
 */
static int64_t location_line(const unsigned char *table, size_t size, int64_t line, int32_t at)
{
        int64_t end = 0;
        size_t i = 0;

        while (i < size) {
                unsigned int kind = (table[i] >> 3) & 15;

                end += 2 * ((table[i] & 7) + 1);
                if (kind == 13 || kind == 14)
                        line += signed_number(table, size, i + 1);
                else if (kind >= 10 && kind <= 12)
                        line += kind - 10;
                if (end > at)
                        return kind == 15 ? 0 : line;
                for (i++; i < size && !(table[i] & 128);)
                        i++;
        }
        return 0;
}

unsigned int sp_python_line(enum sp_python_lines kind, const unsigned char *table, size_t size,
                            int32_t first_line, int32_t at)
{
        int64_t line = first_line;

        if (at < 0)
                line = first_line;
        else if (kind == SP_PYTHON_LINES_STEPS)
                line = step_line(table, size, line, at);
        else if (kind == SP_PYTHON_LINES_RANGES)
                line = range_line(table, size, line, at);
        else
                line = location_line(table, size, line, at);
        return line > 0 && line <= INT32_MAX ? (unsigned int)line : 0;
}
