/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeper -- a library that allocates once and never frees, as NVIDIA's do
 *
 * Built under the names of some of them; KEEP is the name of the function.
 */
#include "keeper.h"

static CUdeviceptr kept; /* keeps the call from being the last thing that the function does */

CUresult KEEP(PFN_cuMemAlloc_v3020 allocate, size_t bytes)
{
        CUresult result = allocate(&kept, bytes);

        kept++;
        return result;
}
