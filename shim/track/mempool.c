/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Memory pools -- which of the driver's pools do we stand in front of?
 *
 * A record is found by its handle as long as the handle is the program's, and
 * by its pool in the model as long as that has memory: `all` holds both kinds.
 * A record goes when nobody looks at it and nothing is in its range; that is
 * looked after whenever one was in use.
 */

#include "track/mempool.h"

#include <sched.h>
#include <stdlib.h>

#include "base/config.h"
#include "base/lock.h"
#include "track/mempool_set.h"
#include "track/pools.h"
#include "track/state.h"

#define PATIENCE_MS 200 /* for the report at exit: who holds the lock may not run any more */

/* Guarded by: table_lock. */
static struct sp_mempool *by_handle;
static struct sp_mempool *all;
static struct sp_lock table_lock = SP_LOCK_INIT(SP_RANK_CONTEXT);

static struct sp_mempool *find_locked(CUmemoryPool handle)
{
        struct sp_mempool *pool;

        HASH_FIND_PTR(by_handle, &handle, pool);
        return pool;
}

static struct sp_mempool *find_model_locked(spm_pool model)
{
        struct sp_mempool *pool = all;

        while (pool && pool->model != model)
                pool = pool->next;
        return pool;
}

/* the life of a pool */

/* Nothing if it is known, or the host has no memory for it: then it is the driver's. */
static void add(CUmemoryPool handle, int ordinal, bool is_default)
{
        struct sp_mempool *made = calloc(1, sizeof(*made));
        bool is_new;

        if (!made)
                return;
        made->handle = handle;
        made->ordinal = ordinal;
        made->is_default = is_default;
        sp_lock_take(&table_lock);
        is_new = !find_locked(handle);
        if (is_new) {
                HASH_ADD_PTR(by_handle, handle, made);
                is_new = made->hh.tbl != NULL;
        }
        if (is_new) {
                made->next = all;
                all = made;
        }
        sp_lock_drop(&table_lock);
        if (is_new)
                sp_mempool_start(handle, ordinal);
        else
                free(made);
}

void sp_mempool_made(CUmemoryPool handle, int ordinal)
{
        add(handle, ordinal, false);
}

void sp_mempool_start_default(struct sp_device *device)
{
        if (!device->default_pool)
                return;
        add(device->default_pool, device->ordinal, true);
        if (device->async_pool)
                sp_mempool_take_over(device->default_pool, device->async_pool);
        sp_mempool_follow_current(device);
}

/* One whose device nobody has used yet. */
static void add_if_default(CUmemoryPool handle)
{
        CUmemoryPool pool;
        int devices = 0;

        if (sp_driver.cuDeviceGetDefaultMemPool && sp_driver.cuDeviceGetCount)
                sp_driver.cuDeviceGetCount(&devices);
        for (int ordinal = 0; ordinal < devices; ordinal++)
                if (sp_driver.cuDeviceGetDefaultMemPool(&pool, ordinal) == CUDA_SUCCESS &&
                    pool == handle) {
                        add(handle, ordinal, true);
                        return;
                }
}

bool sp_mempool_knows(CUmemoryPool handle, int *ordinal)
{
        const struct sp_mempool *pool;

        for (int tries = 0; tries < 2; tries++) {
                sp_lock_take(&table_lock);
                pool = find_locked(handle);
                if (pool)
                        *ordinal = pool->ordinal;
                sp_lock_drop(&table_lock);
                if (pool)
                        return pool;
                add_if_default(handle);
        }
        return false;
}

static void sweep_locked(void)
{
        struct sp_mempool **at = &all;

        while (*at) {
                struct sp_mempool *pool = *at;

                if (!pool->is_destroyed || pool->users || atomic_load(&pool->range.users)) {
                        at = &pool->next;
                        continue;
                }
                *at = pool->next;
                free(pool);
        }
}

struct sp_mempool *sp_mempool_take(CUmemoryPool handle)
{
        struct sp_mempool *pool;

        sp_lock_take(&table_lock);
        pool = find_locked(handle);
        if (pool && pool->is_default)
                pool = NULL;
        if (pool) {
                HASH_DEL(by_handle, pool);
                pool->users++;
        }
        sp_lock_drop(&table_lock);
        return pool;
}

void sp_mempool_put_back(struct sp_mempool *pool)
{
        sp_lock_take(&table_lock);
        HASH_ADD_PTR(by_handle, handle, pool);
        pool->users--;
        sp_lock_drop(&table_lock);
}

static uint64_t higher(uint64_t a, uint64_t b)
{
        return a > b ? a : b;
}

/* Pools that came after one another never held what their marks add up to. */
static void sum_up_locked(int ordinal, const struct spm_stats *stats)
{
        struct sp_device *device = sp_device_of_ordinal(ordinal);
        struct spm_stats *sum = device ? &device->ended : NULL;

        if (!sum)
                return;
        sum->used_high = higher(sum->used_high, stats->used_high);
        sum->reserved_high = higher(sum->reserved_high, stats->reserved_high);
        sum->allocs += stats->allocs;
        sum->frees += stats->frees;
        sum->hits += stats->hits;
        sum->grows += stats->grows;
        sum->releases += stats->releases;
        sum->moves += stats->moves;
}

bool sp_mempool_sum_ended(const struct sp_device *device, struct spm_stats *stats)
{
        if (!sp_lock_take_bounded(&table_lock, PATIENCE_MS))
                return false;
        *stats = device->ended;
        sp_lock_drop(&table_lock);
        return true;
}

void sp_mempool_reset_ended(struct sp_device *device)
{
        if (!sp_lock_take_bounded(&table_lock, PATIENCE_MS))
                return;
        device->ended.used_high = 0;
        device->ended.reserved_high = 0;
        sp_lock_drop(&table_lock);
}

void sp_mempool_end(struct sp_mempool *pool, const struct spm_stats *stats)
{
        sp_range_leave(&pool->range);
        sp_lock_take(&table_lock);
        sum_up_locked(pool->ordinal, stats);
        pool->is_destroyed = true;
        pool->users--;
        sweep_locked();
        sp_lock_drop(&table_lock);
}

struct sp_mempool *sp_mempool_hold(spm_pool model)
{
        struct sp_mempool *pool;

        sp_lock_take(&table_lock);
        pool = model ? find_model_locked(model) : NULL;
        if (pool)
                pool->users++;
        sp_lock_drop(&table_lock);
        return pool;
}

void sp_mempool_let_go(struct sp_mempool *pool)
{
        sp_lock_take(&table_lock);
        pool->users--;
        sweep_locked();
        sp_lock_drop(&table_lock);
}

/* its memory */

spm_pool sp_mempool_model(CUmemoryPool handle)
{
        const struct sp_device *device;
        const struct sp_mempool *pool;
        spm_pool model = 0;
        int ordinal = -1;

        sp_lock_take(&table_lock);
        pool = find_locked(handle);
        if (pool && pool->is_default)
                ordinal = pool->ordinal;
        else if (pool)
                model = pool->model;
        sp_lock_drop(&table_lock);
        device = sp_device_of_ordinal(ordinal);
        return device ? device->async_pool : model;
}

/* Also those that are destroyed and have blocks. */
static unsigned int count_locked(int ordinal)
{
        unsigned int count = 0;

        for (const struct sp_mempool *pool = all; pool; pool = pool->next)
                count += pool->is_asked && pool->ordinal == ordinal;
        return count;
}

/* Return: true once for each pool, for the caller that has to make its memory. */
static bool may_make_locked(struct sp_mempool *pool)
{
        sweep_locked();
        if (pool->is_asked || count_locked(pool->ordinal) >= SP_MEMPOOLS_MAX - 1)
                return false;
        pool->is_asked = true;
        pool->is_being_made = true;
        pool->users++;
        return true;
}

static spm_pool make(struct sp_mempool *pool, const struct sp_device *device)
{
        spm_pool model = 0;
        bool is_made = sp_pools_make_plain(device, &pool->range, &model);

        sp_lock_take(&table_lock);
        pool->model = model;
        pool->is_being_made = false;
        sp_lock_drop(&table_lock);
        if (is_made) {
                sp_mempool_take_over(pool->handle, model);
                if (sp_mempool_note(pool->handle, 0) & SP_MEMPOOL_NATIVE)
                        model = 0;
        }
        sp_mempool_let_go(pool);
        return model;
}

/* Return: false if another thread is making the pool's memory; that takes it some driver calls. */
static bool try_serving(CUmemoryPool handle, const struct sp_device *device, spm_pool *model)
{
        struct sp_mempool *pool, *to_make = NULL;
        bool is_known = true;

        *model = 0;
        sp_lock_take(&table_lock);
        pool = find_locked(handle);
        if (pool && pool->ordinal == device->ordinal && !(pool->notes & SP_MEMPOOL_NATIVE)) {
                is_known = !pool->is_being_made;
                *model = pool->is_default ? device->async_pool : pool->model;
                if (!*model && !pool->is_default && sp_config()->mode == SP_MODE_POOL &&
                    may_make_locked(pool))
                        to_make = pool;
        }
        sp_lock_drop(&table_lock);
        if (to_make)
                *model = make(to_make, device);
        return is_known;
}

spm_pool sp_mempool_serving(CUmemoryPool handle, const struct sp_device *device)
{
        spm_pool model;

        while (!try_serving(handle, device, &model))
                sched_yield();
        return model;
}

CUmemoryPool sp_mempool_handle(spm_pool model)
{
        const struct sp_mempool *pool;
        struct sp_device *device = NULL;
        CUmemoryPool handle;

        while ((device = sp_device_each(device)))
                if (device->async_pool == model)
                        return device->default_pool;
        sp_lock_take(&table_lock);
        pool = find_model_locked(model);
        handle = pool ? pool->handle : NULL;
        sp_lock_drop(&table_lock);
        return handle;
}

unsigned int sp_mempools_on(const struct sp_device *device, spm_pool pools[SP_MEMPOOLS_MAX])
{
        unsigned int count = 0;

        if (device->async_pool)
                pools[count++] = device->async_pool;
        if (!sp_lock_take_bounded(&table_lock, PATIENCE_MS))
                return count;
        for (const struct sp_mempool *pool = all; pool && count < SP_MEMPOOLS_MAX;
             pool = pool->next)
                if (pool->ordinal == device->ordinal && pool->model && !pool->is_destroyed)
                        pools[count++] = pool->model;
        sp_lock_drop(&table_lock);
        return count;
}

bool sp_mempool_reserves(CUdeviceptr address)
{
        const struct sp_mempool *pool;

        sp_lock_take(&table_lock);
        pool = all;
        while (pool && (!pool->model || !sp_range_holds(&pool->range, address)))
                pool = pool->next;
        sp_lock_drop(&table_lock);
        return pool;
}

unsigned int sp_mempool_note(CUmemoryPool handle, unsigned int notes)
{
        struct sp_mempool *pool;
        unsigned int sum = 0;

        sp_lock_take(&table_lock);
        pool = find_locked(handle);
        if (pool)
                sum = pool->notes |= notes;
        sp_lock_drop(&table_lock);
        return sum;
}

/* Another thread may set another one meanwhile: who stores last has asked last. */
void sp_mempool_follow_current(struct sp_device *device)
{
        CUmemoryPool now, again;

        if (!device->default_pool || !sp_driver.cuDeviceGetMemPool ||
            sp_driver.cuDeviceGetMemPool(&again, device->ordinal) != CUDA_SUCCESS)
                return;
        do {
                now = again;
                atomic_store(&device->current_pool, sp_mempool_serving(now, device));
                sp_epoch_end();
        } while (sp_driver.cuDeviceGetMemPool(&again, device->ordinal) == CUDA_SUCCESS &&
                 again != now);
}
