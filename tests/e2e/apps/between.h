/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BETWEEN_H
#define BETWEEN_H

/*
 * Between -- a library that stands between a program and the driver
 */

#include <stdbool.h>
#include <stddef.h>
#include <cuda.h>

/** between_start() - looks up the driver's functions; false if there are none. */
bool between_start(void);

CUresult between_allocate(CUdeviceptr *memory, size_t bytes);
CUresult between_free(CUdeviceptr memory);

/** between_allocate_sized() - with a frame of another size for each @size. */
CUresult between_allocate_sized(CUdeviceptr *memory, size_t bytes, size_t size);

/** between_ask() - of a library that asks that one in its turn, as PyTorch's allocator does. */
CUresult between_ask(CUdeviceptr *memory, size_t bytes);

#endif
