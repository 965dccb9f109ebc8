/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Double free of a block that was served again -- the second free takes it from its new owner, who
 * is told when he frees it: whose it had been says who was wrong
 *
 * Expect: double_free site=third freed_at=second allocation=again reused=made reused_freed=first
 * Also: STREAMPOOL_MODE=observe
 */
#include "cu.h"

int main(void)
{
        CUdeviceptr block, other;

        cu_start(0);
        CU_OK(cu.MemAlloc(&block, 1 << 20)); /* here: made */
        CU_OK(cu.MemFree(block));            /* here: first */
        CU_OK(cu.CtxSynchronize());
        CU_OK(cu.MemAlloc(&other, 1 << 20)); /* here: again */
        (void)cu.MemFree(block);             /* here: second */
        (void)cu.MemFree(other);             /* here: third */
        return 0;
}
