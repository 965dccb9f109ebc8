/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SHELVES_H
#define SHELVES_H

/*
 * Shelves -- pools with a layout, for the tests of each kind
 *
 * All invariants are checked after every step (bench.h).
 */

#include "bench.h"

#define GRAIN 256

/** shelves_install() - Return: what the first call that was not to be repeated has said. */
static inline enum spm_status shelves_install(spm_pool pool, const char *text,
                                              struct spm_layout_error *error)
{
        static struct spm_layout layout;
        struct spm_actions actions;
        enum spm_status status;

        if (text)
                cr_assert_eq(spm_layout_parse(text, &layout, error), SPM_OK, "%s", text);
        do {
                status =
                        spm_pool_install(bench.model, pool, text ? &layout : NULL, error, &actions);
                bench_do(&actions, NULL);
        } while (status == SPM_AGAIN);
        return status;
}

/** shelves_pool() - whose segments are made up, in grains of 256 bytes, with a layout. Without one
 * it would keep nothing that is idle. */
static inline spm_pool shelves_pool(const char *text)
{
        struct spm_pool_config config = {.kind = SPM_POOL_ASYNC,
                                         .provider = SPM_PROVIDER_MODEL,
                                         .grain = GRAIN,
                                         .align = GRAIN,
                                         .decay = 1000};
        struct spm_layout_error error;
        spm_pool pool = bench_pool(config);

        cr_assert_eq(shelves_install(pool, text, &error), SPM_OK);
        return pool;
}

/** shelves_pool_of() - of segments that somebody has to give, in grains of 2 MiB, in a range. */
static inline spm_pool shelves_pool_of(enum spm_pool_kind kind, const char *text)
{
        struct spm_pool_config config = {.kind = kind,
                                         .release_threshold = SIZE_MAX,
                                         .range_base = (uint64_t)1 << 42,
                                         .range_size = (uint64_t)1 << 36};
        struct spm_layout_error error;
        spm_pool pool;

        if (kind != SPM_POOL_ASYNC)
                config.context = bench.context;
        pool = bench_pool(config);
        cr_assert_eq(shelves_install(pool, text, &error), SPM_OK);
        return pool;
}

static inline struct spm_shelf_stats shelves_stats(spm_pool pool, unsigned int index)
{
        struct spm_shelf_stats stats;

        cr_assert_eq(spm_layout_stats(bench.model, pool, index, &stats), SPM_OK);
        return stats;
}

static inline struct spm_layout_error shelves_refusal(spm_pool pool)
{
        struct spm_layout_error error;

        cr_assert_eq(spm_layout_refusal(bench.model, pool, &error), SPM_OK);
        return error;
}

/** shelves_refused() - an allocation on s. Return: why it was refused. */
static inline enum spm_status shelves_refused(spm_pool pool, size_t size)
{
        struct spm_allocation allocation;

        return bench_try(pool, bench.s, size, true, &allocation);
}

/** shelves_free() - on s, and the device is done with it. */
static inline void shelves_free(uint64_t address)
{
        bench_free(address, bench.s);
        bench_sync(SPM_SCOPE_CONTEXT, bench.context, SPM_SYNC_WAIT);
}

/** shelves_trim() - explicit cleanup. Return: bytes given back. */
static inline size_t shelves_trim(spm_pool pool)
{
        struct spm_actions actions;
        size_t all = 0;
        size_t released;
        enum spm_status status;

        do {
                status = spm_trim(bench.model, pool, 0, &released, &actions);
                bench_do(&actions, NULL);
                all += released;
        } while (status == SPM_AGAIN);
        return all;
}

#endif
