/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Argument after free -- a kernel is given a block that is gone, and this time has no use for it
 *
 * Whether a kernel uses what it is given is not seen: with a count that is not 0 it would.
 *
 * Settings: STREAMPOOL_CHECK=arguments
 * Expect: argument_after_free site=late freed_at=freed allocation=made number=1 kernel=fill
 */
#include "cu.h"
enum { COUNT = 4096 };

int main(void)
{
        struct cu_kernels kernels;
        CUfunction fill;
        CUdeviceptr block;
        uint64_t count = COUNT;
        uint32_t value = 1;
        void *arguments[] = {&block, &count, &value};

        cu_start(0);
        cu_load_kernels(&kernels);
        fill = kernels.fill;
        CU_OK(cu.MemAlloc(&block, COUNT * 4)); /* here: made */
        CU_OK(cu.LaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
        CU_OK(cu.MemFree(block)); /* here: freed */
        count = 0;
        CU_OK(cu.LaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL)); /* here: late */
        CU_OK(cu.CtxSynchronize());
        return 0;
}
