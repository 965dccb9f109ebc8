/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_STACK_H
#define SP_TRACK_STACK_H

/*
 * Stack -- the calls that led to a place in the program's code
 *
 * A place (sp_caller) is the return address of the program's call, or, where
 * STREAMPOOL_STACK asks for more, a stack: that address and the frames above
 * it. Equal stacks are one object that is never freed, so a place is one word
 * either way, is kept with a block as before, and two places are the same when
 * the words are.
 *
 * Where no frames of C are kept, and the program's call came through NVIDIA's runtime
 * library (track/runtime.h), the place is where that was called from.
 *
 * A thread that allocates in a loop is found again by what lies on its stack: the
 * return addresses of the last time are looked at where they were, and no table
 * of the unwinder's is read.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/life.h"
#include "base/parse.h"
#include "track/python.h"

/* A Python frame, in words; never freed. */
struct sp_stack_line {
        const char *file;
        const char *function;
        unsigned int line;
};

/* Written once, before others see it. */
struct sp_stack {
        const void *caller; /* of the driver's function */
        uint32_t hash;
        uint16_t natives; /* return addresses above @caller, innermost first */
        uint16_t pythons; /* frames of Python, innermost first */
        const void *const *native;
        const struct sp_python_frame *python;    /* what they are known by */
        const struct sp_stack_line *const *line; /* what they are called */
        const char *range;                       /* track/ranges.h; NULL if there is none */
};

/** sp_stack_start() - at start, by what the option says; false if the host has no memory for it. */
bool sp_stack_start(const struct sp_frames *wanted);

/* Atomic: the addresses that are called from when a stack is taken; none, some or all. Two
 * that do not belong together cost a stack, or its frames, once. */
extern _Atomic(uintptr_t) sp_stack_from, sp_stack_size;

/** sp_stack_is_kept() - is sp_stack_take() to be asked for the place of a call from @caller? */
static inline bool sp_stack_is_kept(const void *caller)
{
        uintptr_t from = atomic_load_explicit(&sp_stack_from, memory_order_relaxed);

        return (uintptr_t)caller - from <
               atomic_load_explicit(&sp_stack_size, memory_order_relaxed);
}

/** sp_stack_keep() - it is for callers from @from on, unless it is for all already. */
void sp_stack_keep(uintptr_t from, uintptr_t size);

/** sp_stack_has_ranges() - places have ranges from now on (track/ranges.h); false if the host has
 * no memory for it. */
bool sp_stack_has_ranges(void);

/** sp_stack_text() - a copy that is kept for ever, of the beginning if it is long; equal texts are
 * one while there is room. Return: NULL if there is none. */
const char *sp_stack_text(const char *text);

/** sp_stack_take() - where this thread is, on the way to a function that was called from @caller,
 * which must be a function that called this one, or the caller of one. Takes no lock unless the
 * stack is new, and must be called with none. Return: a place; @caller alone if there is no room.
 */
const void *sp_stack_take(const void *caller);

/** sp_stack_of() - the stack that a place is; NULL if it is an address. */
const struct sp_stack *sp_stack_of(const void *place);

/** sp_stack_address() - the return address of the program's call. */
static inline const void *sp_stack_address(const void *place)
{
        const struct sp_stack *stack = sp_stack_of(place);

        return stack ? stack->caller : place;
}

#endif
