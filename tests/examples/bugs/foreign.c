/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Foreign -- the address of the variable, and not what is in it
 *
 * Expect: foreign site=freed
 * Expect: leak memory=device count=1 site=made
 */
#include "cu.h"
int main(void)
{
        CUdeviceptr block;

        cu_start(0);
        CU_OK(cu.MemAlloc(&block, 1 << 20));                               /* here: made */
        return cu.MemFree((CUdeviceptr)(uintptr_t)&block) == CUDA_SUCCESS; /* here: freed */
}
