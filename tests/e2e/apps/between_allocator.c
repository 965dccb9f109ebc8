/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between, the allocator -- asks a library like NVIDIA's runtime on behalf of others
 *
 * Called like PyTorch's, and with two frames of its own.
 */
#include "between.h"

static volatile int calls; /* keeps a call from being the last thing that a function does */

static __attribute__((noinline)) CUresult ask(CUdeviceptr *memory, size_t bytes)
{
        CUresult result = between_allocate(memory, bytes);

        calls++;
        return result;
}

CUresult between_ask(CUdeviceptr *memory, size_t bytes)
{
        CUresult result = ask(memory, bytes);

        calls++;
        return result;
}
