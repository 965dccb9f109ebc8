/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Double free of managed memory -- the driver serves it, and not the pool
 *
 * Expect: double_free site=second freed_at=first allocation=made
 */
#include "cu.h"

int main(void)
{
        CUdeviceptr block;

        cu_start(0);
        CU_OK(cu.MemAllocManaged(&block, 5000, CU_MEM_ATTACH_GLOBAL)); /* here: made */
        CU_OK(cu.MemFree(block));                                      /* here: first */
        (void)cu.MemFree(block);                                       /* here: second */
        return 0;
}
