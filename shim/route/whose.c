/* SPDX-License-Identifier: Apache-2.0 */

/* Whose -- is memory that the program asks about ours, and what if others get to know it? */

#include "route/whose.h"

#include "base/life.h"
#include "route/route.h"
#include "route/work.h"
#include "track/backing.h"
#include "track/export.h"
#include "track/pinned.h"
#include "track/state.h"
#include "track/vmm.h"

enum sp_whose sp_whose(CUdeviceptr pointer, struct spm_allocation *block)
{
        enum spm_status status;

        if (!sp_route_pools() || !sp_life_has_begun())
                return SP_FOREIGN;
        status = spm_find(sp_model_enter(), pointer, block);
        sp_model_leave();
        if (status == SPM_E_FOREIGN && sp_backing_reserves(pointer))
                return SP_FREED;
        /* What the driver says of it is to be true. */
        if (status == SPM_E_FOREIGN) {
                sp_vmm_settle_range(pointer, 1);
                return SP_FOREIGN;
        }
        return status == SPM_OK ? SP_OURS : SP_FREED;
}

struct sp_context *sp_whose_context(const struct spm_allocation *block)
{
        struct sp_context *context = sp_context_by_pool(block->pool);

        return context ? context : sp_pinned_owner(block->pool, NULL);
}

bool sp_is_whole_native(const struct spm_allocation *block)
{
        return sp_backing_is_native(block->cookie) && block->address == block->segment_base &&
               block->reserved == block->segment_size;
}

/* The driver refuses asynchronous memory, which has no context (1). */
bool sp_can_be_exported(const struct spm_allocation *block)
{
        return sp_context_by_pool(block->pool) && sp_export_can(block);
}

void sp_known_outside(const struct spm_allocation *block)
{
        struct sp_context *context = sp_whose_context(block);

        if (context)
                sp_work_share(context);
        spm_export(sp_model_enter(), block->address);
        sp_model_leave();
}
