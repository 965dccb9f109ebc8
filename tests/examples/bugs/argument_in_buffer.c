/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Argument in a buffer -- all arguments are in one piece, and two of them are of blocks that are
 * gone
 *
 * One was freed in the order of a stream.
 *
 * Settings: STREAMPOOL_CHECK=uses,arguments
 * Expect: argument_after_free site=late freed_at=first allocation=made number=1 kernel=copy
 * Expect: argument_after_free site=late freed_at=second allocation=made_async number=2 kernel=copy
 */
#include "cu.h"
enum { BYTES = 1 << 20 };

int main(void)
{
        struct cu_kernels kernels;
        struct {
                CUdeviceptr to, from;
                uint64_t count;
        } arguments = {.count = 0};
        size_t size = sizeof(arguments);
        void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &arguments, CU_LAUNCH_PARAM_BUFFER_SIZE,
                         &size, CU_LAUNCH_PARAM_END};
        CUfunction copy;
        CUstream stream;

        cu_start(0);
        cu_load_kernels(&kernels);
        copy = kernels.copy;
        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.MemAlloc(&arguments.to, BYTES));                /* here: made */
        CU_OK(cu.MemAllocAsync(&arguments.from, BYTES, stream)); /* here: made_async */
        CU_OK(cu.MemFree(arguments.to));                         /* here: first */
        CU_OK(cu.MemFreeAsync(arguments.from, stream));          /* here: second */
        arguments.to += BYTES / 2;
        CU_OK(cu.LaunchKernel(copy, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra)); /* here: late */
        CU_OK(cu.StreamSynchronize(stream));
        return 0;
}
