/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GROWING_H
#define GROWING_H

/*
 * Growing -- lists of actions about memory, such as the model gives, made by hand
 */

#include <criterion/criterion.h>
#include <streampool/model.h>

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

#endif
