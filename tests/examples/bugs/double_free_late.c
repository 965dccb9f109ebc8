/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Double free late -- when the block is freed a second time its address would long be another's,
 * which that would free; in quarantine it is nobody's
 *
 * Bare: fails
 * Settings: STREAMPOOL_QUARANTINE=64M
 * Expect: double_free site=second freed_at=first allocation=made
 * Prints: the other block is there
 */
#include <stdio.h>

#include "cu.h"

int main(void)
{
        CUdeviceptr block, other;
        uint32_t word = 0;

        cu_start(0);
        CU_OK(cu.MemAlloc(&block, 1 << 20)); /* here: made */
        CU_OK(cu.MemFree(block));            /* here: first */
        CU_OK(cu.CtxSynchronize());
        CU_OK(cu.MemAlloc(&other, 1 << 20));
        CU_OK(cu.MemsetD32(other, 7, (1 << 20) / sizeof(word)));
        (void)cu.MemFree(block); /* here: second */
        CU_OK(cu.MemcpyDtoH(&word, other, sizeof(word)));
        if (word == 7 && cu.MemFree(other) == CUDA_SUCCESS)
                puts("the other block is there");
        return 0;
}
