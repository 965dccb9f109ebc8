/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Double free, observed -- where the driver serves everything
 *
 * Settings: STREAMPOOL_MODE=observe
 * Expect: double_free site=second freed_at=first allocation=made
 */
#include "cu.h"

int main(void)
{
        CUdeviceptr block;

        cu_start(0);
        CU_OK(cu.MemAlloc(&block, 1 << 20)); /* here: made */
        CU_OK(cu.MemFree(block));            /* here: first */
        (void)cu.MemFree(block);             /* here: second */
        return 0;
}
