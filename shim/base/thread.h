/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_THREAD_H
#define SP_THREAD_H

/*
 * Thread -- what is kept for each thread of the program, and what is done when one ends
 *
 * Whoever keeps something for a thread says so while that thread runs, and is
 * called in it when it ends; what was said last is called first. What is kept in a
 * seat is never freed, so that a list of seats needs no lock: that of a thread that
 * has ended is the next one's.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/** sp_thread_at_end() - @end is called with @argument when the calling thread ends. Return: false
 * if it will not be, because the host has no memory. */
bool sp_thread_at_end(void (*end)(void *argument), void *argument);

/** sp_thread_nap() - some 20 us, for others that have to be let run; no end for a thread that was
 * cancelled, and no new errno. */
void sp_thread_nap(void);

/**
 * sp_thread_is_in_handler() - may this thread be in a handler of a signal?
 *
 * A handler runs with its own signal blocked (unless it was installed with SA_NODEFER or
 * SA_RESETHAND, which is not seen). Takes no heap, which is what a handler may not have.
 */
bool sp_thread_is_in_handler(void);

/* The first member of what is kept. Atomic: is_taken. Written once: next. */
struct sp_seat {
        struct sp_seat *next;
        atomic_bool is_taken;
};

/**
 * sp_seat_take() - a seat for the calling thread
 * @seats: all there are; a new one is added
 * @size:  of what is kept, a multiple of @align
 * @made:  return argument: it is new, and all zero, and others may see it already
 *
 * Return: NULL if the host has no memory.
 */
struct sp_seat *sp_seat_take(_Atomic(struct sp_seat *) *seats, size_t align, size_t size,
                             bool *made);

/** sp_seat_leave() - it is the next thread's. */
void sp_seat_leave(struct sp_seat *seat);

#endif
