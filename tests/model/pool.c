/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pool -- whose memory it is, its attributes and its figures
 */

#include "bench.h"

TestSuite(pool, .init = bench_set_up, .fini = bench_tear_down);

static enum spm_status create(struct spm_pool_config config)
{
        spm_pool pool = 4711;
        enum spm_status status = spm_pool_create(bench.model, &config, &pool);

        cr_expect(status == SPM_OK || pool == 4711, "nothing is written on failure");
        return status;
}

Test(pool, a_bad_configuration_is_refused)
{
        struct spm_pool_config good = {.kind = SPM_POOL_ASYNC, .provider = SPM_PROVIDER_MODEL};
        struct spm_pool_config bad = good;

        bad.device = -1;
        cr_expect_eq(create(bad), SPM_E_INVALID_DEVICE, "A2");
        bad = good;
        bad.max_size = 1 * MIB;
        bad.initial_size = 2 * MIB;
        cr_expect_eq(create(bad), SPM_E_INVALID_VALUE, "A3");
        bad.max_size = 0;
        cr_expect_eq(create(bad), SPM_OK, "A3: no cap");
        bad = good;
        bad.max_size = 2 * MIB;
        bad.release_threshold = 2 * MIB;
        cr_expect_eq(create(bad), SPM_OK, "A4: the boundary");
        bad.release_threshold++;
        cr_expect_eq(create(bad), SPM_E_INVALID_VALUE, "A4");
        bad = good;
        bad.align = 513;
        cr_expect_eq(create(bad), SPM_E_INVALID_VALUE);
        bad = good;
        bad.initial_size = SIZE_MAX;
        cr_expect_eq(create(bad), SPM_E_OUT_OF_MEMORY, "more than there are addresses");
        bad.max_size = SIZE_MAX;
        cr_expect_eq(create(bad), SPM_E_OUT_OF_MEMORY, "whatever the cap");
        bad = good;
        bad.kind = SPM_POOL_SYNC;
        cr_expect_eq(create(bad), SPM_E_UNKNOWN, "synchronous memory has an owner");
        bad.context = 99;
        cr_expect_eq(create(bad), SPM_E_UNKNOWN);
}

Test(pool, nothing_said_is_no_cap_and_no_threshold_on_the_first_device)
{
        struct spm_pool_config config = {0};
        struct spm_pool_config told;
        spm_pool pool;

        config.context = bench.context;
        cr_assert_eq(spm_pool_create(bench.model, &config, &pool), SPM_OK);
        cr_assert_eq(spm_pool_get_config(bench.model, pool, &told), SPM_OK);
        cr_expect_eq(told.initial_size, 0, "A1");
        cr_expect_eq(told.max_size, 0);
        cr_expect_eq(told.release_threshold, 0);
        cr_expect_eq(told.device, 0);
        cr_expect_eq(told.kind, SPM_POOL_SYNC);
        cr_expect_eq(told.context, bench.context, "what is said stays");
        cr_expect_eq(bench_stats(pool).reserved_current, 0, "nothing is reserved beforehand");
        bench_alloc(pool, 0, 256 * MIB);
}

Test(pool, the_largest_small_block_follows_the_alignment)
{
        static const struct {
                size_t align, balanced, tight;
        } rows[] = {
                {64, 4 * KIB, 4 * KIB},
                {256, 16 * KIB, 4 * KIB},
                {512, 32 * KIB, 4 * KIB},
                {4096, 32 * KIB, 4 * KIB},
        };
        size_t i;

        for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct spm_pool_config config = {.kind = SPM_POOL_ASYNC,
                                                 .provider = SPM_PROVIDER_MODEL,
                                                 .align = rows[i].align};
                struct spm_pool_config told;
                spm_pool pool;

                cr_assert_eq(spm_pool_create(bench.model, &config, &pool), SPM_OK, "align %zu",
                             rows[i].align);
                spm_pool_get_config(bench.model, pool, &told);
                cr_expect_eq(told.small_size, rows[i].balanced, "align %zu", rows[i].align);
                config.growth = SPM_GROWTH_TIGHT;
                cr_assert_eq(spm_pool_create(bench.model, &config, &pool), SPM_OK);
                spm_pool_get_config(bench.model, pool, &told);
                cr_expect_eq(told.small_size, rows[i].tight, "align %zu", rows[i].align);
        }
}

Test(pool, read_only_attributes_are_refused)
{
        static const enum spm_pool_attribute current[] = {SPM_ATTR_RESERVED_MEM_CURRENT,
                                                          SPM_ATTR_USED_MEM_CURRENT};
        static const enum spm_pool_attribute high[] = {SPM_ATTR_RESERVED_MEM_HIGH,
                                                       SPM_ATTR_USED_MEM_HIGH};
        uint64_t hash;
        uint64_t value;
        int i;

        bench_free(bench_alloc(bench.async, bench.s, 3 * MIB), bench.s);
        hash = spm_hash(bench.model);
        for (i = 0; i < 2; i++) {
                cr_expect_eq(spm_pool_set_attribute(bench.model, bench.async, current[i], 0),
                             SPM_E_READ_ONLY, "A42");
                cr_expect_eq(spm_pool_set_attribute(bench.model, bench.async, high[i], 5),
                             SPM_E_READ_ONLY, "A43");
        }
        cr_expect_eq(spm_hash(bench.model), hash);
        for (i = 0; i < 2; i++) {
                cr_expect_eq(spm_pool_set_attribute(bench.model, bench.async, high[i], 0), SPM_OK);
                spm_pool_get_attribute(bench.model, bench.async, high[i], &value);
                cr_expect_eq(value, i ? 0 : 4 * MIB, "I11: the current value");
        }
        cr_expect_eq(
                spm_pool_set_attribute(bench.model, bench.async, (enum spm_pool_attribute)9, 0),
                SPM_E_INVALID_VALUE);
        cr_expect_eq(spm_pool_get_attribute(bench.model, bench.async, (enum spm_pool_attribute)0,
                                            &value),
                     SPM_E_INVALID_VALUE);
}

Test(pool, attributes_begin_as_the_drivers_do)
{
        static const uint64_t expected[] = {1, 1, 1, 0, 0, 0, 0, 0};
        int i;

        for (i = 1; i <= 8; i++) {
                uint64_t value = 99;

                cr_expect_eq(spm_pool_get_attribute(bench.model, bench.async,
                                                    (enum spm_pool_attribute)i, &value),
                             SPM_OK);
                cr_expect_eq(value, expected[i - 1], "A9: attribute %d", i);
        }
}

Test(pool, the_configuration_follows_the_threshold)
{
        struct spm_pool_config config;

        spm_pool_set_attribute(bench.model, bench.async, SPM_ATTR_RELEASE_THRESHOLD, 77);
        cr_assert_eq(spm_pool_get_config(bench.model, bench.async, &config), SPM_OK);
        cr_expect_eq(config.release_threshold, 77, "A8");
        cr_expect_eq(config.align, 512);
}

Test(pool, a_peer_is_another_device)
{
        enum spm_access access = SPM_ACCESS_READ;

        cr_expect_eq(spm_pool_set_access(bench.model, bench.async, 0, SPM_ACCESS_NONE),
                     SPM_E_INVALID_DEVICE, "A48");
        cr_expect_eq(spm_pool_set_access(bench.model, bench.async, -1, SPM_ACCESS_NONE),
                     SPM_E_INVALID_DEVICE);
        spm_pool_get_access(bench.model, bench.async, 0, &access);
        cr_expect_eq(access, SPM_ACCESS_READ_WRITE, "its own cannot be revoked");
        spm_pool_get_access(bench.model, bench.async, 1, &access);
        cr_expect_eq(access, SPM_ACCESS_NONE);
        spm_pool_set_access(bench.model, bench.async, 1, SPM_ACCESS_READ);
        spm_pool_set_access(bench.model, bench.async, 2, SPM_ACCESS_READ_WRITE);
        spm_pool_get_access(bench.model, bench.async, 1, &access);
        cr_expect_eq(access, SPM_ACCESS_READ);
        spm_pool_set_access(bench.model, bench.async, 1, SPM_ACCESS_NONE);
        spm_pool_get_access(bench.model, bench.async, 1, &access);
        cr_expect_eq(access, SPM_ACCESS_NONE);
}

Test(pool, a_default_pool_is_never_destroyed)
{
        struct spm_pool_config config = {.kind = SPM_POOL_ASYNC, .is_default = true};
        struct spm_actions actions;
        spm_pool pool = bench_pool(config);

        cr_expect_eq(spm_pool_destroy(bench.model, pool, &actions), SPM_E_INVALID_VALUE);
        bench_alloc(pool, bench.s, 512);
}

Test(pool, a_destroyed_pool_keeps_what_is_live)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 4096);
        struct spm_allocation allocation;
        struct spm_actions actions;

        cr_assert_eq(spm_pool_destroy(bench.model, bench.async, &actions), SPM_OK);
        cr_expect_eq(actions.count, 0);
        cr_expect_eq(bench_try(bench.async, bench.s, 512, true, &allocation), SPM_E_UNKNOWN);
        cr_expect_eq(spm_pool_destroy(bench.model, bench.async, &actions), SPM_E_UNKNOWN);
        cr_expect_eq(spm_find(bench.model, a, &allocation), SPM_OK, "E7");
        bench_free(a, bench.s);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_QUERY);
        cr_expect_str_eq(bench.log, "X");
        cr_expect_eq(spm_find(bench.model, a, &allocation), SPM_E_FOREIGN);
}

Test(pool, figures_follow_a_block_through_its_life)
{
        struct spm_stats stats;
        uint64_t a = bench_alloc(bench.async, bench.s, 1000);

        stats = bench_stats(bench.async);
        cr_expect_eq(stats.used_current, 1000, "U4: as asked for");
        cr_expect_eq(stats.rounded_current, 1024);
        cr_expect_eq(stats.reserved_current, 2 * MIB);
        cr_expect_eq(stats.live_blocks, 1);
        bench_free(a, bench.s);
        stats = bench_stats(bench.async);
        cr_expect_eq(stats.used_current, 0, "A36: at the free call");
        cr_expect_eq(stats.used_high, 1000);
        cr_expect_eq(stats.pending_bytes, 1024);
        cr_expect_eq(stats.reserved_current, 2 * MIB);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_QUERY);
        stats = bench_stats(bench.async);
        cr_expect_eq(stats.ready_bytes, 2 * MIB);
        cr_expect_eq(stats.allocs, 1);
        cr_expect_eq(stats.frees, 1);
        cr_expect_eq(stats.grows, 1);
}

Test(pool, peaks_can_be_reset)
{
        struct spm_stats stats;

        bench_free(bench_alloc(bench.async, bench.s, 64 * MIB), bench.s);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        bench_alloc(bench.async, bench.s, 1000);
        cr_expect_eq(bench_stats(bench.async).reserved_high, 64 * MIB);
        cr_assert_eq(spm_reset_peaks(bench.model, bench.async), SPM_OK);
        stats = bench_stats(bench.async);
        cr_expect_eq(stats.used_high, 1000, "A47");
        cr_expect_eq(stats.live_blocks_high, 1);
        cr_expect_eq(stats.reserved_high, stats.reserved_current);
}

Test(pool, a_cpu_only_pool_needs_no_driver)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .provider = SPM_PROVIDER_MODEL,
                .initial_size = 3 * MIB,
        };
        spm_pool pool = bench_pool(config);

        cr_expect_eq(bench_stats(pool).reserved_current, 4 * MIB);
        cr_expect_eq(bench_alloc(pool, bench.s, 512), 0x7F0000000000u, "A25");
        bench_alloc(pool, bench.s, 8 * MIB);
        cr_expect_str_eq(bench.log, "", "A6");
}

Test(pool, made_up_addresses_are_used_again_but_in_no_other_pool)
{
        struct spm_pool_config config = {.kind = SPM_POOL_ASYNC, .provider = SPM_PROVIDER_MODEL};
        spm_pool pool = bench_pool(config);
        spm_pool other = bench_pool(config);
        struct spm_actions actions;
        uint64_t first = bench_alloc(pool, bench.s, 32 * MIB);
        uint64_t range = (uint64_t)1 << 40;

        bench_free(first, 0);
        cr_assert_eq(spm_trim(bench.model, pool, 0, NULL, &actions), SPM_OK);
        cr_expect_eq(bench_stats(pool).reserved_current, 0);
        cr_expect_eq(bench_alloc(pool, bench.s, 32 * MIB), first);
        cr_expect_eq(bench_alloc(other, bench.s, 32 * MIB), first + range);
}

/* The first time tables grow, which then are as large as they have to be. */
Test(pool, that_come_and_go_leave_nothing_behind)
{
        struct spm_pool_config config = {.kind = SPM_POOL_ASYNC, .initial_size = 4 * MIB};
        struct spm_actions actions;
        struct spm_stats stats;
        uint64_t first = 0;
        int i;

        for (i = 0; i < 40; i++) {
                spm_pool pool;

                config.provider = i % 2 ? SPM_PROVIDER_MODEL : SPM_PROVIDER_CALLER;
                pool = bench_pool(config);
                bench_free(bench_alloc(pool, bench.s, 3 * MIB), bench.s);
                cr_assert_eq(spm_pool_set_access(bench.model, pool, 1, SPM_ACCESS_READ), SPM_OK);
                cr_assert_eq(spm_pool_destroy(bench.model, pool, &actions), SPM_OK);
                bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
                cr_expect_eq(spm_stats(bench.model, pool, &stats), SPM_E_UNKNOWN, "A9");
                stats = bench_stats(bench.async);
                if (i == 3)
                        first = stats.host_bytes;
                if (i > 3)
                        cr_expect_eq(stats.host_bytes, first, "pool %d", i);
        }
}

Test(pool, an_unknown_handle_is_said_to_be_unknown)
{
        struct spm_pool_config config;
        struct spm_stats stats;
        struct spm_actions actions;
        enum spm_access access;
        uint64_t value;

        cr_expect_eq(spm_pool_destroy(bench.model, 99, &actions), SPM_E_UNKNOWN);
        cr_expect_eq(spm_pool_get_config(bench.model, 99, &config), SPM_E_UNKNOWN);
        cr_expect_eq(spm_pool_set_attribute(bench.model, 99, 1, 1), SPM_E_UNKNOWN);
        cr_expect_eq(spm_pool_get_attribute(bench.model, 99, 1, &value), SPM_E_UNKNOWN);
        cr_expect_eq(spm_pool_set_access(bench.model, 99, 1, 1), SPM_E_UNKNOWN);
        cr_expect_eq(spm_pool_get_access(bench.model, 99, 1, &access), SPM_E_UNKNOWN);
        cr_expect_eq(spm_trim(bench.model, 99, 0, NULL, &actions), SPM_E_UNKNOWN);
        cr_expect_eq(spm_stats(bench.model, 99, &stats), SPM_E_UNKNOWN);
        cr_expect_eq(spm_reset_peaks(bench.model, 99), SPM_E_UNKNOWN);
}

/* A10, measured: which policy lets another stream have the address (U6). */

enum situation { PENDING, DONE, PENDING_EDGE, DONE_QUERY, DONE_SYNC, SITUATIONS };

static bool is_reused(enum situation situation)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 64 * MIB);
        spm_event event;

        bench_free(a, bench.s);
        bench.device_done = situation == DONE || situation >= DONE_QUERY;
        if (situation == PENDING_EDGE)
                bench_wait(bench.t, bench_record(bench.s));
        if (situation == DONE_QUERY) {
                event = bench_record(bench.s);
                bench_sync(SPM_SCOPE_EVENT, event, SPM_SYNC_QUERY);
        }
        spm_pool_set_attribute(bench.model, bench.async, SPM_ATTR_RELEASE_THRESHOLD, UINT64_MAX);
        if (situation == DONE_SYNC)
                bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        return bench_alloc(bench.async, bench.t, 64 * MIB) == a;
}

Test(pool, policies_let_another_stream_reuse_what_the_driver_lets_it_reuse)
{
        static const bool expected[4][SITUATIONS] = {
                {false, false, false, false, true}, /* neither */
                {false, false, true, false, true},  /* follow */
                {false, true, false, true, true},   /* opportunistic */
                {false, true, true, true, true},    /* both */
        };
        int policy;
        int i;

        for (policy = 0; policy < 8; policy++)
                for (i = 0; i < SITUATIONS; i++) {
                        bench_tear_down();
                        bench_set_up();
                        spm_pool_set_attribute(bench.model, bench.async, 1, policy & 1);
                        spm_pool_set_attribute(bench.model, bench.async, 2, policy >> 1 & 1);
                        spm_pool_set_attribute(bench.model, bench.async, 3, policy >> 2);
                        cr_expect_eq(is_reused((enum situation)i), expected[policy & 3][i],
                                     "policy %d, situation %d", policy, i);
                }
}

Test(pool, opportunism_switched_on_finds_what_was_seen_before)
{
        spm_pool_set_attribute(bench.model, bench.async, SPM_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 0);
        bench_free(bench_alloc(bench.async, bench.s, 64 * MIB), bench.s);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_QUERY);
        cr_expect_eq(bench_stats(bench.async).pending_bytes, 64 * MIB);
        spm_pool_set_attribute(bench.model, bench.async, SPM_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 1);
        cr_expect_eq(bench_stats(bench.async).pending_bytes, 0);
}
