/* SPDX-License-Identifier: Apache-2.0 */

/* Thrift -- the process holds more of a device than STREAMPOOL_SOFT_LIMIT */

#include "route/thrift.h"

#include "base/config.h"
#include "route/perform.h"
#include "track/limit.h"
#include "track/mempool.h"
#include "track/range.h"
#include "track/state.h"
#include "track/vmm.h"

/* What is beyond, of what is kept of the program's own mappings. */
static void trim_vmm(int device, uint64_t excess)
{
        uint64_t kept = sp_vmm_kept(device);

        if (kept)
                sp_vmm_trim(device, kept > excess ? kept - excess : 0);
}

bool sp_thrift_refuses(const struct sp_device *device, const struct spm_action *action)
{
        uint64_t excess = action->last ? 0 : sp_limit_excess(device->ordinal, action->size);

        if (excess)
                trim_vmm(device->ordinal, excess);
        return excess && sp_limit_excess(device->ordinal, action->size) > 0;
}

static void trim_pool(spm_pool pool, const struct sp_device *device)
{
        uint64_t excess = sp_limit_excess(device->ordinal, 0);
        struct spm_stats stats;
        bool has_any;

        if (!excess)
                return;
        has_any = spm_stats(sp_model_enter(), pool, &stats) == SPM_OK && stats.ready_bytes;
        sp_model_leave();
        if (has_any) {
                /* Rather a part of a chunk too much than too little. */
                uint64_t keep = stats.reserved_current > excess + SP_GRAIN - 1
                                        ? stats.reserved_current - excess - (SP_GRAIN - 1)
                                        : 0;

                sp_trim_pool(pool, keep);
        }
}

static uint64_t trim_async(const struct sp_device *device)
{
        spm_pool pools[SP_MEMPOOLS_MAX];
        unsigned int count = sp_mempools_on(device, pools);

        for (unsigned int i = 0; i < count; i++)
                trim_pool(pools[i], device);
        return sp_limit_excess(device->ordinal, 0);
}

/* Giving plain cuMemAlloc memory back would wait for the whole context (F10). */
void sp_thrift_trim(void)
{
        struct sp_device *device = NULL;

        if (sp_config()->backing == SP_BACKING_NATIVE)
                return;
        while ((device = sp_device_each(device))) {
                uint64_t excess = sp_limit_excess(device->ordinal, 0);
                struct sp_context *context = NULL;

                if (excess)
                        trim_vmm(device->ordinal, excess);
                if (!device->has_vmm || !sp_limit_excess(device->ordinal, 0) || !trim_async(device))
                        continue;
                while ((context = sp_context_each(context)))
                        if (context->device == device && sp_context_pools(context))
                                trim_pool(context->sync_pool, device);
        }
}
