/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Check -- a broken invariant is named
 */

#include "bench.h"

#include <string.h>

#include "pool.h"
#include "segment.h"
#include "state.h"
#include "subject.h"

TestSuite(check, .init = bench_set_up);

static void expect_named(const char *name)
{
        char text[160] = "";

        cr_expect_not(spm_check(bench.model, text, sizeof(text)));
        cr_expect_not_null(strstr(text, name), "%s", text);
}

static struct spm_block *live_at(uint64_t address)
{
        return spm_area_live_at(spm_area_at(bench.model, address), address);
}

Test(check, holds_for_a_new_model)
{
        cr_expect(spm_check(bench.model, NULL, 0));
}

Test(check, blocks_that_do_not_tile)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 512);

        live_at(a)->size += 512;
        expect_named("I1");
}

Test(check, figures_that_do_not_add_up)
{
        bench_alloc(bench.async, bench.s, 512);
        spm_pool_find(bench.model, bench.async)->used_bytes++;
        expect_named("I3 used");
}

Test(check, a_clock_that_knows_the_future)
{
        struct spm_point future = {.stream = bench.s, .position = 1000};

        spm_clock_raise(bench.model, &spm_subject_stream(bench.model, bench.t)->clock, future);
        expect_named("I4");
}

Test(check, a_host_that_has_seen_what_was_not_submitted)
{
        spm_subject_stream(bench.model, bench.s)->done_poll = 1000;
        expect_named("I4");
}

Test(check, a_ready_block_that_was_exported)
{
        uint64_t a = bench_alloc(bench.async, bench.s, 512);

        live_at(a)->next->exported = true;
        expect_named("I10");
}
