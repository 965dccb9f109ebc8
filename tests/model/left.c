/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Left -- what the sole stream leaves to others: ready memory beside its own, stamps that nobody
 * asks about any more, stamps that were not to be had
 */

#include <stdlib.h>

#include "bench.h"
#include "state.h"

#define LARGE (4 * MIB)
#define GIB   ((size_t)1 << 30)

static void watch(void)
{
        bench_set_up();
        bench_watch();
}

TestSuite(left, .init = watch, .fini = bench_tear_down);

/* It has been waited for; little is freed beside it, and stamped. */
static uint64_t ready_beside_what_is_stamped(spm_pool pool, size_t ready)
{
        uint64_t big = bench_alloc(pool, 0, ready);
        uint64_t little = bench_alloc(pool, 0, LARGE);

        cr_assert_eq(little, big + ready);
        bench_alloc(pool, 0, LARGE);
        bench_submit(bench.s);
        bench_free(big, 0);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
        bench_submit(bench.s);
        bench_free(little, 0);
        bench_submit(bench.s);
        cr_assert_str_eq(bench.log, "R");
        return little;
}

Test(left, what_is_ready_is_not_joined_with_what_is_not)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_SYNC,
                .context = bench.context,
                .range_base = (uint64_t)1 << 45,
                .range_size = 64 * GIB,
                .release_threshold = SIZE_MAX,
        };
        spm_pool pool = bench_pool(config);
        uint64_t little = ready_beside_what_is_stamped(pool, GIB);
        struct spm_actions actions;
        size_t released = 0;

        cr_expect_eq(bench_alloc(pool, 0, 2 * MIB), little, "it fits there");
        cr_expect_eq(spm_trim(bench.model, pool, 0, &released, &actions), SPM_OK);
        cr_expect_eq(released, GIB);
        bench_do(&actions, NULL);
}

/* The second stream's kernel may be there to stay; what was stamped before it is asked about first.
 */
Test(left, what_was_stamped_before_a_second_stream_came_is_asked_about)
{
        struct spm_allocation allocation;
        uint64_t a = bench_alloc(bench.sync, 0, LARGE);

        bench_submit(bench.s);
        bench_free(a, 0);
        bench_submit(bench.s);
        cr_assert_str_eq(bench.log, "R");
        bench_submit(bench.t);
        bench.no_memory = true;
        cr_expect_eq(bench_try(bench.sync, 0, LARGE, false, &allocation), SPM_E_OUT_OF_MEMORY);
        cr_expect_eq(bench.log[0], 'P', "%s", bench.log);
        cr_expect_eq(bench_try(bench.sync, 0, LARGE, true, &allocation), SPM_OK);
        cr_expect_eq(allocation.address, a);
        /* Waited for by itself, and no stamp behind that kernel. */
        cr_expect(strchr(bench.log, 'H') && !strchr(bench.log, 'R'), "%s", bench.log);
}

/* No later stamp tells it from the work that was submitted then. */
Test(left, what_no_stamp_was_to_be_had_for_is_not_served_early)
{
        uint64_t a = bench_alloc(bench.sync, 0, LARGE);

        bench_submit(bench.s);
        bench_free(a, 0);
        bench.no_records = true;
        bench_submit(bench.s);
        cr_expect_str_eq(bench.log, "R", "nobody has it");
        bench.no_records = false;
        bench_submit(bench.s);
        cr_expect_neq(bench_alloc(bench.sync, 0, LARGE), a);
}

Test(left, for_what_was_served_early_without_a_stamp_the_host_waits)
{
        uint64_t a = bench_alloc(bench.sync, 0, LARGE);

        bench_submit(bench.s);
        bench_free(a, 0);
        cr_assert_eq(bench_alloc(bench.sync, 0, LARGE), a);
        bench.no_records = true;
        bench_submit(bench.s);
        cr_expect_str_eq(bench.log, "RS");
        bench.no_records = false;
        bench_submit(bench.t);
        cr_expect_str_eq(bench.log, "", "nothing is left to be waited for");
}

static bool is_out;

static void *run_out(size_t count, size_t size, void *user)
{
        (void)user;
        return is_out ? NULL : calloc(count, size);
}

/* What is in no set that could be left is not made larger. */
Test(left, a_set_that_cannot_grow_ends_what_is_joined)
{
        struct spm_allocation allocation;
        uint64_t block[3];
        size_t i;

        bench.model->config.alloc = run_out;
        bench_give(bench.async, 32 * MIB);
        for (i = 0; i < 3; i++)
                block[i] = bench_alloc(bench.async, bench.s, 5 * MIB);
        bench_alloc(bench.async, bench.t, 17 * MIB);
        bench_free(block[1], bench.s);
        bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        bench_free(block[0], bench.s);
        bench_free(block[2], bench.s);
        is_out = true;
        bench.no_memory = true;
        cr_expect_neq(bench_try(bench.async, bench.s, 14 * MIB, false, &allocation), SPM_OK);
        is_out = false;
}
