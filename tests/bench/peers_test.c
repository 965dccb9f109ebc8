/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers test -- the rebuilt allocators are what they are said to be
 *
 * One property of each that tells it from the others, and what all share; then
 * what they reserve on real traces, where another simulation of the published
 * rules, written independently, gives the same to a thousandth.
 */

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "peer.h"
#include "run.h"

static const struct peer_options unlimited;

static const struct peer_ops *const rebuilt[] = {&peer_torch, &peer_expand, &peer_bfc,
                                                 &peer_cupy,  &peer_rmm,    &peer_exact};

static uint64_t take(struct peer *peer, uint32_t stream, uint64_t size)
{
        return peer->ops->alloc(peer, stream, size);
}

static void give(struct peer *peer, uint32_t stream, uint64_t address, uint64_t size)
{
        peer->ops->free(peer, address, size, stream);
}

Test(peers, all_serve_a_freed_block_again_and_stop_at_the_capacity)
{
        struct peer_options small = {.capacity = 64 * MIB};
        size_t i;

        for (i = 0; i < sizeof(rebuilt) / sizeof(*rebuilt); i++) {
                struct peer *peer = rebuilt[i]->make(&small);
                uint64_t first = take(peer, 1, 40 * MIB);

                cr_expect(first, "%s", peer->ops->name);
                cr_expect_not(take(peer, 1, 40 * MIB), "%s", peer->ops->name);
                give(peer, 1, first, 40 * MIB);
                cr_expect_eq(take(peer, 1, 40 * MIB), first, "%s", peer->ops->name);
                cr_expect_leq(peer->figures.reserved_high, small.capacity, "%s", peer->ops->name);
                peer->ops->unmake(peer);
        }
}

Test(peers, that_split_join_what_is_free_on_either_side)
{
        static const struct peer_ops *const splits[] = {&peer_torch, &peer_expand, &peer_bfc,
                                                        &peer_cupy, &peer_rmm};
        size_t i;

        for (i = 0; i < 2 * sizeof(splits) / sizeof(*splits); i++) {
                struct peer *peer = splits[i / 2]->make(&unlimited);
                uint64_t all = take(peer, 1, 64 * MIB);
                uint64_t block[3];
                int k;

                give(peer, 1, all, 64 * MIB);
                for (k = 0; k < 3; k++)
                        block[k] = take(peer, 1, 4 * MIB);
                cr_assert_eq(block[0], all, "%s", peer->ops->name);
                give(peer, 1, block[i % 2], 4 * MIB);
                give(peer, 1, block[1 - i % 2], 4 * MIB);
                cr_expect_eq(take(peer, 1, 8 * MIB), all, "%s, %zu first", peer->ops->name, i % 2);
                give(peer, 1, all, 8 * MIB);
                give(peer, 1, block[2], 4 * MIB);
                cr_expect_eq(take(peer, 1, 64 * MIB), all, "%s", peer->ops->name);
                peer->ops->unmake(peer);
        }
}

Test(torch, keeps_small_and_large_apart_and_streams_too)
{
        struct peer *peer = peer_torch.make(&unlimited);
        uint64_t small = take(peer, 1, KIB);
        uint64_t large = take(peer, 1, 2 * MIB);
        uint64_t huge = take(peer, 1, 19 * MIB);

        cr_expect_eq(peer->figures.reserved, 2 * MIB + 20 * MIB + 20 * MIB);
        cr_expect_eq(take(peer, 1, 512), small + KIB, "best fit follows in the segment");
        give(peer, 1, huge, 19 * MIB);
        cr_expect_neq(take(peer, 2, 19 * MIB), huge, "another stream has its own");
        cr_expect_eq(take(peer, 1, 19 * MIB), huge);
        cr_expect(large);
        peer_torch.unmake(peer);
}

Test(torch, gives_whole_segments_back_when_there_is_no_memory)
{
        struct peer_options options = {.capacity = 40 * MIB};
        struct peer *peer = peer_torch.make(&options);
        uint64_t whole = take(peer, 1, 12 * MIB);
        uint64_t part = take(peer, 1, 2 * MIB);

        give(peer, 1, whole, 12 * MIB);
        cr_expect(take(peer, 1, 20 * MIB));
        cr_expect_eq(peer->figures.releases, 1);
        cr_expect_eq(peer->figures.reserved, 40 * MIB);
        cr_expect(part);
        peer_torch.unmake(peer);
}

Test(expand, maps_where_free_memory_ends_and_unmaps_what_is_free)
{
        struct peer_options options = {.capacity = 80 * MIB};
        struct peer *peer = peer_expand.make(&options);
        uint64_t first = take(peer, 1, 30 * MIB);
        uint64_t second = take(peer, 1, 30 * MIB);

        cr_expect_eq(peer->figures.reserved, 60 * MIB, "two granules, and one more");
        cr_expect_eq(second, first + 30 * MIB);
        give(peer, 1, first, 30 * MIB);
        cr_expect_eq(take(peer, 1, 40 * MIB), first + 60 * MIB, "one granule moved");
        cr_expect_eq(peer->figures.releases, 1);
        cr_expect_eq(peer->figures.reserved, 80 * MIB);
        cr_expect_eq(take(peer, 1, KIB), 0, "half a granule cannot move");
        cr_expect_eq(take(peer, 1, 10 * MIB), first + 20 * MIB, "but it serves");
        give(peer, 1, second, 30 * MIB);
        give(peer, 1, first + 20 * MIB, 10 * MIB);
        cr_expect_eq(take(peer, 1, 60 * MIB), 0);
        cr_expect_eq(peer->figures.reserved, 40 * MIB, "what was free is unmapped all the same");
        cr_expect_eq(take(peer, 1, 35 * MIB), first, "and mapped again from the lowest address on");
        peer_expand.unmake(peer);
}

Test(expand, unmaps_whole_granules_only)
{
        struct peer_options options = {.capacity = 60 * MIB};
        struct peer *peer = peer_expand.make(&options);
        uint64_t first = take(peer, 1, 30 * MIB);
        uint64_t second = take(peer, 1, 30 * MIB);

        give(peer, 1, second, 30 * MIB);
        cr_expect_not(take(peer, 1, 50 * MIB));
        cr_expect_eq(peer->figures.reserved, 40 * MIB);
        cr_expect_eq(take(peer, 1, 10 * MIB), first + 30 * MIB, "half of it is in use");
        peer_expand.unmake(peer);
}

Test(bfc, doubles_its_regions_and_splits_only_what_is_twice_as_large)
{
        struct peer *peer = peer_bfc.make(&unlimited);
        uint64_t all = take(peer, 0, 2 * MIB);
        uint64_t next;

        cr_expect_eq(peer->figures.reserved, 2 * MIB);
        next = take(peer, 0, 3 * MIB);
        cr_expect_eq(peer->figures.reserved, 2 * MIB + 4 * MIB);
        give(peer, 0, next, 3 * MIB);
        cr_expect_eq(take(peer, 0, 2 * MIB), next);
        cr_expect_eq(take(peer, 0, 2 * MIB), next + 2 * MIB);
        give(peer, 0, all, 2 * MIB);
        cr_expect_eq(take(peer, 0, MIB + 256), all, "not split");
        cr_expect_neq(take(peer, 0, 256) >> 21, all >> 21);
        peer_bfc.unmake(peer);
}

Test(cupy, obtains_what_it_needs_and_splits_it)
{
        struct peer_options options = {.capacity = 12 * MIB};
        struct peer *peer = peer_cupy.make(&options);
        uint64_t whole = take(peer, 1, 4 * MIB + 1);
        uint64_t part;

        cr_expect_eq(peer->figures.reserved, 4 * MIB + 512);
        give(peer, 1, whole, 4 * MIB + 1);
        cr_expect_neq(take(peer, 2, 4 * MIB), whole, "another stream has its own");
        part = take(peer, 1, MIB);
        cr_expect_eq(part, whole);
        cr_expect_eq(take(peer, 1, MIB), whole + MIB);
        cr_expect_not(take(peer, 2, 4 * MIB), "what is in use in part is not given back");
        peer_cupy.unmake(peer);
}

Test(rmm, joins_what_one_stream_freed_and_takes_over_what_another_did)
{
        struct peer *peer = peer_rmm.make(&unlimited);
        uint64_t a = take(peer, 1, 8 * MIB);
        uint64_t b = take(peer, 1, 4 * MIB);
        uint64_t c = take(peer, 1, 4 * MIB);

        cr_expect_eq(peer->figures.reserved, 16 * MIB, "doubled once");
        give(peer, 1, b, 4 * MIB);
        give(peer, 1, c, 4 * MIB);
        cr_expect_eq(take(peer, 2, 8 * MIB), b, "stream 2 takes the joined block");
        give(peer, 1, a, 8 * MIB);
        give(peer, 2, b, 8 * MIB);
        cr_expect_eq(peer->figures.grows, 2);
        cr_expect(take(peer, 1, 16 * MIB));
        cr_expect_eq(peer->figures.grows, 3, "two segments of 8 MiB are never one block");
        peer_rmm.unmake(peer);
}

Test(exact, serves_only_the_same_size)
{
        struct peer *peer = peer_exact.make(&unlimited);
        uint64_t block = take(peer, 1, 1000);

        give(peer, 1, block, 1000);
        cr_expect_neq(take(peer, 1, 512), block);
        cr_expect_neq(take(peer, 2, 1024), block);
        cr_expect_eq(take(peer, 1, 1024), block);
        peer_exact.unmake(peer);
}

/* traces: the folder is in the environment */

Test(peers, reserve_on_traces_what_their_rules_say)
{
        static const struct peer_ops *const peer[] = {&peer_torch, &peer_expand, &peer_bfc,
                                                      &peer_cupy, &peer_rmm};
        static const struct {
                const char *trace;
                int thousandths[5]; /* of the live peak */
        } row[] = {
                {"cupy.sync", {1496, 1496, 2082, 6402, 3518}},
                {"generate.sync", {1077, 1039, 1372, 1029, 1339}},
                {"gnn.async", {4206, 1097, 3091, 4183, 2189}},
                {"gpt2.sync", {1648, 1070, 1268, 1636, 1458}},
                {"mlp.async", {1008, 1046, 1284, 1025, 1522}},
                {"resnet50.sync", {1182, 1007, 1290, 1152, 1097}},
        };
        const char *folder = getenv("BENCH_TRACES");
        size_t i, k;

        cr_assert(folder, "BENCH_TRACES is not set");
        for (i = 0; i < sizeof(row) / sizeof(*row); i++) {
                struct trace trace;
                char path[4096];

                snprintf(path, sizeof(path), "%s/%s", folder, row[i].trace);
                cr_assert(trace_load(&trace, path));
                for (k = 0; k < 5; k++) {
                        struct outcome outcome = trace_replay(&trace, peer[k], &unlimited, NULL);
                        double share =
                                (double)outcome.figures.reserved_high / (double)trace.live_peak;

                        cr_expect_eq((int)(1000 * share + 0.5), row[i].thousandths[k],
                                     "%s, %s: %.4f", row[i].trace, peer[k]->name, share);
                }
                trace_fini(&trace);
        }
}

/* the model's device */

Test(model, has_a_device_that_is_behind_and_a_capacity)
{
        struct peer_options options = {
                .has_device = true,
                .lag = 10,
                .capacity = 64 * MIB,
                .keep = 64 * MIB,
        };
        struct peer *peer = peer_model.make(&options);
        uint64_t first = take(peer, PEER_ANYWHERE, 30 * MIB);
        uint64_t second;

        peer->ops->order(peer, PEER_LAUNCH, 0, 1);
        give(peer, PEER_ANYWHERE, first, 30 * MIB);
        second = take(peer, PEER_ANYWHERE, 30 * MIB);
        cr_expect_neq(second, first, "a kernel may still use it");
        peer->ops->order(peer, PEER_SYNC_ALL, 0, 0);
        cr_expect_eq(take(peer, PEER_ANYWHERE, 30 * MIB), first);
        cr_expect_not(take(peer, PEER_ANYWHERE, 30 * MIB));
        cr_expect_leq(peer->figures.reserved_high, options.capacity);
        peer_model.unmake(peer);
}
