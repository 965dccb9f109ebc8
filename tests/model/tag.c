/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tag -- whose the memory is, by names of the caller's own (B2)
 *
 * That the tags sum up to the totals is an invariant, checked after every step.
 */

#include "bench.h"
#include "uses.h"

#include <string.h>

TestSuite(tag, .init = uses_set_up, .fini = bench_tear_down);

static uint32_t tag_named(const char *name)
{
        uint32_t tag = 0;

        cr_assert_eq(spm_tag_add(bench.model, name, &tag), SPM_OK);
        return tag;
}

static enum spm_status try_alloc(uint32_t tag, size_t size, struct spm_allocation *allocation)
{
        struct spm_request request = {
                .pool = uses.pool,
                .stream = bench.s,
                .size = size,
                .tag = tag,
        };
        struct spm_actions actions;
        enum spm_status status;

        do {
                status = spm_alloc(bench.model, &request, allocation, &actions);
                bench_do(&actions, &request);
        } while (status == SPM_AGAIN);
        return status;
}

static struct spm_block_id tagged(uint32_t tag, size_t size)
{
        struct spm_allocation allocation;

        cr_assert_eq(try_alloc(tag, size, &allocation), SPM_OK);
        return spm_block_id(&allocation);
}

struct search {
        uint32_t tag;
        struct spm_tag_figures figures;
        struct spm_tag_figures sum;
        unsigned int count;
};

static bool visit(const struct spm_tag_figures *figures, void *user)
{
        struct search *search = user;

        search->count++;
        if (figures->tag == search->tag)
                search->figures = *figures;
        search->sum.live_bytes += figures->live_bytes;
        search->sum.live_blocks += figures->live_blocks;
        search->sum.bytes_at_peak += figures->bytes_at_peak;
        search->sum.made += figures->made;
        search->sum.made_bytes += figures->made_bytes;
        search->sum.freed += figures->freed;
        return true;
}

static struct search search(uint32_t tag)
{
        struct search search = {.tag = tag};

        spm_each_tag(bench.model, visit, &search);
        return search;
}

static struct spm_tag_figures figures_of(uint32_t tag)
{
        return search(tag).figures;
}

Test(tag, a_name_has_one_tag)
{
        uint32_t loader = tag_named("loader");

        cr_expect_neq(loader, 0u);
        cr_expect_eq(tag_named("loader"), loader);
        cr_expect_neq(tag_named("loade"), loader);
        cr_expect_neq(tag_named("loaders"), loader);
        cr_expect_str_eq(figures_of(loader).name, "loader");
        cr_expect_str_eq(figures_of(0).name, "");
        cr_expect_eq(search(0).count, 4);
}

Test(tag, a_bad_name_is_refused)
{
        char name[SPM_TAG_NAME + 1];
        uint32_t tag = 77;

        memset(name, 'x', sizeof(name));
        name[SPM_TAG_NAME] = '\0';
        cr_expect_eq(spm_tag_add(bench.model, name, &tag), SPM_E_INVALID_VALUE);
        cr_expect_eq(spm_tag_add(bench.model, "", &tag), SPM_E_INVALID_VALUE);
        cr_expect_eq(spm_tag_add(bench.model, NULL, &tag), SPM_E_INVALID_VALUE);
        cr_expect_eq(tag, 77u);
        name[SPM_TAG_NAME - 1] = '\0';
        cr_expect_eq(spm_tag_add(bench.model, name, &tag), SPM_OK);
}

Test(tag, an_allocation_carries_its_tag)
{
        uint32_t loader = tag_named("loader");
        struct spm_block_id a = tagged(loader, 1000);
        struct spm_block_id b = tagged(0, 500);
        uint32_t tag;

        cr_assert_eq(spm_tag_of(bench.model, a, &tag), SPM_OK);
        cr_expect_eq(tag, loader);
        cr_assert_eq(spm_tag_of(bench.model, b, &tag), SPM_OK);
        cr_expect_eq(tag, 0u);
        cr_expect_eq(figures_of(loader).live_bytes, 1000);
        cr_expect_eq(figures_of(0).live_bytes, 500);
        bench_free(a.address, bench.s);
        cr_expect_eq(spm_tag_of(bench.model, a, &tag), SPM_E_USE_AFTER_FREE);
        cr_expect_eq(figures_of(loader).live_bytes, 0);
        cr_expect_eq(figures_of(loader).live_bytes_high, 1000);
        cr_expect_eq(figures_of(loader).freed, 1);
        cr_expect_eq(figures_of(loader).made_bytes, 1000);
}

Test(tag, an_unknown_one_is_refused)
{
        struct spm_allocation allocation;

        cr_expect_eq(try_alloc(999, MIB, &allocation), SPM_E_UNKNOWN);
        cr_expect_eq(bench_stats(uses.pool).live_blocks, 0);
}

/* Own peaks do not sum up to the peak of all; shares of it do. */
Test(tag, shares_of_the_peak_sum_up_to_it)
{
        uint32_t one = tag_named("one");
        uint32_t two = tag_named("two");
        struct spm_tag_figures total;
        struct spm_block_id a = tagged(one, 6000);
        struct spm_block_id b;

        bench_free(a.address, bench.s);
        b = tagged(two, 5000);
        a = tagged(one, 2000);
        bench_free(b.address, bench.s);
        (void)tagged(two, 100);
        spm_tag_total(bench.model, &total);
        cr_expect_eq(total.live_bytes_high, 7000);
        cr_expect_eq(figures_of(one).bytes_at_peak, 2000);
        cr_expect_eq(figures_of(two).bytes_at_peak, 5000);
        cr_expect_eq(figures_of(one).live_bytes_high, 6000);
        cr_expect_eq(search(0).sum.bytes_at_peak, 7000);
        cr_expect_eq(search(0).sum.live_bytes, total.live_bytes);
}

Test(tag, what_is_undone_was_not_made)
{
        uint32_t one = tag_named("one");
        struct spm_block_id a = tagged(one, 6000);
        struct spm_actions actions;

        cr_assert_eq(spm_alloc_undo(bench.model, a.address, &actions), SPM_OK);
        bench_do(&actions, NULL);
        cr_expect_eq(figures_of(one).made, 0);
        cr_expect_eq(figures_of(one).made_bytes, 0);
        cr_expect_eq(figures_of(one).freed, 0);
        cr_expect_eq(figures_of(one).live_blocks, 0);
}

Test(tag, sums_hold_at_every_moment)
{
        uint32_t tags[5] = {0, tag_named("a"), tag_named("b"), tag_named("c"), tag_named("d")};
        struct spm_block_id live[32] = {{0}};
        struct spm_tag_figures total;
        uint32_t dice = 1;

        for (int i = 0; i < 4000; i++) {
                struct spm_block_id *at;

                dice = dice * 1664525u + 1013904223u;
                at = &live[(dice >> 8) % 32];
                if (at->address)
                        bench_free(at->address, bench.s);
                *at = (dice >> 16) % 3 ? tagged(tags[(dice >> 20) % 5], 1 + (dice >> 12) % 4000)
                                       : (struct spm_block_id){0};
                spm_tag_total(bench.model, &total);
                cr_assert_eq(search(0).sum.live_bytes, total.live_bytes);
                cr_assert_eq(search(0).sum.bytes_at_peak, total.live_bytes_high, "step %d", i);
                cr_assert_eq(total.live_bytes, bench_stats(uses.pool).used_current);
                cr_assert_eq(total.live_bytes_high, bench_stats(uses.pool).used_high);
        }
        cr_expect_eq(search(0).sum.made, total.made);
        cr_expect_eq(search(0).sum.made_bytes, total.made_bytes);
        cr_expect_eq(search(0).sum.freed, total.freed);
}

static void find_line(const char *text, void *user)
{
        bool *found = user;

        *found =
                *found || !strcmp(text, "tag 1 loader live 1000 high 1000 at the peak of all 1000");
}

Test(tag, a_dump_has_them)
{
        bool found = false;

        (void)tagged(tag_named("loader"), 1000);
        spm_dump(bench.model, find_line, &found);
        cr_expect(found);
}
