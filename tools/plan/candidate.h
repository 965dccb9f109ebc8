/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CANDIDATE_H
#define CANDIDATE_H

/*
 * Candidate -- what a run could be served with, as the environment says it
 *
 * A setting is text, and nothing but text is replayed: what is printed in the end is what was
 * tried.
 */

#include <stdbool.h>
#include <stdint.h>

#include "peer.h"
#include "trace.h"

#define GRAIN           (2 * MIB) /* what the shim obtains memory in */
#define CANDIDATES_MOST 64
#define TEXT_MOST       8192 /* of a layout: 254 shelves */

struct setting {
        const char *growth;     /* STREAMPOOL_GROWTH, never NULL */
        char layout[TEXT_MOST]; /* STREAMPOOL_LAYOUT; empty for the default heap */
        char limit[32];         /* STREAMPOOL_LIMIT; empty for none */
};

struct candidate {
        uint64_t page; /* not 0: one sliced pool that is to get a cap, and the size of its pages */
        struct setting setting;
};

/** candidates_usual() - those that a run of this kind is tried with. Return: how many. */
unsigned int candidates_usual(const struct trace *trace, struct candidate *candidates);

/** candidate_of() - of a layout that somebody has written. Return: false, after saying what is
 * wrong with it. */
bool candidate_of(const char *text, struct candidate *candidate);

/** setting_limit() - at most @bytes of device memory, in whole grains. */
void setting_limit(struct setting *setting, uint64_t bytes);

/** setting_cap() - a sliced pool alone, of at most @pages pages; 0 for no cap. */
void setting_cap(struct setting *setting, uint64_t page, uint64_t pages);

/** setting_options() - how the shim would configure its pools. @setting is to stay. */
struct peer_options setting_options(const struct setting *setting, uint64_t lag);

/** largest_block() - in bytes. */
uint64_t largest_block(const struct trace *trace);

#endif
