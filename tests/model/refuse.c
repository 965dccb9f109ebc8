/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refuse -- one request of the host's memory that is refused at a bad moment
 */

#include <stdlib.h>

#include "bench.h"
#include "state.h"

#define PLACE ((uint64_t)1 << 44)

static struct spm_model *model;
static spm_context context;
static spm_stream stream;
static size_t left; /* requests that are granted */

static void *ask(size_t count, size_t size, void *user)
{
        (void)user;
        if (!left)
                return NULL;
        left--;
        return calloc(count, size);
}

static void give(void *memory, void *user)
{
        (void)user;
        free(memory);
}

static void set_up(void)
{
        struct spm_config config = {.alloc = ask, .free = give};

        left = SIZE_MAX;
        cr_assert_eq(spm_model_new(&config, &model), SPM_OK);
        cr_assert_eq(spm_context_add(model, 0, &context), SPM_OK);
        cr_assert_eq(spm_stream_add(model, context, SPM_STREAM_NON_BLOCKING, &stream), SPM_OK);
}

static void tear_down(void)
{
        char text[160] = "";

        cr_assert(spm_check(model, text, sizeof(text)), "%s", text);
        spm_model_free(model);
}

TestSuite(refuse, .init = set_up, .fini = tear_down);

static spm_pool new_pool(struct spm_pool_config config)
{
        spm_pool pool;

        cr_assert_eq(spm_pool_create(model, &config, &pool), SPM_OK);
        return pool;
}

/* I10: a part of what is known outside begins in a segment that is in use, so that records are
 * needed on the way; two are at hand, and there are no more. */
Test(refuse, exported_memory_is_served_to_nobody_though_it_cannot_be_given_back)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .provider = SPM_PROVIDER_MODEL,
                .max_size = 4 * MIB,
                .small_size = 512,
        };
        size_t sizes[3] = {MIB + MIB / 2, MIB + MIB / 2, MIB};
        uint64_t at[3];
        struct spm_actions actions;
        struct spm_stats stats;
        spm_pool pool;
        unsigned int i;

        pool = new_pool(config);
        for (i = 0; i < 3; i++) {
                struct spm_request request = {.pool = pool, .stream = stream, .size = sizes[i]};
                struct spm_allocation allocation;

                cr_assert_eq(spm_alloc(model, &request, &allocation, &actions), SPM_OK);
                at[i] = allocation.address;
        }
        for (i = 1; i < 3; i++) {
                cr_assert_eq(spm_export(model, at[i]), SPM_OK);
                cr_assert_eq(spm_free(model, at[i], 0, SPM_FREE_SYNC, 0, NULL, &actions), SPM_OK);
        }
        model->spare->next->next = NULL;
        model->spares = 2;
        left = 0;
        spm_trim(model, pool, 0, NULL, &actions);
        cr_assert_eq(spm_stats(model, pool, &stats), SPM_OK);
        cr_expect_eq(stats.ready_bytes, 0);
        cr_expect_eq(stats.sealed_bytes + stats.rounded_current, stats.reserved_current);
}

Test(refuse, a_segment_that_is_refused_leaves_its_place_to_another)
{
        struct spm_pool_config config = {.kind = SPM_POOL_ASYNC};
        enum spm_status status;
        size_t n;

        for (n = 0;; n++) {
                spm_pool first = new_pool(config);
                spm_pool second = new_pool(config);
                uint64_t place = PLACE + n * MIB * 16;
                spm_segment segment;

                left = n;
                status = spm_segment_add(model, first, place, 2 * MIB, NULL, &segment);
                left = SIZE_MAX;
                if (status == SPM_OK)
                        break;
                cr_assert_eq(status, SPM_E_HOST_MEMORY);
                cr_expect_eq(spm_segment_add(model, second, place, 4 * MIB, NULL, &segment), SPM_OK,
                             "request %zu", n);
        }
        cr_expect_gt(n, 3u, "there is something to refuse");
}

Test(refuse, a_segment_that_cannot_be_cut_off_stays)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC, .provider = SPM_PROVIDER_MODEL, .initial_size = 8 * MIB};
        spm_pool pool = new_pool(config);
        struct spm_actions actions;
        struct spm_stats stats;
        spm_segment segment;

        cr_assert_eq(spm_stats(model, pool, &stats), SPM_OK);
        cr_assert_eq(stats.reserved_current, 8 * MIB);
        cr_assert_eq(spm_segment_add(model, pool, model->areas[0]->base + 8 * MIB, 2 * MIB, NULL,
                                     &segment),
                     SPM_OK);
        model->spare = NULL;
        model->spares = 0;
        left = 0;
        cr_expect_eq(spm_trim(model, pool, 0, NULL, &actions), SPM_OK);
        cr_assert_eq(spm_stats(model, pool, &stats), SPM_OK);
        cr_expect_eq(stats.reserved_current, 10 * MIB);
        left = SIZE_MAX;
        cr_expect_eq(spm_trim(model, pool, 0, NULL, &actions), SPM_OK);
        cr_assert_eq(spm_stats(model, pool, &stats), SPM_OK);
        cr_expect_eq(stats.reserved_current, 0);
}

static uint64_t alloc(spm_pool pool, spm_stream on)
{
        struct spm_request request = {.pool = pool, .stream = on, .size = 2 * MIB};
        struct spm_allocation allocation;
        struct spm_actions actions;

        cr_assert_eq(spm_alloc(model, &request, &allocation, &actions), SPM_OK);
        return allocation.address;
}

static struct spm_extra *hide_extras(void)
{
        struct spm_extra *kept = model->extra;

        model->extra = NULL;
        model->extras = 0;
        return kept;
}

static void show_extras(struct spm_extra *kept)
{
        while (kept) {
                struct spm_extra *next = kept->next;

                kept->next = model->extra;
                model->extra = kept;
                model->extras++;
                kept = next;
        }
}

/* A free cannot fail. It waits for its stream, for the legacy stream and for the birth of the
 * block; where that cannot be remembered, the block is served to nobody. */
Test(refuse, a_block_of_which_too_much_would_have_to_be_remembered_is_lost)
{
        struct spm_pool_config config = {.kind = SPM_POOL_ASYNC, .provider = SPM_PROVIDER_MODEL};
        spm_pool pool = new_pool(config);
        struct spm_actions actions;
        struct spm_stats stats;
        struct spm_extra *kept;
        spm_stream blocking;
        uint64_t a;

        cr_assert_eq(spm_stream_add(model, context, SPM_STREAM_BLOCKING, &blocking), SPM_OK);
        a = alloc(pool, stream);
        cr_assert_eq(spm_free(model, a, 0, SPM_FREE_ASYNC, stream, NULL, &actions), SPM_OK);
        cr_assert_eq(alloc(pool, stream), a);
        kept = hide_extras();
        left = 0;
        cr_assert_eq(spm_free(model, a, 0, SPM_FREE_ASYNC, blocking, NULL, &actions), SPM_OK);
        left = SIZE_MAX;
        show_extras(kept);
        cr_assert_eq(spm_stats(model, pool, &stats), SPM_OK);
        cr_expect_eq(stats.ready_bytes, 0);
        cr_expect_eq(stats.sealed_bytes, 2 * MIB);
        cr_expect_neq(alloc(pool, blocking), a);
        cr_expect_neq(alloc(pool, stream), a);
}
