/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wrong kind -- page-locked memory is given to cuMemFree
 *
 * Expect: wrong_kind site=freed allocation=made
 * Expect: leak memory=pinned count=1 site=made
 */
#include "cu.h"
int main(void)
{
        void *pages;

        cu_start(0);
        CU_OK(cu.MemHostAlloc(&pages, 1 << 16, 0));                       /* here: made */
        return cu.MemFree((CUdeviceptr)(uintptr_t)pages) == CUDA_SUCCESS; /* here: freed */
}
