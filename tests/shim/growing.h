/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GROWING_H
#define GROWING_H

/*
 * Growing -- lists of actions about memory, such as the model gives, made by hand; what comes of
 * them
 */

#include <criterion/criterion.h>
#include <streampool/model.h>

#include "driver/driver.h"
#include "route/perform.h"
#include "track/state.h"

static inline void add_grow(struct spm_actions *actions, spm_pool pool, uint64_t address,
                            size_t size)
{
        actions->item[actions->count++] = (struct spm_action){
                .kind = SPM_ACT_GROW,
                .pool = pool,
                .address = address,
                .size = size,
                .preferred = size,
        };
}

static inline void perform(const struct spm_actions *actions)
{
        struct spm_request request = {.size = 1};

        cr_assert(sp_perform(actions, &request));
}

static inline void grow(spm_pool pool, uint64_t address, size_t size)
{
        struct spm_actions actions = {0};

        add_grow(&actions, pool, address, size);
        perform(&actions);
}

/* Makes the model forget the idle segments of a pool: the list that releases them. */
static inline struct spm_actions forget(spm_pool pool)
{
        struct spm_actions actions;

        spm_trim(sp_model_enter(), pool, 0, NULL, &actions);
        sp_model_leave();
        return actions;
}

/* What came of it. */

static inline bool model_has(CUdeviceptr address)
{
        struct spm_allocation block;
        enum spm_status status = spm_find(sp_model_enter(), address, &block);

        sp_model_leave();
        return status != SPM_E_FOREIGN;
}

static inline bool is_mapped(CUdeviceptr address)
{
        CUdeviceptr base;
        size_t size;

        return sp_driver.cuMemGetAddressRange_v2(&base, &size, address) == CUDA_SUCCESS;
}

static inline size_t used(void)
{
        size_t free_bytes, total;

        cr_assert_eq(sp_driver.cuMemGetInfo_v2(&free_bytes, &total), CUDA_SUCCESS);
        return total - free_bytes;
}

#endif
