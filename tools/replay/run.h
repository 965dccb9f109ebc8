/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_H
#define RUN_H

/*
 * Run -- how an allocator fares on a trace
 */

#include <stdbool.h>
#include <stdint.h>

#include "audit.h"
#include "peer.h"
#include "trace.h"

struct outcome {
        bool is_complete; /* every allocation was served */
        bool is_agreed;   /* the allocator's own figures are those that were counted */
        uint32_t refused; /* if it is not complete: the block that was not served */
        uint64_t ns;
        uint64_t late_moves; /* in the second half of the allocations: the steady state */
        struct peer_figures figures;
};

/** trace_replay() - on a new allocator; @audit may be NULL, and hears of segments too. */
struct outcome trace_replay(const struct trace *trace, const struct peer_ops *ops,
                            const struct peer_options *options, struct audit *audit);

/**
 * run_bisect() - the smallest number above @low that will do
 * @low:   is taken not to do, and is not tried
 * @high:  is taken to do, likewise
 * @close: the answer may be so much too large; 1 for none
 *
 * It takes for granted that more is not worse. Where that is not so, the answer still does, and
 * some number below it, by at most @close, does not or is @low.
 */
uint64_t run_bisect(uint64_t low, uint64_t high, uint64_t close,
                    bool (*will_do)(uint64_t number, void *user), void *user);

/**
 * trace_capacity() - the smallest capacity that completes
 * @enough: one that may be expected to
 *
 * By bisection, to a 500th of the live peak or 2 MiB. It takes for granted that more memory is
 * not worse, which no best fit guarantees.
 *
 * Return: bytes, 0 if @enough does not complete.
 */
uint64_t trace_capacity(const struct trace *trace, const struct peer_ops *ops,
                        const struct peer_options *options, uint64_t enough);

#endif
