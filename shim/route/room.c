/* SPDX-License-Identifier: Apache-2.0 */

/* Room -- could the device hold it at all? */

#include "route/room.h"

#include "track/mempool.h"
#include "track/state.h"
#include "track/vmm.h"

/* Less is not worth the question, which takes some microseconds. */
#define LARGE ((size_t)64 << 20)

uint64_t sp_room_idle(const struct sp_device *device)
{
        spm_pool pools[SP_MEMPOOLS_MAX];
        unsigned int count = sp_mempools_on(device, pools);
        uint64_t sum = sp_vmm_kept(device->ordinal);
        struct spm_model *model = sp_model_enter();
        struct sp_context *context = NULL;
        struct spm_stats stats;

        while ((context = sp_context_each(context)))
                if (context->device == device && !atomic_load(&context->gone) &&
                    spm_stats(model, context->sync_pool, &stats) == SPM_OK)
                        sum += stats.ready_bytes + stats.pending_bytes;
        for (unsigned int i = 0; i < count; i++)
                if (spm_stats(model, pools[i], &stats) == SPM_OK)
                        sum += stats.ready_bytes + stats.pending_bytes;
        sp_model_leave();
        return sum;
}

/* The device of the current context, if the pool is one of it. */
static const struct sp_device *device_of(spm_pool pool)
{
        const struct sp_context *current = sp_context_current();
        spm_pool pools[SP_MEMPOOLS_MAX];
        unsigned int count;

        if (!current || current->sync_pool == pool)
                return current ? current->device : NULL;
        count = sp_mempools_on(current->device, pools);
        while (count && pools[count - 1] != pool)
                count--;
        return count ? current->device : NULL;
}

bool sp_room_for(spm_pool pool, size_t size)
{
        const struct sp_device *device = size >= LARGE ? device_of(pool) : NULL;
        size_t unused, total;

        if (!device || sp_driver.cuMemGetInfo_v2(&unused, &total) != CUDA_SUCCESS)
                return true;
        return size <= unused || size - unused <= sp_room_idle(device);
}
