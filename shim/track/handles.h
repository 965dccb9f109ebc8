/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_HANDLES_H
#define SP_TRACK_HANDLES_H

/*
 * Handles -- which of them are there?
 *
 * A set of numbers that are not 0, on pages of its own: whoever asks may be on the
 * way from the heap. The caller serialises all calls.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero is the empty set. */
struct sp_handles {
        uint64_t *slot; /* NULL before the first; 0 is a free one */
        size_t slots;   /* a power of two, or 0 */
        size_t count;   /* at most half of them */
};

bool sp_handles_has(const struct sp_handles *handles, uint64_t handle);

/** sp_handles_add() - false, and nothing is added, if the host has no memory. */
bool sp_handles_add(struct sp_handles *handles, uint64_t handle);

/** sp_handles_remove() - was it there? */
bool sp_handles_remove(struct sp_handles *handles, uint64_t handle);

#endif
