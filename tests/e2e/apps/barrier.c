/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barrier -- a program that takes cuMemFree for a device synchronisation
 *
 * It says whether the device was idle when the free returned: always on the
 * bare driver, and with STREAMPOOL_FREE=sync.
 */
#include <stdio.h>

#include "cu.h"

int main(void)
{
        struct cu_kernels kernels;
        CUdeviceptr p, unrelated;
        uint32_t *seen;
        CUstream stream;
        int drained = 0;

        cu_start(0);
        cu_load_kernels(&kernels);
        seen = cu_counter(1);
        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.MemAlloc(&p, 1 << 20));
        for (uint32_t i = 1; i <= 10; i++) {
                CU_OK(cu.MemAlloc(&unrelated, 50000));
                CU_OK(cu_spin(&kernels, stream, 2000000));
                CU_OK(cu_fill(&kernels, stream, (CUdeviceptr)(uintptr_t)seen, 1, i));
                CU_OK(cu.MemFree(unrelated));
                drained += *(volatile uint32_t *)seen == i;
        }
        CU_OK(cu.CtxSynchronize());
        CU_OK(cu.MemFree(p));
        CU_OK(cu.MemFreeHost(seen));
        printf("drained %d of 10\n", drained);
        return 0;
}
