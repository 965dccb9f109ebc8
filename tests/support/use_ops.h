/* SPDX-License-Identifier: Apache-2.0 */
#ifndef USE_OPS_H
#define USE_OPS_H

/*
 * Use ops -- bytes become a program that uses blocks, under a budget
 *
 * For the property test, the fuzzer and replayed failures. Two kinds of programs,
 * by the first byte: one makes every wait by an event of its own, and the model
 * has to know of each stream exactly what the twin knows; the other claims its
 * waits when it finishes a use, and lets the pool make waits of its own: there
 * the model may ask for more than the twin, never for less.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct use_result {
        size_t steps;
        size_t uses;
        size_t waits;
        size_t reused;
        size_t refused;       /* by the budget */
        size_t host_failures; /* allocations of the model's own records that were refused */
        char failure[200];    /* empty: the model kept its word */
};

/** use_ops_run() - @fail_at: the n-th host allocation of the model fails, and every 7th after it;
 * 0: none */
void use_ops_run(const uint8_t *bytes, size_t size, size_t fail_at, struct use_result *result);

/** use_ops_random() - @size bytes of a given seed. */
void use_ops_random(uint64_t seed, uint8_t *bytes, size_t size);

#endif
