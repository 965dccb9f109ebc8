/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Double free within another block -- by then a larger one lies over the place
 *
 * Expect: double_free site=second freed_at=first allocation=made reused=large
 */
#include "cu.h"

#define HALF ((size_t)4 << 20)

int main(void)
{
        CUdeviceptr block[2], large;

        cu_start(0);
        for (int i = 0; i < 2; i++)
                CU_OK(cu.MemAlloc(&block[i], HALF)); /* here: made */
        for (int i = 0; i < 2; i++)
                CU_OK(cu.MemFree(block[i])); /* here: first */
        CU_OK(cu.CtxSynchronize());
        CU_OK(cu.MemAlloc(&large, 2 * HALF)); /* here: large */
        /* One of the two is where the large one begins. */
        (void)cu.MemFree(block[block[0] == large]); /* here: second */
        CU_OK(cu.MemFree(large));
        return 0;
}
