/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPS_H
#define OPS_H

/*
 * Ops -- bytes become a correct program
 *
 * One interpreter for property tests, the fuzzer and replayed failures. The
 * program that the bytes describe uses memory only where the order that it
 * has set up itself allows it; so whatever the twin finds is the model's doing.
 * Calls of other threads are begun and ended around each other.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ops_result {
        uint64_t hash; /* of all addresses and of the final state */
        size_t steps;
        size_t allocs;
        size_t reused;
        size_t early; /* served before its memory was complete, under R1 */
        size_t out_of_memory;
        size_t host_failures; /* allocations of the model's own records that were refused */
        char failure[256];    /* empty: the model kept its word */
};

struct ops_options {
        size_t fail_host_at;  /* 0: never; n: the n-th host allocation fails */
        bool fail_host_again; /* and every 7th after it */
        bool trace;           /* tell every step on standard error */
        bool unchecked;       /* do not walk the invariants after each step */
};

void ops_run(const uint8_t *bytes, size_t size, const struct ops_options *options,
             struct ops_result *result);

/** ops_random() - @size bytes of a given seed. */
void ops_random(uint64_t seed, uint8_t *bytes, size_t size);

#endif
