/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_CHECK_H
#define SPM_CHECK_H

/*
 * Check -- every invariant by name
 *
 * SPM_CHECK() ends each input in debug builds. While a model is small it
 * looks every time; later often enough that a step stays cheap on average.
 */

#include <stdbool.h>
#include <stdint.h>
#include <streampool/model.h>

#include "text.h"

struct spm_pool_state;

#ifdef SPM_DEBUG
void spm_check_step(struct spm_model *model);
#define SPM_CHECK(model) spm_check_step(model)
#else
#define SPM_CHECK(model) ((void)(model))
#endif

/* inside: what check.c and check_pool.c share */

struct spm_check {
        const struct spm_model *model;
        struct spm_text text; /* what is broken */
        bool failed;
};

/** spm_check_fail() - @what is broken, and @a and @b tell where. The first failure is the one that
 * is told. */
void spm_check_fail(struct spm_check *check, const char *what, uint64_t a, uint64_t b);

static inline void spm_check_equal(struct spm_check *check, const char *what, uint64_t a,
                                   uint64_t b)
{
        if (a != b)
                spm_check_fail(check, what, a, b);
}

static inline void spm_check_at_most(struct spm_check *check, const char *what, uint64_t a,
                                     uint64_t b)
{
        if (a > b)
                spm_check_fail(check, what, a, b);
}

/** spm_check_pool() - all that a pool has. @blocks: so many more were found */
void spm_check_pool(struct spm_check *check, const struct spm_pool_state *pool, uint64_t *blocks);

#endif
