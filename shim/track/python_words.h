/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_PYTHON_WORDS_H
#define SP_PYTHON_WORDS_H

/*
 * Python words -- the names and the line of a place in a code object
 */

#include <stdbool.h>

#include "track/python.h"
#include "track/python_layout.h"
#include "track/python_sight.h"

/* Addresses of type objects, by which objects are known. */
struct sp_python_types {
        uintptr_t code, text, bytes;
};

/** sp_python_is_sound() - does a code object have the names and the table that we would read? */
bool sp_python_is_sound(const struct sp_python_layout *layout, const struct sp_python_types *types,
                        struct sp_sight *sight, const struct sp_python_frame *frame);

/** sp_python_spell() - sp_python_words(), of an interpreter that is understood */
bool sp_python_spell(const struct sp_python_layout *layout, const struct sp_python_types *types,
                     const struct sp_python_frame *frame, struct sp_python_words *words);

#endif
