/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interior -- a pointer that has been moved on is given back
 *
 * Expect: interior site=freed allocation=made
 * Expect: leak memory=device count=1 site=made
 */
#include "cu.h"
int main(void)
{
        CUdeviceptr block;

        cu_start(0);
        CU_OK(cu.MemAlloc(&block, 1 << 20)); /* here: made */
        for (int i = 0; i < 4; i++)
                block += 512;
        return cu.MemFree(block) == CUDA_SUCCESS; /* here: freed */
}
