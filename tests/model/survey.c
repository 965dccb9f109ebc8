/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Survey -- how sizes and free memory are spread, and what is left
 */

#include "bench.h"

#include <stdlib.h>
#include <string.h>

TestSuite(survey, .init = bench_set_up, .fini = bench_tear_down);
TestSuite(sizes);

static struct spm_survey survey(spm_pool pool)
{
        struct spm_survey now;

        memset(&now, 0xa5, sizeof(now));
        cr_assert_eq(spm_survey(bench.model, pool, 4711, &now), SPM_OK);
        cr_expect_eq(now.time, 4711, "it is the caller's");
        return now;
}

/* sizes */

Test(sizes, buckets_begin_at_16_bytes_and_double)
{
        static const struct {
                size_t size;
                unsigned int bucket;
        } rows[] = {
                {1, 0},
                {16, 0},
                {31, 0},
                {32, 1},
                {63, 1},
                {64, 2},
                {4096, 8},
                {((size_t)16 << 31) - 1, 30},
                {(size_t)16 << 31, 31},
                {SIZE_MAX, 31},
        };
        unsigned int i;

        for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct spm_sizes sizes = {0};
                unsigned int bucket;

                spm_sizes_add(&sizes, rows[i].size);
                for (bucket = 0; bucket < SPM_SIZE_BUCKETS; bucket++)
                        cr_expect_eq(sizes.buckets[bucket], bucket == rows[i].bucket,
                                     "%zu: bucket %u has %d", rows[i].size, bucket,
                                     (int)sizes.buckets[bucket]);
                cr_expect_eq(spm_sizes_percentile(&sizes, 50), rows[i].size, "there is no other");
        }
}

static int by_size(const void *a, const void *b)
{
        size_t one = *(const size_t *)a;
        size_t two = *(const size_t *)b;

        return (one > two) - (one < two);
}

/* Of @percent, the smallest that so many of a hundred are not larger than. */
static size_t exact(const size_t *sorted, size_t count, size_t percent)
{
        size_t rank = (count * percent + 99) / 100;

        return sorted[rank ? rank - 1 : 0];
}

#define SIZES_MOST 1500

static void compare_with_sorted(uint32_t *random, size_t count)
{
        static size_t all[SIZES_MOST];
        struct spm_sizes sizes = {0};
        uint64_t sum = 0;
        size_t i;

        for (i = 0; i < count; i++) {
                *random = *random * 1664525 + 1013904223;
                all[i] = ((size_t)1 << (4 + (*random >> 8) % 36)) + (*random >> 4) % 5000;
                sum += all[i];
                spm_sizes_add(&sizes, all[i]);
        }
        qsort(all, count, sizeof(all[0]), by_size);
        cr_expect_eq(sizes.count, count);
        cr_expect_eq(sizes.bytes, sum);
        cr_expect_eq(sizes.smallest, all[0]);
        cr_expect_eq(sizes.largest, all[count - 1]);
        for (i = 0; i <= 100; i++) {
                size_t wanted = exact(all, count, i);
                size_t got = spm_sizes_percentile(&sizes, (unsigned int)i);

                cr_expect_geq(got, wanted, "%zu sizes, %zu%%", count, i);
                /* Of the last bucket nothing but its largest is known. */
                if (wanted < (size_t)16 << 31)
                        cr_expect_lt(got, 2 * wanted, "%zu sizes, %zu%%: not %zu", count, i, got);
        }
        cr_expect_eq(spm_sizes_percentile(&sizes, 100), all[count - 1]);
        cr_expect_eq(spm_sizes_percentile(&sizes, 4000), all[count - 1]);
}

Test(sizes, percentiles_are_those_of_the_sorted_sizes)
{
        uint32_t random = 4711;
        size_t count;

        for (count = 1; count <= SIZES_MOST; count += count < 20 ? 1 : 185)
                compare_with_sorted(&random, count);
}

Test(sizes, of_nothing_are_nothing)
{
        struct spm_sizes sizes = {0};

        cr_expect_eq(spm_sizes_percentile(&sizes, 50), 0);
        cr_expect_eq(sizes.count, 0);
}

/* pools */

static spm_pool made_up(size_t size)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .provider = SPM_PROVIDER_MODEL,
                .growth = SPM_GROWTH_TIGHT,
                .initial_size = size,
                .release_threshold = SIZE_MAX,
        };

        return bench_pool(config);
}

Test(survey, free_memory_in_one_piece_is_not_fragmented_and_in_many_it_is)
{
        spm_pool pool = made_up(64 * MIB);
        uint64_t at[32];
        struct spm_survey now = survey(pool);
        int i;

        cr_expect_eq(now.fragmentation, 0);
        cr_expect_eq(now.free_bytes, 64 * MIB);
        cr_expect_eq(now.free_pieces, 1);
        for (i = 0; i < 32; i++)
                at[i] = bench_alloc(pool, bench.s, 2 * MIB);
        for (i = 0; i < 32; i += 2)
                bench_free(at[i], bench.s);
        cr_expect_eq(survey(pool).free_bytes, 0, "it is pending");
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_QUERY);
        now = survey(pool);
        cr_expect_eq(now.free_bytes, 32 * MIB);
        cr_expect_eq(now.free_bytes, now.stats.ready_bytes);
        cr_expect_eq(now.free_pieces, 16);
        cr_expect_eq(now.average_free, 2 * MIB);
        cr_expect_eq(now.largest_free, 2 * MIB);
        cr_expect_eq(now.largest_free, now.stats.largest_ready);
        cr_expect_eq(now.fragmentation, 937500, "15 of 16 pieces: %u", now.fragmentation);
        bench_free(at[1], bench.s);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_QUERY);
        now = survey(pool);
        cr_expect_eq(now.largest_free, 6 * MIB, "the first of them");
        cr_expect_eq(now.average_free, 34 * MIB / 15);
        for (i = 3; i < 32; i += 2)
                bench_free(at[i], bench.s);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_QUERY);
        cr_expect_eq(survey(pool).fragmentation, 0);
}

Test(survey, without_free_memory_nothing_is_divided)
{
        struct spm_survey now = survey(bench.async);

        cr_expect_eq(now.fragmentation, 0);
        cr_expect_eq(now.average_free, 0);
        cr_expect_eq(now.free_pieces, 0);
        cr_expect_eq(spm_survey(bench.model, 99, 0, &now), SPM_E_UNKNOWN);
        cr_expect_eq(now.time, 4711, "nothing is written on failure");
}

Test(survey, fragmentation_of_any_amount_is_told)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .align = (size_t)1 << 40,
                .small_size = (size_t)1 << 40,
                .grain = (size_t)1 << 40,
        };
        spm_pool pool = bench_pool(config);
        spm_segment segment;
        uint64_t i;

        for (i = 1; i <= 4; i++)
                cr_assert_eq(spm_segment_add(bench.model, pool, i << 50, (size_t)1 << 46, NULL,
                                             &segment),
                             SPM_OK);
        cr_expect_eq(survey(pool).free_bytes, (uint64_t)4 << 46);
        cr_expect_eq(survey(pool).fragmentation, 750000, "%u", survey(pool).fragmentation);
}

Test(survey, nothing_is_given_back_by_a_barrier_that_a_capture_forbids)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_SYNC,
                .context = bench.context,
                .release_needs_idle = true,
        };
        spm_pool pool = bench_pool(config);
        struct spm_actions actions;
        size_t released;

        bench_give(pool, 4 * MIB);
        cr_expect_not(survey(pool).is_trimmed);
        cr_assert_eq(spm_capture_begin(bench.model, bench.s, &actions), SPM_OK);
        cr_expect(survey(pool).is_trimmed);
        spm_trim(bench.model, pool, 0, &released, &actions);
        cr_expect_eq(released, 0);
        cr_assert_eq(spm_capture_end(bench.model, bench.s), SPM_OK);
        cr_expect_not(survey(pool).is_trimmed);
}

Test(survey, small_blocks_are_pieces_of_their_own)
{
        spm_pool pool = made_up(2 * MIB);
        uint64_t a = bench_alloc(pool, bench.s, 1000);
        struct spm_survey now;
        uint64_t before;

        bench_alloc(pool, bench.s, 700);
        now = survey(pool);
        before = now.free_pieces;
        cr_expect_geq(before, 7, "the slots of a run: %d", (int)before);
        cr_expect_leq(now.free_bytes, now.stats.ready_bytes, "but not its tail");
        cr_expect_eq(now.live.count, 2);
        cr_expect_eq(now.live.bytes, 1700, "as asked for");
        cr_expect_eq(spm_sizes_percentile(&now.live, 50), 1000, "both are from 512 on");
        bench_free(a, bench.s);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_QUERY);
        now = survey(pool);
        cr_expect_eq(now.free_pieces, before + 1);
        cr_expect_eq(now.live.count, 1);
        cr_expect_eq(now.live.largest, 700);
}

Test(survey, says_what_lives_and_whether_there_is_something_to_give_back)
{
        struct spm_actions actions;
        struct spm_survey now;
        uint64_t a;

        now = survey(bench.async);
        cr_expect(now.is_trimmed && !now.has_leaks);
        spm_pool_set_attribute(bench.model, bench.async, SPM_ATTR_RELEASE_THRESHOLD, UINT64_MAX);
        a = bench_alloc(bench.async, bench.s, 3 * MIB);
        cr_expect(survey(bench.async).has_leaks);
        cr_expect(survey(bench.async).is_trimmed);
        bench_free(a, bench.s);
        cr_expect_not(survey(bench.async).has_leaks);
        cr_expect(survey(bench.async).is_trimmed, "what is pending stays");
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        cr_expect_not(survey(bench.async).is_trimmed);
        spm_trim(bench.model, bench.async, 0, NULL, &actions);
        cr_expect(survey(bench.async).is_trimmed);
}

/* What is said beforehand, and what a trim then does. */
static void compare_with_trim(int step)
{
        struct spm_survey before = survey(bench.async);
        struct spm_actions actions;
        uint64_t given = 0;
        size_t released;

        while (spm_trim(bench.model, bench.async, 0, &released, &actions) == SPM_AGAIN)
                given += released;
        given += released;
        cr_expect_eq(before.is_trimmed, given == 0, "step %d: %zu bytes", step, (size_t)given);
        cr_expect(survey(bench.async).is_trimmed, "step %d", step);
        cr_expect_eq(before.stats.reserved_current - given,
                     bench_stats(bench.async).reserved_current, "step %d", step);
}

static void try_trims(struct spm_pool_config config)
{
        static const size_t sizes[] = {100, 600, 40 * KIB, MIB, 3 * MIB, 5 * MIB};
        uint64_t held[12] = {0};
        uint32_t random = 4711;
        int i;

        config.kind = SPM_POOL_ASYNC;
        config.release_threshold = SIZE_MAX;
        bench.async = bench_pool(config);
        for (i = 0; i < 1500; i++) {
                unsigned int slot;

                random = random * 1664525 + 1013904223;
                slot = (random >> 8) % 12;
                if (held[slot] && (random >> 13) % 8 == 0)
                        spm_export(bench.model, held[slot]);
                if (held[slot])
                        bench_free(held[slot], bench.s);
                held[slot] = held[slot]
                                     ? 0
                                     : bench_alloc(bench.async, bench.s, sizes[(random >> 16) % 6]);
                if ((random >> 20) % 8 == 0)
                        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_QUERY);
                if ((random >> 24) % 16 == 0)
                        compare_with_trim(i);
        }
}

Test(survey, a_trim_gives_back_something_exactly_where_it_is_said)
{
        struct spm_pool_config alone = {.provider = SPM_PROVIDER_CALLER};
        struct spm_pool_config ranged = {.range_base = (uint64_t)1 << 44,
                                         .range_size = (size_t)1 << 36};

        try_trims(alone);
        try_trims(ranged);
}
