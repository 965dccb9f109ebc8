/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_ARRAY_SIZE_H
#define SP_ARRAY_SIZE_H

/*
 * Array size -- how many bytes does a descriptor ask for?
 *
 * An array is opaque and the driver does not tell its size, which is this or a
 * little more, for tiles and alignment.
 */

#include <stddef.h>

#include "driver/entry_points.h"

/**
 * sp_array_bytes() - the elements of an array, or of a mipmapped array with @levels
 *
 * Return: bytes; 0 if the memory is mapped later (sparse and deferred arrays) or if the format has
 * planes of different sizes (the video formats), and for a size beyond SIZE_MAX.
 */
size_t sp_array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned int levels);

#endif
