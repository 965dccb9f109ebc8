/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grow -- where more memory goes, how much of it, and what makes way
 *
 * Large blocks are in the upper half of a range. They are freed without a
 * stream, so that their memory is ready at once.
 */

#include <string.h>

#include "bench.h"

#define BASE  ((uint64_t)1 << 45)
#define GIB   ((size_t)1 << 30)
#define RANGE (64 * GIB)
#define LARGE (BASE + RANGE / 2)
#define SEEN  4096

static struct spm_action seen[SEEN]; /* of one request */
static unsigned int seen_count;

TestSuite(grow, .init = bench_set_up, .fini = bench_tear_down);

static spm_pool range_pool(enum spm_growth growth)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .growth = growth,
                .range_base = BASE,
                .range_size = RANGE,
                .release_threshold = SIZE_MAX,
        };

        return bench_pool(config);
}

static void see(const struct spm_actions *actions)
{
        unsigned int i;
        bool growing = false;

        for (i = 0; i < actions->count; i++) {
                const struct spm_action *action = &actions->item[i];

                if (action->kind != SPM_ACT_GROW && action->kind != SPM_ACT_RELEASE)
                        continue;
                growing = growing || action->kind == SPM_ACT_GROW;
                cr_assert(!growing || action->kind == SPM_ACT_GROW, "what makes way goes first");
                cr_assert_lt(seen_count, (unsigned int)SEEN);
                seen[seen_count++] = *action;
        }
}

/* Return: where it is; 0 if there is no memory. */
static uint64_t climb(spm_pool pool, size_t size)
{
        struct spm_request request = {
                .pool = pool, .stream = bench.s, .size = size, .may_wait = true};
        struct spm_allocation allocation;
        struct spm_actions actions;
        enum spm_status status;

        seen_count = 0;
        bench.log[0] = '\0';
        do {
                status = spm_alloc(bench.model, &request, &allocation, &actions);
                see(&actions);
                bench_do(&actions, &request);
        } while (status == SPM_AGAIN);
        cr_assert(status == SPM_OK || status == SPM_E_OUT_OF_MEMORY);
        return status ? 0 : allocation.address;
}

/* Bytes of the last request's actions of a kind. */
static size_t sum(enum spm_action_kind kind)
{
        size_t bytes = 0;
        unsigned int i;

        for (i = 0; i < seen_count; i++)
                bytes += seen[i].kind == kind ? seen[i].size : 0;
        return bytes;
}

static void trim(spm_pool pool, size_t keep)
{
        struct spm_actions actions;

        while (spm_trim(bench.model, pool, keep, NULL, &actions) == SPM_AGAIN)
                ;
}

static uint64_t reserved(spm_pool pool)
{
        return bench_stats(pool).reserved_current;
}

/* how much */

static void expect_pieces(enum spm_growth growth, size_t before, size_t size, size_t piece)
{
        spm_pool pool;
        uint64_t at;
        unsigned int i;

        bench_tear_down();
        bench_set_up();
        pool = range_pool(growth);
        at = before ? climb(pool, before) + before : LARGE;
        cr_assert_eq(reserved(pool), before);
        cr_assert_eq(climb(pool, size), at);
        cr_expect_eq(seen[0].size, piece, "%zu for %zu MiB after %zu", seen[0].size / MIB,
                     size / MIB, before / MIB);
        for (i = 0; i < seen_count; i++) {
                cr_assert_eq(seen[i].kind, SPM_ACT_GROW);
                cr_assert_eq(seen[i].address, at, "side by side");
                cr_assert_eq(seen[i].preferred, seen[i].size);
                at += seen[i].size;
        }
        cr_expect_geq(sum(SPM_ACT_GROW), size);
        cr_expect_lt(sum(SPM_ACT_GROW), size + seen[seen_count - 1].size);
}

Test(grow, a_piece_is_a_thirty_second_of_the_pool)
{
        expect_pieces(SPM_GROWTH_BALANCED, 0, 3 * MIB, 2 * MIB);
        expect_pieces(SPM_GROWTH_BALANCED, 0, 126 * MIB, 2 * MIB);
        expect_pieces(SPM_GROWTH_BALANCED, 0, 128 * MIB, 4 * MIB);
        expect_pieces(SPM_GROWTH_BALANCED, 96 * MIB, 31 * MIB, 2 * MIB);
        expect_pieces(SPM_GROWTH_BALANCED, 96 * MIB, 32 * MIB, 4 * MIB);
        expect_pieces(SPM_GROWTH_BALANCED, 480 * MIB, 31 * MIB, 8 * MIB);
        expect_pieces(SPM_GROWTH_BALANCED, 480 * MIB, 32 * MIB, 16 * MIB);
        expect_pieces(SPM_GROWTH_BALANCED, 0, GIB, 32 * MIB);
        expect_pieces(SPM_GROWTH_BALANCED, 4 * GIB, 100 * MIB, 32 * MIB);
        expect_pieces(SPM_GROWTH_SPEED, 480 * MIB, 31 * MIB, 8 * MIB);
        expect_pieces(SPM_GROWTH_SPEED, 4 * GIB, 100 * MIB, 32 * MIB);
        expect_pieces(SPM_GROWTH_TIGHT, 0, 128 * MIB, 2 * MIB);
        expect_pieces(SPM_GROWTH_TIGHT, GIB, 5 * MIB, 2 * MIB);
}

Test(grow, a_piece_is_at_most_what_the_caller_says)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .range_base = BASE,
                .range_size = RANGE,
                .segment_size = 8 * MIB,
        };
        spm_pool pool = bench_pool(config);
        unsigned int i;

        cr_assert_neq(climb(pool, GIB), 0);
        cr_expect_eq(seen_count, GIB / (8 * MIB));
        for (i = 0; i < seen_count; i++)
                cr_expect_eq(seen[i].size, 8 * MIB);
}

Test(grow, without_a_range_a_segment_is_as_large_as_the_request_or_a_piece)
{
        cr_assert_neq(climb(bench.async, 3 * MIB), 0);
        cr_expect_eq(seen[0].address, 0, "anywhere");
        cr_expect_eq(seen[0].size, 4 * MIB);
        cr_expect_eq(seen[0].preferred, 4 * MIB);
        cr_assert_neq(climb(bench.async, 2 * GIB), 0);
        cr_expect_eq(seen[0].preferred, 2 * GIB);
        cr_assert_neq(climb(bench.async, 5 * MIB), 0);
        cr_expect_eq(seen[0].size, 6 * MIB);
        cr_expect_eq(seen[0].preferred, 32 * MIB);
        cr_expect_eq(seen_count, 1u);
}

/* where */

/* What there is in the large half: a, a live block, b, another live block, and the rest. */
struct row {
        uint64_t a;
        uint64_t b;
};

static struct row lay_out(spm_pool pool, size_t a, size_t b)
{
        struct row row;

        row.a = climb(pool, a);
        climb(pool, 2 * MIB);
        row.b = climb(pool, b);
        climb(pool, 2 * MIB);
        cr_assert_eq(row.a, LARGE);
        cr_assert_eq(row.b, LARGE + a + 2 * MIB);
        cr_assert_eq(reserved(pool), a + b + 4 * MIB);
        return row;
}

Test(grow, memory_goes_where_the_least_is_missing)
{
        spm_pool pool = range_pool(SPM_GROWTH_BALANCED);
        struct row row = lay_out(pool, 8 * MIB, 6 * MIB);

        bench_free(row.a, 0);
        bench_free(row.b, 0);
        trim(pool, 6 * MIB);
        cr_assert_eq(bench_stats(pool).ready_bytes, 2 * MIB, "the first third of b");
        cr_expect_eq(climb(pool, 6 * MIB), row.b, "all of a is missing");
        cr_expect_eq(sum(SPM_ACT_GROW), 4 * MIB);
        cr_expect_eq(seen[0].address, row.b + 2 * MIB);
        cr_expect_eq(climb(pool, 8 * MIB), row.a);
        cr_expect_eq(sum(SPM_ACT_GROW), 8 * MIB);
        cr_expect_eq(climb(pool, 8 * MIB), row.b + 8 * MIB, "the end of the range");
}

Test(grow, where_as_much_is_missing_memory_goes_to_the_lowest_address)
{
        spm_pool pool = range_pool(SPM_GROWTH_BALANCED);
        struct row row = lay_out(pool, 8 * MIB, 4 * MIB);

        bench_free(row.b, 0);
        bench_free(row.a, 0);
        trim(pool, 0);
        cr_expect_eq(climb(pool, 4 * MIB), row.a);
}

Test(grow, only_what_is_missing_is_asked_for)
{
        spm_pool pool = range_pool(SPM_GROWTH_TIGHT);
        uint64_t a = climb(pool, 5 * MIB);

        cr_assert_eq(sum(SPM_ACT_GROW), 6 * MIB);
        cr_expect_eq(climb(pool, 2 * MIB), a + 5 * MIB);
        cr_expect_eq(sum(SPM_ACT_GROW), 2 * MIB, "a MiB is there");
}

Test(grow, a_small_half_and_a_large_half_grow_by_themselves)
{
        spm_pool pool = range_pool(SPM_GROWTH_BALANCED);

        cr_expect_eq(climb(pool, 1000), BASE);
        cr_expect_eq(seen[0].address, BASE);
        cr_expect_eq(climb(pool, MIB + 512), LARGE);
        cr_expect_eq(seen[0].address, LARGE);
}

/* what makes way */

/* 20 blocks of 32 MiB, and every second one freed: what is larger does not fit between them. */
static spm_pool riddle(enum spm_growth growth)
{
        spm_pool pool = range_pool(growth);
        uint64_t at[20];
        int i;

        for (i = 0; i < 20; i++)
                at[i] = climb(pool, 32 * MIB);
        cr_assert_eq(reserved(pool), 640 * MIB);
        for (i = 0; i < 20; i += 2)
                bench_free(at[i], 0);
        return pool;
}

static void expect_bound(enum spm_growth growth, uint64_t most, unsigned int before_moves)
{
        spm_pool pool = riddle(growth);
        unsigned int i;

        for (i = 0; i < 6; i++) {
                cr_assert_neq(climb(pool, 48 * MIB), 0);
                cr_expect_eq(bench_stats(pool).moves != 0, i >= before_moves, "block %u", i);
        }
        cr_expect_leq(bench_stats(pool).reserved_high, most);
        cr_expect_eq(bench_stats(pool).moves, bench_stats(pool).releases);
        cr_expect_gt(bench_stats(pool).reserved_high + 16 * MIB, most, "but all it may");
}

/* 640 MiB were in use; a piece is 16 MiB then. */
Test(grow, a_balanced_pool_holds_a_sixty_fourth_and_a_piece_more_than_was_in_use)
{
        expect_bound(SPM_GROWTH_BALANCED, (640 + 10 + 16) * MIB, 0);
}

Test(grow, a_fast_pool_holds_a_twelfth_and_a_piece_more_than_was_in_use)
{
        expect_bound(SPM_GROWTH_SPEED, (640 + 16) * MIB + 640 * MIB / 12, 1);
}

Test(grow, a_tight_pool_holds_what_was_in_use)
{
        expect_bound(SPM_GROWTH_TIGHT, 640 * MIB, 0);
}

Test(grow, idle_segments_move_before_memory_is_asked_for)
{
        spm_pool pool = riddle(SPM_GROWTH_TIGHT);
        unsigned int i;

        cr_assert_neq(climb(pool, 48 * MIB), 0);
        cr_expect_eq(sum(SPM_ACT_RELEASE), 48 * MIB);
        cr_expect_eq(sum(SPM_ACT_GROW), 48 * MIB);
        for (i = 0; i < seen_count; i++)
                cr_expect_eq(seen[i].moves, seen[i].kind == SPM_ACT_RELEASE);
        cr_expect_eq(bench_stats(pool).moves, 24);
        cr_expect_eq(bench_stats(pool).releases, 24);
        cr_expect_eq(reserved(pool), 640 * MIB);
}

/* Memory that the pool never had in use, and that has been idle for less time than the place. */
Test(grow, nothing_of_the_place_makes_way)
{
        spm_pool pool = range_pool(SPM_GROWTH_TIGHT);
        struct row row = lay_out(pool, 8 * MIB, 12 * MIB);
        unsigned int i;

        bench_free(row.b, 0);
        trim(pool, 16 * MIB);
        bench_free(row.a, 0);
        bench_give(pool, 8 * MIB);
        cr_assert_eq(reserved(pool), 24 * MIB);
        cr_assert_eq(bench_stats(pool).ready_bytes, 20 * MIB);
        cr_expect_eq(climb(pool, 12 * MIB), row.b);
        cr_expect_eq(sum(SPM_ACT_GROW), 8 * MIB);
        cr_expect_eq(sum(SPM_ACT_RELEASE), 8 * MIB);
        for (i = 0; i < seen_count; i++)
                if (seen[i].kind == SPM_ACT_RELEASE)
                        cr_expect(seen[i].address + seen[i].size <= row.b ||
                                  seen[i].address >= row.b + 12 * MIB);
}

Test(grow, what_is_given_back_only_after_a_barrier_does_not_move)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_SYNC,
                .context = bench.context,
                .growth = SPM_GROWTH_TIGHT,
                .range_base = BASE,
                .range_size = RANGE,
                .release_needs_idle = true,
        };
        spm_pool pool = bench_pool(config);

        bench_free(bench_alloc(pool, 0, 32 * MIB), 0);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_QUERY);
        bench_alloc(pool, 0, 64 * MIB);
        cr_expect_null(strchr(bench.log, 'M'));
        cr_expect_eq(bench_stats(pool).moves, 0);
}

/* what is refused */

Test(grow, a_growth_that_is_refused_in_the_middle_leaves_a_pool_that_can_be_used)
{
        spm_pool pool = range_pool(SPM_GROWTH_BALANCED);
        uint64_t live = climb(pool, 3 * MIB);
        int granted;

        /* 32 pieces of 32 MiB. */
        for (granted = 0; granted < 32; granted++) {
                bench.grants = granted + 1;
                bench.no_memory = false;
                cr_expect_eq(climb(pool, GIB), 0, "%d granted", granted);
                cr_expect_eq(bench_stats(pool).live_blocks, 1);
                cr_expect_eq(reserved(pool), 4 * MIB, "what came is given back: %d", granted);
                bench.no_memory = true;
                bench.grants = 0;
                cr_expect_eq(climb(pool, MIB + 512), 0);
        }
        bench.no_memory = false;
        cr_expect_neq(climb(pool, GIB), 0);
        bench_free(live, bench.s);
}

/* So that a device that is almost full is used to its end. */
Test(grow, a_piece_that_is_refused_is_followed_by_what_is_needed)
{
        spm_pool pool = range_pool(SPM_GROWTH_BALANCED);

        climb(pool, 512 * MIB);
        bench.grants = 1;
        cr_expect_eq(climb(pool, 2 * MIB), 0);
        cr_expect_str_eq(bench.log, "GG");
        cr_expect_eq(seen[0].size, 16 * MIB);
        cr_expect_eq(seen[1].size, 2 * MIB);
}

Test(grow, the_cap_is_not_passed_by_a_piece_and_not_by_a_request)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .range_base = BASE,
                .range_size = RANGE,
                .max_size = 130 * MIB,
                .small_size = 512,
        };
        spm_pool pool = bench_pool(config);

        cr_assert_eq(climb(pool, 128 * MIB - 512), BASE, "a pool with a cap is not parted");
        cr_expect_eq(reserved(pool), 128 * MIB);
        cr_expect_eq(climb(pool, 3 * MIB), 0);
        cr_expect_neq(climb(pool, 2 * MIB), 0);
        cr_expect_eq(reserved(pool), 130 * MIB, "not the 4 MiB of a piece");
        cr_expect_eq(climb(pool, MIB), 0);
        cr_expect_neq(climb(pool, 512), 0);
}

Test(grow, a_range_that_is_full_is_no_end)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .range_base = BASE,
                .range_size = 16 * MIB,
        };
        spm_pool pool = bench_pool(config);
        uint64_t a;

        cr_assert_eq(climb(pool, 8 * MIB), BASE + 8 * MIB, "the large half");
        a = climb(pool, 12 * MIB);
        cr_expect_eq(seen[0].address, 0, "anywhere");
        cr_expect_eq(seen[0].size, 12 * MIB);
        cr_expect(a && (a < BASE || a >= BASE + 16 * MIB));
        bench_free(a, 0);
        trim(pool, 0);
        cr_expect_eq(reserved(pool), 8 * MIB);
}

/* a provider that makes it up */

Test(grow, a_made_up_pool_grows_and_moves_without_actions)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .provider = SPM_PROVIDER_MODEL,
                .growth = SPM_GROWTH_TIGHT,
                .range_base = BASE,
                .range_size = RANGE,
        };
        spm_pool pool = bench_pool(config);
        uint64_t at[20];
        int i;

        for (i = 0; i < 20; i++)
                at[i] = climb(pool, 32 * MIB);
        for (i = 0; i < 20; i += 2)
                bench_free(at[i], 0);
        cr_expect_eq(climb(pool, 48 * MIB), at[19] + 32 * MIB);
        cr_expect_eq(seen_count, 0u);
        cr_expect_eq(bench_stats(pool).grows, 320 + 24);
        cr_expect_eq(bench_stats(pool).moves, 24);
        cr_expect_eq(reserved(pool), 640 * MIB);
}

Test(grow, a_made_up_range_that_is_full_is_the_end)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .provider = SPM_PROVIDER_MODEL,
                .range_base = BASE,
                .range_size = 16 * MIB,
        };
        spm_pool pool = bench_pool(config);

        cr_expect_neq(climb(pool, 8 * MIB), 0);
        cr_expect_eq(climb(pool, 10 * MIB), 0);
        cr_expect_eq(climb(pool, 1000), BASE, "the other half");
}
