/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEASURE_H
#define MEASURE_H

/*
 * Measure -- how long, how evenly, and how many instructions
 *
 * A sample is the time of a batch of operations divided by their number, so
 * that reading the clock, some 30 ns, does not drown what takes 10. Tails need
 * samples of one operation; there the cost of the clock is taken off.
 */

#include <stddef.h>
#include <stdint.h>

struct samples {
        double *ns; /* an operation, one a batch */
        size_t count;
        size_t room;
};

/* The monotonic clock in nanoseconds. */
uint64_t measure_now(void);

/** measure_clock() - what reading it once costs, in nanoseconds: the median of many. */
uint64_t measure_clock(void);

/** samples_add() - does nothing when there is no room left. */
void samples_add(struct samples *samples, uint64_t ns, unsigned int operations);

/** samples_sort() - before samples_at(). */
void samples_sort(struct samples *samples);

/** samples_at() - the value that a share of @share of all does not exceed; NAN if there are too
 * few samples for one to lie beyond it. */
double samples_at(const struct samples *samples, double share);

/* Instructions of this thread in user mode, where the machine counts them; else _stop() returns
 * a negative number. */
void instructions_start(void);
double instructions_stop(void);

/** must_calloc() - ends the program if there is no memory. */
void *must_calloc(size_t count, size_t size);
void *must_malloc(size_t size);
void *must_realloc(void *memory, size_t size);

/* The same numbers on every machine: xorshift64*. */
struct chance {
        uint64_t state; /* not 0 */
};

uint64_t chance_next(struct chance *chance);

/** chance_below() - a number in [0, @limit). */
uint64_t chance_below(struct chance *chance, uint64_t limit);

/** chance_log() - a number in [@low, @high), with evenly spread logarithms. */
uint64_t chance_log(struct chance *chance, uint64_t low, uint64_t high);

#endif
