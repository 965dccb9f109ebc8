/* SPDX-License-Identifier: Apache-2.0 */

/* Range -- addresses that a pool has for itself */

#include "track/range.h"

#include <stdint.h>

#define GRAIN ((size_t)2 << 20)
#define TIMES ((size_t)4) /* of the memory, rounded up to a power of two */

void sp_range_reserve(struct sp_range *range, size_t memory)
{
        size_t least = GRAIN;

        while (least < memory && least < SIZE_MAX / 2 / TIMES)
                least *= 2;
        /* A process whose addresses are limited (RLIMIT_AS) may have fewer to give. */
        for (size_t size = TIMES * least; size >= least; size /= 2) {
                CUdeviceptr base;

                if (sp_driver.cuMemAddressReserve(&base, size, GRAIN, 0, 0) != CUDA_SUCCESS)
                        continue;
                range->base = base;
                range->size = size;
                atomic_init(&range->users, 1);
                return;
        }
}

bool sp_range_enter(struct sp_range *range)
{
        unsigned int users = atomic_load(&range->users);

        while (users && !atomic_compare_exchange_weak(&range->users, &users, users + 1))
                ;
        return users;
}

void sp_range_leave(struct sp_range *range)
{
        if (range->base && atomic_fetch_sub(&range->users, 1) == 1)
                sp_driver.cuMemAddressFree(range->base, range->size);
}

bool sp_range_holds(const struct sp_range *range, CUdeviceptr address)
{
        return address - range->base < range->size && atomic_load(&range->users);
}
