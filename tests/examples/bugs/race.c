/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Race -- a stream reads what another one still writes: an event is missing
 *
 * The two that only read, and the one that reads what nobody writes, are in order.
 *
 * Settings: STREAMPOOL_CHECK=order
 * Expect: race site=read allocation=made earlier=written behind=write access=read
 * Expect: race site=overwritten allocation=made earlier=copied behind=read access=write
 */
#include "cu.h"
enum { BYTES = 1 << 16 };

int main(void)
{
        struct cu_kernels kernels;
        CUdeviceptr input, output;
        CUstream streams[2];
        void *pages;

        cu_start(0);
        cu_load_kernels(&kernels);
        for (int i = 0; i < 2; i++)
                CU_OK(cu.StreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        CU_OK(cu.MemHostAlloc(&pages, BYTES, 0));
        CU_OK(cu.MemAlloc(&input, BYTES)); /* here: made */
        CU_OK(cu.MemAlloc(&output, BYTES));
        CU_OK(cu_spin(&kernels, streams[0], 50000000));
        CU_OK(cu.MemcpyHtoDAsync(input, pages, BYTES / 2, streams[0])); /* here: written */
        CU_OK(cu.MemcpyDtoDAsync(output, input + BYTES / 2, BYTES / 2, streams[1]));
        CU_OK(cu.MemcpyDtoDAsync(output, input, BYTES, streams[1])); /* here: read */
        CU_OK(cu.CtxSynchronize());
        CU_OK(cu_spin(&kernels, streams[0], 50000000));
        CU_OK(cu.MemcpyDtoHAsync(pages, input, BYTES, streams[0])); /* here: copied */
        CU_OK(cu.MemcpyDtoDAsync(output, input, BYTES, streams[1]));
        CU_OK(cu.MemsetD32Async(input, 0, BYTES / 4, streams[1])); /* here: overwritten */
        CU_OK(cu.CtxSynchronize());
        CU_OK(cu.MemFree(input));
        CU_OK(cu.MemFree(output));
        CU_OK(cu.MemFreeHost(pages));
        return 0;
}
