/* SPDX-License-Identifier: Apache-2.0 */

/* Range -- addresses that a pool has for itself */

#include "track/range.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"

#define TIMES ((size_t)4) /* of the memory, rounded up to a power of two */

/* Guards what is taken of every range. */
static struct sp_lock taken_lock = SP_LOCK_INIT(SP_RANK_CONTEXT);

static bool reserve(struct sp_range *range, size_t size)
{
        CUdeviceptr base;

        range->taken = calloc(size / SP_GRAIN, 1);
        if (!range->taken)
                return false;
        if (sp_driver.cuMemAddressReserve(&base, size, SP_GRAIN, 0, 0) != CUDA_SUCCESS) {
                free(range->taken);
                range->taken = NULL;
                return false;
        }
        range->base = base;
        range->size = size;
        atomic_init(&range->users, 1);
        return true;
}

void sp_range_reserve(struct sp_range *range, size_t memory)
{
        size_t least = SP_GRAIN;

        while (least < memory && least < SIZE_MAX / 2 / TIMES)
                least *= 2;
        /* A process whose addresses are limited (RLIMIT_AS) may have fewer to give. */
        for (size_t size = TIMES * least; size >= least && !reserve(range, size); size /= 2)
                ;
}

static bool enter(struct sp_range *range)
{
        unsigned int users = atomic_load(&range->users);

        while (users && !atomic_compare_exchange_weak(&range->users, &users, users + 1))
                ;
        return users;
}

void sp_range_leave(struct sp_range *range)
{
        /* The record may be gone once nobody is in the range. */
        CUdeviceptr base = range->base;
        unsigned char *taken = range->taken;
        size_t size = range->size;

        if (!base || atomic_fetch_sub(&range->users, 1) != 1)
                return;
        sp_driver.cuMemAddressFree(base, size);
        free(taken);
}

CUresult sp_range_take(struct sp_range *range, CUdeviceptr address, size_t size)
{
        size_t first = (address - range->base) / SP_GRAIN;
        bool is_free;

        if (!enter(range))
                return CUDA_ERROR_INVALID_CONTEXT;
        sp_lock_take(&taken_lock);
        is_free = !memchr(range->taken + first, true, size / SP_GRAIN);
        if (is_free)
                memset(range->taken + first, true, size / SP_GRAIN);
        sp_lock_drop(&taken_lock);
        if (is_free)
                return CUDA_SUCCESS;
        sp_range_leave(range);
        return CUDA_ERROR_ALREADY_MAPPED;
}

void sp_range_give(struct sp_range *range, CUdeviceptr address, size_t size)
{
        sp_lock_take(&taken_lock);
        memset(range->taken + (address - range->base) / SP_GRAIN, false, size / SP_GRAIN);
        sp_lock_drop(&taken_lock);
        sp_range_leave(range);
}

bool sp_range_holds(const struct sp_range *range, CUdeviceptr address)
{
        return address - range->base < range->size && atomic_load(&range->users);
}
