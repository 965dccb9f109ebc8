/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Set after unmap -- the range is there, and nothing is mapped in it any more
 *
 * Expect: use_after_free site=late freed_at=first allocation=made access=write
 * Also: STREAMPOOL_MODE=observe
 */
#include "cu.h"

#define SIZE ((size_t)2 << 20)

static CUmemGenericAllocationHandle make(void)
{
        CUmemAllocationProp properties = {
                .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
        };
        CUmemGenericAllocationHandle memory;

        CU_OK(cu.MemCreate(&memory, SIZE, &properties, 0));
        return memory;
}

static void let_in(CUdeviceptr range)
{
        CUmemAccessDesc access = {
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };

        CU_OK(cu.MemSetAccess(range, SIZE, &access, 1));
}

int main(void)
{
        CUmemGenericAllocationHandle memory;
        CUdeviceptr range;

        cu_start(0);
        memory = make();
        CU_OK(cu.MemAddressReserve(&range, SIZE, 0, 0, 0));
        CU_OK(cu.MemMap(range, SIZE, 0, memory, 0)); /* here: made */
        let_in(range);
        CU_OK(cu.MemsetD8(range, 1, SIZE));
        CU_OK(cu.CtxSynchronize());
        CU_OK(cu.MemUnmap(range, SIZE));   /* here: first */
        (void)cu.MemsetD8(range, 2, SIZE); /* here: late */
        CU_OK(cu.MemRelease(memory));
        CU_OK(cu.MemAddressFree(range, SIZE));
        return 0;
}
