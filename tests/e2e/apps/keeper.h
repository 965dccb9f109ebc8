/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KEEPER_H
#define KEEPER_H

/*
 * Keeper -- a library that allocates once and never frees, as NVIDIA's do
 */

#include <stddef.h>
#include <cuda.h>
#include <cudaTypedefs.h>

/** keeper_keep() - allocate from within the library. */
CUresult keeper_keep(PFN_cuMemAlloc_v3020 allocate, size_t bytes);

#endif
