/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_BOUNDS_H
#define SP_TRACK_BOUNDS_H

/* Bounds -- how far does the stack of this thread reach? */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sp_bounds {
        uintptr_t bottom, top; /* 0 and 0: not known */
};

/** sp_bounds_find() - those of the stack that the calling thread was given. Takes heap, and in the
 * first thread a file. */
struct sp_bounds sp_bounds_find(void);

/** sp_bounds_have_room() - are there so many bytes below the caller's frame? Not on a stack that is
 * not the thread's own. */
bool sp_bounds_have_room(size_t bytes);

#endif
