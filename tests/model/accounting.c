/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accounting -- what a pool's figures say after each call
 *
 * USED is measured: on an H200 (driver 580.159) it is the sum of the sizes asked
 * for, and falls when the free is called, whatever the stream still has to do.
 * RESERVED is the memory behind the pool. The driver obtains it 32 MiB at a time
 * and the model as its growth mode says, so that of RESERVED the tests compare
 * whether it grew or fell, and never by how much.
 */

#include "bench.h"

#include <inttypes.h>

TestSuite(accounting, .init = bench_set_up, .fini = bench_tear_down);

static uint64_t get(enum spm_pool_attribute attribute)
{
        uint64_t value = UINT64_MAX;

        cr_assert_eq(spm_pool_get_attribute(bench.model, bench.async, attribute, &value), SPM_OK);
        return value;
}

static uint64_t used(void)
{
        return get(SPM_ATTR_USED_MEM_CURRENT);
}

static uint64_t reserved(void)
{
        return get(SPM_ATTR_RESERVED_MEM_CURRENT);
}

/* as measured */

Test(accounting, used_is_what_was_asked_for_and_falls_at_the_free_call)
{
        static const struct {
                size_t size;
                uint64_t used;
        } measured[] = {
                {1, 1},
                {512, 513},
                {513, 1026},
                {MIB + 1, 1049603},
                {2 * MIB, 3146755},
                {33 * MIB, 37749763},
        };
        uint64_t last = 0;
        uint64_t full;
        unsigned int i;

        for (i = 0; i < sizeof(measured) / sizeof(measured[0]); i++) {
                last = bench_alloc(bench.async, bench.s, measured[i].size);
                cr_expect_eq(used(), measured[i].used, "after %zu: %" PRIu64, measured[i].size,
                             used());
                cr_expect_eq(get(SPM_ATTR_USED_MEM_HIGH), measured[i].used);
                cr_expect_geq(reserved(), used());
        }
        full = reserved();
        bench_free(last, bench.s);
        cr_expect_eq(used(), 3146755, "the stream has not got there yet");
        cr_expect_eq(reserved(), full);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        cr_expect_eq(used(), 3146755);
        cr_expect_lt(reserved(), full, "what the large block had is given back");
        cr_expect_geq(reserved(), used(), "and not what is in use");
        cr_expect_eq(get(SPM_ATTR_USED_MEM_HIGH), 37749763);
        cr_expect_eq(get(SPM_ATTR_RESERVED_MEM_HIGH), full);
        cr_assert_eq(spm_pool_set_attribute(bench.model, bench.async, SPM_ATTR_USED_MEM_HIGH, 0),
                     SPM_OK);
        cr_expect_eq(get(SPM_ATTR_USED_MEM_HIGH), 3146755, "a reset makes it the current value");
        cr_expect_eq(get(SPM_ATTR_RESERVED_MEM_HIGH), full, "each high mark by itself");
}

/* What may be set: CURRENT never, HIGH to 0 only. Measured, except where cuda.h alone says so. */
Test(accounting, high_marks_are_reset_by_zero_and_nothing_else_is_set)
{
        static const struct {
                enum spm_pool_attribute attribute;
                uint64_t value;
                enum spm_status status;
        } rows[] = {
                {SPM_ATTR_USED_MEM_HIGH, 5, SPM_E_READ_ONLY},
                {SPM_ATTR_USED_MEM_HIGH, UINT64_MAX, SPM_E_READ_ONLY}, /* cuda.h */
                {SPM_ATTR_USED_MEM_HIGH, 0, SPM_OK},
                {SPM_ATTR_RESERVED_MEM_HIGH, 5, SPM_E_READ_ONLY}, /* cuda.h */
                {SPM_ATTR_RESERVED_MEM_HIGH, 0, SPM_OK},          /* cuda.h */
                {SPM_ATTR_RESERVED_MEM_CURRENT, 0, SPM_E_READ_ONLY},
                {SPM_ATTR_USED_MEM_CURRENT, 0, SPM_E_READ_ONLY}, /* cuda.h */
        };
        unsigned int i;

        for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                enum spm_pool_attribute attribute = rows[i].attribute;
                enum spm_pool_attribute current = attribute == SPM_ATTR_USED_MEM_HIGH
                                                          ? SPM_ATTR_USED_MEM_CURRENT
                                                          : SPM_ATTR_RESERVED_MEM_CURRENT;
                uint64_t before;
                uint64_t after;

                bench_tear_down();
                bench_set_up();
                bench_alloc(bench.async, bench.s, 700);
                bench_free(bench_alloc(bench.async, bench.s, 64 * MIB), bench.s);
                bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
                before = get(attribute);
                after = rows[i].status == SPM_OK ? get(current) : before;
                if (rows[i].status == SPM_OK)
                        cr_assert_gt(before, after, "row %u resets nothing", i);
                cr_expect_eq(
                        spm_pool_set_attribute(bench.model, bench.async, attribute, rows[i].value),
                        rows[i].status, "row %u", i);
                cr_expect_eq(get(attribute), after, "row %u", i);
        }
}

/* call by call */

enum call {
        ALLOC,       /* 512 KiB on s */
        ALLOC_LARGE, /* 40 MiB on s: more than is left anywhere */
        ALLOC_ZERO,
        ALLOC_TOO_MUCH, /* past the cap of the pool */
        ALLOC_REFUSED,  /* growth fails */
        FREE_ASYNC,     /* the block that was allocated last */
        FREE_SYNC,      /* likewise, naming no stream */
        FREE_TWICE,     /* and once more */
        UNDO,           /* the block that was allocated last */
        EXPORT,         /* likewise */
        QUERY,          /* s is idle, says the driver */
        TRIM,
        RESET
};

#define CAP (128 * MIB)

static enum spm_status ask(size_t size, uint64_t *address)
{
        struct spm_allocation allocation;
        enum spm_status status = bench_try(bench.async, bench.s, size, false, &allocation);

        if (status == SPM_OK)
                *address = allocation.address;
        return status;
}

static enum spm_status let_go(uint64_t address, enum spm_free_kind kind)
{
        struct spm_actions actions;

        return spm_free(bench.model, address, 0, kind, bench.s, NULL, &actions);
}

static enum spm_status carry(enum call call, uint64_t *last)
{
        struct spm_actions actions;

        bench.no_memory = call == ALLOC_REFUSED;
        switch (call) {
        case ALLOC:
                return ask(512 * KIB, last);
        case ALLOC_LARGE:
        case ALLOC_REFUSED:
                return ask(40 * MIB, last);
        case ALLOC_ZERO:
                return ask(0, last);
        case ALLOC_TOO_MUCH:
                return ask(CAP + 1, last);
        case FREE_ASYNC:
        case FREE_TWICE:
                return let_go(*last, SPM_FREE_ASYNC);
        case FREE_SYNC:
                return let_go(*last, SPM_FREE_SYNC);
        case UNDO:
                return spm_alloc_undo(bench.model, *last, &actions);
        case EXPORT:
                return spm_export(bench.model, *last);
        case QUERY:
                bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_QUERY);
                return SPM_OK;
        case TRIM:
                return spm_trim(bench.model, bench.async, 0, NULL, &actions);
        case RESET:
                return spm_reset_peaks(bench.model, bench.async);
        }
        return SPM_E_INVALID_VALUE;
}

enum change { FALLS = -1, STAYS, GROWS };

static enum change change(uint64_t before, uint64_t after)
{
        return after > before ? GROWS : after < before ? FALLS : STAYS;
}

/* One life of a pool. Each row is a call, its answer, and then USED, the most it has been, the
 * change of RESERVED, live blocks, and allocations counted. Sizes are in KiB. */
static const struct {
        enum call call;
        enum spm_status status;
        uint64_t used, high;
        enum change reserved;
        uint64_t live, allocs;
} life[] = {
        {ALLOC, SPM_OK, 512, 512, GROWS, 1, 1},
        {ALLOC, SPM_OK, 1024, 1024, STAYS, 2, 2},
        {ALLOC_ZERO, SPM_E_INVALID_VALUE, 1024, 1024, STAYS, 2, 2},
        {ALLOC_TOO_MUCH, SPM_E_OUT_OF_MEMORY, 1024, 1024, STAYS, 2, 2},
        {ALLOC_REFUSED, SPM_E_OUT_OF_MEMORY, 1024, 1024, STAYS, 2, 2},
        {FREE_ASYNC, SPM_OK, 512, 1024, STAYS, 1, 2}, /* at the call */
        {FREE_TWICE, SPM_E_DOUBLE_FREE, 512, 1024, STAYS, 1, 2},
        {ALLOC, SPM_OK, 1024, 1024, STAYS, 2, 3}, /* the same memory, in stream order */
        {FREE_SYNC, SPM_OK, 512, 1024, STAYS, 1, 3},
        {FREE_TWICE, SPM_E_DOUBLE_FREE, 512, 1024, STAYS, 1, 3},
        {QUERY, SPM_OK, 512, 1024, STAYS, 1, 3},
        {ALLOC, SPM_OK, 1024, 1024, STAYS, 2, 4},
        {UNDO, SPM_OK, 512, 1024, STAYS, 1, 3}, /* it was never handed out */
        {QUERY, SPM_OK, 512, 1024, STAYS, 1, 3},
        {ALLOC_LARGE, SPM_OK, 41472, 41472, GROWS, 2, 4},
        {FREE_ASYNC, SPM_OK, 512, 41472, STAYS, 1, 4},
        {TRIM, SPM_OK, 512, 41472, STAYS, 1, 4}, /* it does not wait */
        {QUERY, SPM_OK, 512, 41472, STAYS, 1, 4},
        {TRIM, SPM_OK, 512, 41472, FALLS, 1, 4},
        {RESET, SPM_OK, 512, 512, STAYS, 1, 4},
        {ALLOC, SPM_OK, 1024, 1024, STAYS, 2, 5},
        {EXPORT, SPM_OK, 1024, 1024, STAYS, 2, 5},
        {FREE_ASYNC, SPM_OK, 512, 1024, STAYS, 1, 5}, /* served to nobody, but used by nobody */
        {QUERY, SPM_OK, 512, 1024, STAYS, 1, 5},
        {ALLOC, SPM_OK, 1024, 1024, STAYS, 2, 6}, /* beside it */
};

static void expect_sums(const struct spm_stats *stats, unsigned int row)
{
        cr_expect_eq(stats->rounded_current + stats->pending_bytes + stats->ready_bytes +
                             stats->sealed_bytes,
                     stats->reserved_current, "row %u: every byte is somewhere", row);
        cr_expect_leq(stats->used_current, stats->reserved_current, "row %u", row);
        cr_expect_geq(stats->reserved_high, stats->reserved_current, "row %u", row);
        cr_expect_geq(stats->live_blocks_high, stats->live_blocks, "row %u", row);
}

Test(accounting, every_call_moves_the_figures_it_concerns_and_no_other)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .max_size = CAP,
                .release_threshold = CAP,
        };
        struct spm_stats before = {0};
        uint64_t last = 0;
        unsigned int i;

        bench.async = bench_pool(config);
        for (i = 0; i < sizeof(life) / sizeof(life[0]); i++) {
                enum spm_status status = carry(life[i].call, &last);
                struct spm_stats stats = bench_stats(bench.async);

                cr_expect_eq(status, life[i].status, "row %u: %s", i, spm_status_name(status));
                cr_expect_eq(stats.used_current, life[i].used * KIB, "row %u: used %" PRIu64, i,
                             stats.used_current);
                cr_expect_eq(stats.used_high, life[i].high * KIB, "row %u: high %" PRIu64, i,
                             stats.used_high);
                cr_expect_eq(change(before.reserved_current, stats.reserved_current),
                             life[i].reserved, "row %u: reserved %" PRIu64 ", then %" PRIu64, i,
                             before.reserved_current, stats.reserved_current);
                cr_expect_eq(stats.live_blocks, life[i].live, "row %u: live %" PRIu64, i,
                             stats.live_blocks);
                cr_expect_eq(stats.allocs, life[i].allocs, "row %u: allocs %" PRIu64, i,
                             stats.allocs);
                expect_sums(&stats, i);
                before = stats;
        }
}

/* magazines: the same calls, with and without one */

static int served; /* by the magazine alone */
static int kept;   /* likewise */

static uint64_t serve(spm_stream stream, size_t size, struct spm_magazine *magazine)
{
        struct spm_request request = {
                .pool = bench.async,
                .stream = stream,
                .size = size,
                .magazine = magazine,
        };
        struct spm_allocation allocation;
        struct spm_actions actions;
        enum spm_status status = SPM_OK;

        if (magazine && spm_magazine_alloc(magazine, size, 0, &allocation)) {
                served++;
                return allocation.address;
        }
        do {
                status = spm_alloc(bench.model, &request, &allocation, &actions);
                bench_do(&actions, &request);
        } while (status == SPM_AGAIN);
        cr_assert_eq(status, SPM_OK);
        return allocation.address;
}

static void take_back(uint64_t address, spm_stream stream, struct spm_magazine *magazine)
{
        struct spm_allocation freed;

        if (magazine && spm_magazine_free(magazine, address, 0, &freed))
                kept++;
        else
                bench_free(address, stream);
}

#define STEPS 2000
#define HELD  24

/* Blocks of many sizes come and go on s, and now and then one on t. */
static void run(bool with_magazine, struct spm_stats history[STEPS])
{
        static const size_t sizes[] = {1, 700, 4096, 5000, 32 * KIB, 100 * KIB, MIB, 3 * MIB};
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .range_base = (uint64_t)1 << 44,
                .range_size = (size_t)1 << 36,
        };
        struct spm_magazine *magazine = NULL;
        uint64_t held[HELD] = {0};
        uint32_t random = 4711;
        int i;

        bench_tear_down();
        bench_set_up();
        bench.async = bench_pool(config);
        if (with_magazine)
                cr_assert_eq(spm_magazine_new(bench.model, bench.async, bench.s, &magazine),
                             SPM_OK);
        for (i = 0; i < STEPS; i++) {
                bool other = i % 16 == 0;
                unsigned int slot;

                random = random * 1664525 + 1013904223;
                slot = (random >> 8) % HELD;
                if (held[slot])
                        take_back(held[slot], bench.s, magazine);
                held[slot] = held[slot] ? 0 : serve(bench.s, sizes[random >> 29], magazine);
                if (other)
                        bench_free(bench_alloc(bench.async, bench.t, 2 * MIB), bench.t);
                /* Else marks are passed at the beginning only. */
                if (i % 32 == 31)
                        spm_reset_peaks(bench.model, bench.async);
                history[i] = bench_stats(bench.async);
                cr_assert(spm_check(bench.model, NULL, 0));
        }
        if (magazine)
                spm_magazine_end(bench.model, magazine);
}

Test(accounting, a_magazine_counts_as_the_pool_does)
{
        static struct spm_stats plain[STEPS];
        static struct spm_stats quick[STEPS];
        int i;

        run(false, plain);
        run(true, quick);
        cr_assert(served > STEPS / 10 && kept > STEPS / 10, "hardly used: %d, %d", served, kept);
        for (i = 0; i < STEPS; i++) {
                cr_assert_eq(quick[i].used_current, plain[i].used_current, "step %d", i);
                cr_assert_eq(quick[i].used_high, plain[i].used_high, "step %d", i);
                cr_assert_eq(quick[i].live_blocks, plain[i].live_blocks, "step %d", i);
                cr_assert_eq(quick[i].live_blocks_high, plain[i].live_blocks_high, "step %d", i);
                cr_assert_eq(quick[i].rounded_current, plain[i].rounded_current, "step %d", i);
                cr_assert_eq(quick[i].allocs, plain[i].allocs, "step %d", i);
                cr_assert_eq(quick[i].frees, plain[i].frees, "step %d", i);
                expect_sums(&quick[i], (unsigned int)i);
        }
}
