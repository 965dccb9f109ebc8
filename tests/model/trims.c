/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trims -- which call gives memory back to the driver
 *
 * Measured on an H200 (driver 580.159): 64 MiB are allocated and freed on one
 * stream and are complete; then a call is made and RESERVED is read. The driver
 * gives back chunks of 32 MiB, and the model the segments it was given, so what
 * is compared is whether anything was given back, and that the threshold is kept.
 */

#include "bench.h"

#include <string.h>

TestSuite(trims, .init = bench_set_up, .fini = bench_tear_down);

#define SIZE (64 * MIB)
#define BASE ((uint64_t)1 << 45)

enum call {
        STREAM_SYNC,  /* cuStreamSynchronize of the stream of the free */
        OTHER_SYNC,   /* of another stream */
        LEGACY_SYNC,  /* of the legacy stream */
        EVENT_SYNC,   /* cuEventSynchronize, of an event behind the free */
        CONTEXT_SYNC, /* cuCtxSynchronize */
        STREAM_QUERY, /* cuStreamQuery says that the stream is idle */
        EVENT_QUERY,  /* cuEventQuery says that it is over */
        ALLOC,        /* the next cuMemAllocAsync of the size */
};

/* Not in the table: a synchronous copy to the host. It releases nothing in the driver, and the
 * model is not told of it. */
static const struct {
        char name[32];
        enum call call;
        bool releases;
} measured[] = {
        {"stream, the same", STREAM_SYNC, true},
        {"stream, another", OTHER_SYNC, false},
        {"stream, legacy", LEGACY_SYNC, false},
        {"event", EVENT_SYNC, true},
        {"context", CONTEXT_SYNC, true},
        {"query of the stream", STREAM_QUERY, false},
        {"query of the event", EVENT_QUERY, false},
        {"the next allocation", ALLOC, false},
};

#define ROWS (sizeof(measured) / sizeof(measured[0]))

static uint64_t reserved(void)
{
        return bench_stats(bench.async).reserved_current;
}

static void set_threshold(uint64_t bytes)
{
        cr_assert_eq(
                spm_pool_set_attribute(bench.model, bench.async, SPM_ATTR_RELEASE_THRESHOLD, bytes),
                SPM_OK);
}

/* @blocks of SIZE, freed on s; the device is done with them, and nobody has looked. */
static spm_event free_blocks(int blocks)
{
        uint64_t at[4];
        int i;

        for (i = 0; i < blocks; i++)
                at[i] = bench_alloc(bench.async, bench.s, SIZE);
        for (i = 0; i < blocks; i++)
                bench_free(at[i], bench.s);
        bench.device_done = true;
        return bench_record(bench.s);
}

static void make(enum call call, spm_event event)
{
        switch (call) {
        case STREAM_SYNC:
                bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
                break;
        case OTHER_SYNC:
                bench_sync(SPM_SCOPE_STREAM, bench.t, SPM_SYNC_WAIT);
                break;
        case LEGACY_SYNC:
                bench_sync(SPM_SCOPE_STREAM, bench.legacy, SPM_SYNC_WAIT);
                break;
        case EVENT_SYNC:
                bench_sync(SPM_SCOPE_EVENT, event, SPM_SYNC_WAIT);
                break;
        case CONTEXT_SYNC:
                bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
                break;
        case STREAM_QUERY:
                bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_QUERY);
                break;
        case EVENT_QUERY:
                bench_sync(SPM_SCOPE_EVENT, event, SPM_SYNC_QUERY);
                break;
        case ALLOC:
                bench_alloc(bench.async, bench.s, SIZE);
                break;
        }
}

static void start_over(void)
{
        bench_tear_down();
        bench_set_up();
}

Test(trims, each_call_releases_what_was_measured)
{
        unsigned int row;

        for (row = 0; row < ROWS; row++) {
                spm_event event;
                uint64_t full;

                start_over();
                event = free_blocks(1);
                full = reserved();
                make(measured[row].call, event);
                cr_expect_eq(reserved() < full, measured[row].releases, "%s", measured[row].name);
                cr_expect_eq(strchr(bench.log, 'X') != NULL, measured[row].releases, "%s: %s",
                             measured[row].name, bench.log);
                if (measured[row].releases)
                        cr_expect_eq(reserved(), 0, "%s: all of it", measured[row].name);
        }
}

/* Not measured: that somebody has looked before changes nothing. */
Test(trims, a_query_before_the_call_changes_nothing)
{
        unsigned int row;

        for (row = 0; row < ROWS; row++) {
                spm_event event;

                start_over();
                event = free_blocks(1);
                make(EVENT_QUERY, event);
                cr_assert_eq(bench_stats(bench.async).pending_bytes, 0);
                make(measured[row].call, event);
                cr_expect_eq(reserved() == 0, measured[row].releases, "%s", measured[row].name);
        }
}

/* A list has room for so many actions; the program is to find all of it given back. */
Test(trims, what_a_list_was_too_short_for_is_due)
{
        enum { BLOCKS = 3 * SPM_ACTIONS_MAX };
        struct spm_actions actions;
        unsigned int calls = 0;
        uint64_t at[BLOCKS];
        enum spm_status status;
        int i;

        for (i = 0; i < BLOCKS; i++)
                at[i] = bench_alloc(bench.async, bench.s, SIZE);
        for (i = 0; i < BLOCKS; i++)
                bench_free(at[i], bench.s);
        bench.device_done = true;
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        cr_assert_gt(reserved(), SIZE, "one list was enough");
        do {
                status = spm_trim_due(bench.model, &actions);
                bench_do(&actions, NULL);
        } while (status == SPM_AGAIN && ++calls < BLOCKS);
        cr_expect_eq(reserved(), 0);
        cr_expect_eq(status, SPM_OK);
        cr_expect_geq(calls, 1);
        cr_expect_eq(spm_trim_due(bench.model, &actions), SPM_OK);
        cr_expect_eq(actions.count, 0);
}

/* Measured for the stream: of two blocks at 32 MiB, the driver keeps 32 MiB. */
Test(trims, each_call_keeps_what_the_threshold_says)
{
        static const uint64_t thresholds[] = {32 * MIB, 64 * MIB, 64 * MIB + 1, 128 * MIB,
                                              UINT64_MAX};
        unsigned int row;
        unsigned int i;

        for (row = 0; row < ROWS; row++)
                for (i = 0; i < sizeof(thresholds) / sizeof(thresholds[0]); i++) {
                        bool releases = measured[row].releases && thresholds[i] <= SIZE;
                        spm_event event;

                        start_over();
                        set_threshold(thresholds[i]);
                        event = free_blocks(2);
                        make(measured[row].call, event);
                        cr_expect_eq(reserved() < 2 * SIZE, releases, "%s, threshold %u",
                                     measured[row].name, i);
                        if (releases)
                                cr_expect_geq(reserved(), thresholds[i], "%s, threshold %u",
                                              measured[row].name, i);
                }
}

/* Measured: of two blocks at a threshold of 32 MiB the driver keeps 32 MiB. Segments of a range go
 * singly, so that a pool with one does as well, however it grows. */
Test(trims, a_range_keeps_no_more_than_the_threshold)
{
        static const enum spm_growth modes[] = {SPM_GROWTH_BALANCED, SPM_GROWTH_SPEED,
                                                SPM_GROWTH_TIGHT};
        unsigned int i;

        for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
                struct spm_pool_config config = {
                        .kind = SPM_POOL_ASYNC,
                        .provider = SPM_PROVIDER_MODEL,
                        .growth = modes[i],
                        .release_threshold = 32 * MIB,
                };

                start_over();
                bench.async = bench_pool(config);
                free_blocks(2);
                cr_expect_geq(reserved(), 2 * SIZE);
                make(STREAM_SYNC, 0);
                cr_expect_eq(reserved(), 32 * MIB, "mode %u", i);
        }
}

/* It is free, and complete, whoever has it at hand. */
Test(trims, each_call_releases_what_is_in_a_magazine_as_well)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC, .range_base = BASE, .range_size = 64 * SIZE};
        unsigned int row;

        for (row = 0; row < ROWS; row++) {
                struct spm_magazine *magazine;
                spm_event event;
                uint64_t at, full;

                start_over();
                bench.async = bench_pool(config);
                cr_assert_eq(spm_magazine_new(bench.model, bench.async, bench.s, &magazine),
                             SPM_OK);
                at = bench_alloc(bench.async, bench.s, KIB);
                cr_assert(spm_magazine_free(magazine, at, 0, NULL));
                bench.device_done = true;
                event = bench_record(bench.s);
                full = reserved();
                make(measured[row].call, event);
                cr_expect_eq(reserved() < full, measured[row].releases, "%s", measured[row].name);
                spm_magazine_end(bench.model, magazine);
        }
}

/* The driver releases all of it at once. A list of actions has an end; what does not fit has to
 * come with the next inputs, whatever they are. */
Test(trims, what_does_not_fit_into_one_list_is_released_by_what_comes_next)
{
        enum { BLOCKS = SPM_ACTIONS_MAX + 16 };
        uint64_t at[BLOCKS];
        int i;

        for (i = 0; i < BLOCKS; i++)
                at[i] = bench_alloc(bench.async, bench.s, SIZE);
        for (i = 0; i < BLOCKS; i++)
                bench_free(at[i], bench.s);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        cr_expect_leq(reserved(), 16 * SIZE);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        cr_expect_eq(reserved(), 0);
}

/* What is in use stays, and so does what another stream may still touch. */
Test(trims, each_call_releases_what_it_is_about)
{
        unsigned int row;

        for (row = 0; row < ROWS; row++) {
                enum call call = measured[row].call;
                struct spm_allocation allocation;
                uint64_t pending;
                uint64_t live;
                spm_event event;

                start_over();
                live = bench_alloc(bench.async, bench.s, SIZE);
                pending = bench_alloc(bench.async, bench.t, SIZE);
                event = bench_record(bench.s);
                bench_free(pending, bench.t);
                make(call, event);
                cr_expect_eq(reserved() < 2 * SIZE, call == OTHER_SYNC || call == CONTEXT_SYNC,
                             "%s", measured[row].name);
                cr_expect_geq(reserved(), SIZE, "%s", measured[row].name);
                cr_expect_eq(spm_find(bench.model, live, &allocation), SPM_OK, "%s",
                             measured[row].name);
        }
}

/* cuMemPoolTrimTo: it neither waits nor asks, and goes below the threshold. Of two blocks, one is
 * in each row's state and the other complete. */
Test(trims, trimming_keeps_what_it_is_told_and_what_is_not_complete)
{
        enum state { LIVE, FREED, SEEN };
        static const struct {
                enum state state;
                size_t keep;
                uint64_t blocks; /* that stay, at least */
                bool releases;
        } rows[] = {
                {LIVE, 0, 1, true},          /* the complete one goes */
                {LIVE, SIZE, 1, true},       /* the one in use is what is kept */
                {LIVE, SIZE + 1, 2, false},  /* one byte more, and both stay */
                {FREED, 0, 1, true},         /* the device is past it, but nobody has looked */
                {FREED, 2 * SIZE, 2, false}, /* nothing to do */
                {SEEN, 0, 0, true},          /* both go */
                {SEEN, SIZE, 1, true},       /* either */
                {SEEN, 2 * SIZE, 2, false},  /* neither */
                {SEEN, SIZE_MAX, 2, false},  /* nor here */
        };
        unsigned int i;

        for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct spm_actions actions;
                size_t released = 99;
                uint64_t first;
                uint64_t second;

                start_over();
                set_threshold(UINT64_MAX);
                first = bench_alloc(bench.async, bench.s, SIZE);
                second = bench_alloc(bench.async, bench.t, SIZE);
                bench_free(second, bench.t);
                bench_sync(SPM_SCOPE_STREAM, bench.t, SPM_SYNC_WAIT);
                if (rows[i].state != LIVE)
                        bench_free(first, bench.s);
                if (rows[i].state == SEEN)
                        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_QUERY);
                bench.device_done = true;
                cr_assert_eq(spm_trim(bench.model, bench.async, rows[i].keep, &released, &actions),
                             SPM_OK);
                bench.log[0] = 0;
                bench_do(&actions, NULL);
                cr_expect_eq(released, 2 * SIZE - reserved(), "row %u", i);
                cr_expect_eq(released != 0, rows[i].releases, "row %u", i);
                cr_expect_geq(reserved(), rows[i].blocks * SIZE, "row %u", i);
                cr_expect_eq(strspn(bench.log, "X"), strlen(bench.log), "row %u: %s", i, bench.log);
        }
}

/* Nobody is served exported memory, so that giving it back is all there is to do with it. */
Test(trims, exported_memory_of_any_size_is_given_back)
{
        static const size_t sizes[] = {4 * KIB, 32 * MIB, 64 * MIB, 1024 * MIB};
        unsigned int i;

        for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                struct spm_actions actions;
                size_t released = 0;
                uint64_t a;

                start_over();
                a = bench_alloc(bench.async, bench.s, sizes[i]);
                cr_assert_eq(spm_export(bench.model, a), SPM_OK);
                bench_free(a, bench.s);
                bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_QUERY);
                cr_expect_eq(bench_stats(bench.async).sealed_bytes, sizes[i]);
                cr_expect_eq(spm_trim(bench.model, bench.async, 0, &released, &actions), SPM_OK,
                             "%zu bytes", sizes[i]);
                cr_expect_geq(released, sizes[i], "%zu bytes", sizes[i]);
                cr_expect_eq(reserved(), 0, "%zu bytes", sizes[i]);
        }
}
