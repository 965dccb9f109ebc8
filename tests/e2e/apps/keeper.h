/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KEEPER_H
#define KEEPER_H

/*
 * Keeper -- a library that allocates once and never frees, as NVIDIA's do
 */

#include <stddef.h>
#include <cuda.h>
#include <cudaTypedefs.h>

/** keep_in_*() - allocate from within the library. */
CUresult keep_in_cufft(PFN_cuMemAlloc_v3020 allocate, size_t bytes);
CUresult keep_in_nccl(PFN_cuMemAlloc_v3020 allocate, size_t bytes);
CUresult keep_in_torch_cuda(PFN_cuMemAlloc_v3020 allocate, size_t bytes);

#endif
