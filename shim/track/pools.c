/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Pools -- what a device and a context have of their own in the model
 *
 * Large blocks of cuMemAlloc begin at multiples of 64 KiB, which is what DMA
 * over PCIe and dma-buf work in. The driver begins them at 2 MiB (M17) and
 * promises 256 bytes; on traces of training that cost 2 to 7 % of all memory.
 */

#include "track/pools.h"

#include "base/config.h"
#include "track/held.h"
#include "track/layout.h"
#include "track/state.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

_Static_assert((int)SP_GROWTH_BALANCED == (int)SPM_GROWTH_BALANCED &&
                       (int)SP_GROWTH_SPEED == (int)SPM_GROWTH_SPEED &&
                       (int)SP_GROWTH_TIGHT == (int)SPM_GROWTH_TIGHT,
               "the words of STREAMPOOL_GROWTH are in the model's order");

static bool is_mapped(const struct sp_device *device)
{
        return device->has_vmm && sp_config()->backing != SP_BACKING_NATIVE;
}

/* The range that a pool's segments will be in. */
static void reserve(const struct sp_device *device, struct sp_range *range, size_t memory)
{
        if (sp_config()->mode != SP_MODE_OBSERVE && is_mapped(device))
                sp_range_reserve(range, memory);
}

/* What both kinds have in common. */
static struct spm_pool_config wish_for(const struct sp_device *device, const struct sp_range *range)
{
        const struct sp_config *config = sp_config();

        return (struct spm_pool_config){
                .provider =
                        config->mode == SP_MODE_OBSERVE ? SPM_PROVIDER_MODEL : SPM_PROVIDER_CALLER,
                .device = device->ordinal,
                .keep = sp_amount_bytes(config->keep, device->total_bytes),
                .growth = (enum spm_growth)config->growth,
                .decay = config->decay,
                .quarantine = config->quarantine,
                .range_base = range->base,
                .range_size = range->size,
        };
}

static bool create(struct spm_pool_config *wish, spm_pool *pool)
{
        struct spm_model *model;
        bool done;

        sp_held_tally(wish);
        model = sp_model_enter();
        done = sp_layout_make_pool(model, wish, pool);
        sp_model_leave();
        return done;
}

/* Asynchronous blocks outlive contexts, so cuMemAlloc segments cannot be behind them (A20). */
static bool can_pool_async(const struct sp_device *device)
{
        return device->default_pool && sp_driver.cuDeviceGetMemPool &&
               (sp_config()->mode == SP_MODE_OBSERVE || is_mapped(device));
}

void sp_pools_prepare_async(struct sp_device *device)
{
        if (can_pool_async(device))
                reserve(device, &device->range, device->total_bytes);
}

void sp_pools_make_async(struct sp_device *device)
{
        struct spm_pool_config wish = wish_for(device, &device->range);

        wish.kind = SPM_POOL_ASYNC;
        if (!can_pool_async(device) || !create(&wish, &device->async_pool))
                device->async_pool = 0;
}

bool sp_pools_make_plain(const struct sp_device *device, struct sp_range *range, spm_pool *pool)
{
        struct spm_pool_config wish;

        if (!can_pool_async(device))
                return false;
        reserve(device, range, device->total_bytes / 2);
        wish = wish_for(device, range);
        wish.kind = SPM_POOL_ASYNC;
        if (create(&wish, pool))
                return true;
        sp_range_leave(range);
        return false;
}

void sp_pools_prepare_sync(struct sp_context *context)
{
        reserve(context->device, &context->range, context->device->total_bytes);
}

bool sp_pools_make_sync(struct sp_context *context)
{
        const struct sp_device *device = context->device;
        struct spm_pool_config wish = wish_for(device, &context->range);

        wish.kind = SPM_POOL_SYNC;
        wish.context = context->model;
        wish.release_needs_idle = !is_mapped(device);
        wish.pending_limit = sp_amount_bytes(sp_config()->pending, device->total_bytes);
        wish.large_size = MIB;
        wish.large_align = 64 * KIB;
        return create(&wish, &context->sync_pool);
}
