/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Corners -- where chance seldom leads
 *
 * Programs of ten particular steps, that a random walk meets once in a hundred
 * million, and that one line of the model is there for.
 */

#include <criterion/criterion.h>

#include "bench.h"

TestSuite(corners, .init = bench_set_up, .fini = bench_tear_down);

static uint64_t alloc_with(struct spm_magazine *magazine, spm_pool pool, spm_stream stream,
                           size_t size)
{
        struct spm_request request = {
                .pool = pool, .stream = stream, .size = size, .magazine = magazine};
        struct spm_allocation allocation;
        struct spm_actions actions;

        cr_assert_eq(spm_alloc(bench.model, &request, &allocation, &actions), SPM_OK);
        return allocation.address;
}

Test(corners, what_a_magazine_serves_on_a_blocking_stream_waits_for_the_legacy_one)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .range_base = (uint64_t)1 << 44,
                .range_size = (size_t)1 << 30,
        };
        spm_pool pool = bench_pool(config);
        uint64_t a = bench_alloc(pool, bench.blocking, MIB);
        struct spm_magazine *magazine;
        struct spm_allocation allocation;

        cr_assert_eq(spm_magazine_new(bench.model, pool, bench.blocking, &magazine), SPM_OK);
        bench_free(a, bench.blocking);
        cr_assert_eq(alloc_with(magazine, pool, bench.blocking, MIB), a);
        cr_assert(spm_magazine_free(magazine, a, 0, NULL));
        cr_assert(spm_magazine_alloc(magazine, MIB, 0, &allocation));
        cr_assert_eq(allocation.address, a);
        bench_sync(SPM_SCOPE_STREAM, bench.blocking, SPM_SYNC_QUERY);
        bench_free(a, bench.s);
        cr_expect_neq(bench_alloc(pool, bench.s, MIB), a, "the legacy stream may be at work");
}
