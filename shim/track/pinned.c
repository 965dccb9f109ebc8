/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Pinned -- which pool serves a block of page-locked host memory?
 *
 * Whose work can touch a block? Unified addressing makes every page-locked block
 * portable: any context of the process may copy from it, whatever its flags say.
 * A freed block is known to be idle when its own context has finished what it had
 * been told before, so that is enough only while there is no other context. The
 * question is asked whenever a block is to be served: what a second context did
 * with a block it did before the block was freed, and a context that has ended
 * has finished. While there are two, the driver serves. They are found in three
 * ways, because none sees all of them: those we know, those that were made by
 * cuCtxCreate, and the primary ones, which the runtime also makes by ways of its
 * own.
 *
 * What is a good size? cuMemHostAlloc takes half a millisecond up to 1 MiB and
 * 26 ms for 64 MiB, and what lies idle is the host's real memory. So small blocks
 * share chunks of 2 MiB, a large one has a chunk of its own, so that no small
 * block ever keeps it, and the largest are the driver's: they could not be kept
 * idle within what a pool may keep. Chunks go back when the context was
 * synchronised, because cuMemFreeHost waits for it (U29).
 *
 * Blocks of a page and more begin at a page, which is what O_DIRECT and network
 * cards want of page-locked memory; smaller ones at 512 bytes, as the driver's.
 */

#include "track/pinned.h"

#include "base/config.h"
#include "track/backing.h"
#include "track/held.h"
#include "track/state.h"

#define PAGE    ((size_t)4096)
#define LARGEST ((size_t)64 << 20)
#define KEPT    LARGEST /* idle, of one pool */
#define SHARE   8       /* of the most that was in use: so much more may wait for a look */

#define FLAGS   (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)

/* A pool's place in sp_context.host_pools: its flags, and whether it is for large blocks. */
_Static_assert(2 * (FLAGS + 1) == SP_HOST_POOLS, "one place for each set of flags and size");

/* Atomic: contexts that cuCtxCreate made and that are not destroyed. */
static atomic_uint made;

void sp_pinned_context_made(void)
{
        atomic_fetch_add(&made, 1);
}

void sp_pinned_context_gone(void)
{
        atomic_fetch_sub(&made, 1);
}

/* other contexts */

static bool knows_another(const struct sp_context *context)
{
        struct sp_context *other = NULL;

        while ((other = sp_context_each(other)))
                if (other != context && !atomic_load(&other->gone))
                        return true;
        return false;
}

static int device_count(void)
{
        static atomic_int known;
        int count = atomic_load_explicit(&known, memory_order_relaxed);

        if (count || sp_driver.cuDeviceGetCount(&count) != CUDA_SUCCESS)
                return count;
        atomic_store_explicit(&known, count, memory_order_relaxed);
        return count;
}

/* With one device and its primary context, which is what most programs have, nobody is asked. */
static bool has_another_primary(const struct sp_context *context)
{
        int count = device_count();

        for (int ordinal = 0; ordinal < count; ordinal++) {
                unsigned int flags;
                int active = 1;

                if (context->is_primary && context->device->ordinal == ordinal)
                        continue;
                if (sp_driver.cuDevicePrimaryCtxGetState(ordinal, &flags, &active) !=
                            CUDA_SUCCESS ||
                    active)
                        return true;
        }
        return false;
}

static bool is_alone(const struct sp_context *context)
{
        return atomic_load(&made) <= !context->is_primary && !knows_another(context) &&
               !has_another_primary(context);
}

/* pools */

static spm_pool make(struct sp_context *context, unsigned int place)
{
        const struct sp_device *device = context->device;
        bool is_large = place & 1;
        struct spm_pool_config wish = {
                .kind = SPM_POOL_HOST,
                .provider = SPM_PROVIDER_CALLER,
                .device = device->ordinal,
                .context = context->model,
                .release_needs_idle = true,
                .keep = sp_amount_bytes(sp_config()->keep, device->total_bytes),
                .grain = PAGE,
                .segment_size = is_large ? PAGE : SP_HOST_CHUNK,
                .align = is_large ? PAGE : 512,
                .large_size = PAGE - 1,
                .large_align = PAGE,
        };
        struct spm_model *model = sp_model_enter();
        spm_pool pool = atomic_load(&context->host_pools[place]);

        if (wish.keep > KEPT)
                wish.keep = KEPT;
        sp_held_tally(&wish);
        if (!pool && spm_pool_create(model, &wish, &pool) == SPM_OK)
                atomic_store(&context->host_pools[place], pool);
        sp_model_leave();
        return pool;
}

spm_pool sp_pinned_pool(struct sp_context *context, size_t size, unsigned int flags)
{
        unsigned int place = 2 * flags + (size > SP_HOST_SMALL);
        spm_pool pool;

        if (sp_config()->pinned != SP_PINNED_POOL || flags & ~(unsigned int)FLAGS ||
            size > LARGEST || !is_alone(context))
                return 0;
        pool = atomic_load_explicit(&context->host_pools[place], memory_order_relaxed);
        return pool ? pool : make(context, place);
}

struct sp_context *sp_pinned_owner(spm_pool pool, unsigned int *flags)
{
        struct sp_context *context = NULL;

        while ((context = sp_context_each(context)))
                for (unsigned int place = 0; place < SP_HOST_POOLS; place++) {
                        if (!pool || atomic_load(&context->host_pools[place]) != pool)
                                continue;
                        if (flags)
                                *flags = place / 2;
                        return context;
                }
        return NULL;
}

spm_pool sp_pinned_each(const struct sp_context *context, unsigned int *index)
{
        while (*index < SP_HOST_POOLS) {
                spm_pool pool = atomic_load(&context->host_pools[(*index)++]);

                if (pool)
                        return pool;
        }
        return 0;
}

bool sp_pinned_is_heavy(spm_pool pool)
{
        struct spm_stats stats;
        bool known = spm_stats(sp_model_enter(), pool, &stats) == SPM_OK;

        sp_model_leave();
        return known &&
               stats.ready_bytes + stats.pending_bytes > KEPT + LARGEST + stats.used_high / SHARE;
}
