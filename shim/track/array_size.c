/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Array size -- how many bytes does a descriptor ask for?
 *
 * Formats are compared by number, because old headers lack the names of new
 * ones. Block-compressed formats store 4 x 4 texels in 8 or 16 bytes.
 */

#include "track/array_size.h"

#include <stdbool.h>
#include <stdint.h>

#ifndef CUDA_ARRAY3D_DEFERRED_MAPPING
#define CUDA_ARRAY3D_DEFERRED_MAPPING 0x80
#endif

enum {
        UNORM_INT_101010_2 = 0x50,
        BC1_UNORM = 0x91,
        BC1_UNORM_SRGB = 0x92,
        BC4_UNORM = 0x97,
        BC4_SNORM = 0x98,
        BC7_UNORM_SRGB = 0x9e,
};

/* Bytes of one channel; 0 if that is no answer for @format. */
static size_t channel_bytes(unsigned int format)
{
        switch (format) {
        case CU_AD_FORMAT_UNSIGNED_INT8:
        case CU_AD_FORMAT_SIGNED_INT8:
        case CU_AD_FORMAT_UNORM_INT8X1:
        case CU_AD_FORMAT_UNORM_INT8X2:
        case CU_AD_FORMAT_UNORM_INT8X4:
        case CU_AD_FORMAT_SNORM_INT8X1:
        case CU_AD_FORMAT_SNORM_INT8X2:
        case CU_AD_FORMAT_SNORM_INT8X4:
                return 1;
        case CU_AD_FORMAT_UNSIGNED_INT16:
        case CU_AD_FORMAT_SIGNED_INT16:
        case CU_AD_FORMAT_HALF:
        case CU_AD_FORMAT_UNORM_INT16X1:
        case CU_AD_FORMAT_UNORM_INT16X2:
        case CU_AD_FORMAT_UNORM_INT16X4:
        case CU_AD_FORMAT_SNORM_INT16X1:
        case CU_AD_FORMAT_SNORM_INT16X2:
        case CU_AD_FORMAT_SNORM_INT16X4:
                return 2;
        case CU_AD_FORMAT_UNSIGNED_INT32:
        case CU_AD_FORMAT_SIGNED_INT32:
        case CU_AD_FORMAT_FLOAT:
                return 4;
        default:
                return 0;
        }
}

static bool is_block_compressed(unsigned int format)
{
        return format >= BC1_UNORM && format <= BC7_UNORM_SRGB;
}

/* Bytes of one element, or of one block of them. */
static size_t unit_bytes(unsigned int format, unsigned int channels)
{
        if (format == UNORM_INT_101010_2)
                return 4;
        if (format == BC1_UNORM || format == BC1_UNORM_SRGB || format == BC4_UNORM ||
            format == BC4_SNORM)
                return 8;
        if (is_block_compressed(format))
                return 16;
        return channel_bytes(format) * channels;
}

static size_t at_least_one(size_t extent)
{
        return extent ? extent : 1;
}

size_t sp_array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned int levels)
{
        size_t unit = unit_bytes(desc->Format, desc->NumChannels);
        size_t width = at_least_one(desc->Width);
        size_t height = at_least_one(desc->Height);
        size_t depth = at_least_one(desc->Depth);
        bool is_flat = desc->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
        size_t sum = 0;

        if (desc->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
                return 0;
        for (unsigned int level = 0; level < levels; level++) {
                size_t columns = is_block_compressed(desc->Format) ? (width + 3) / 4 : width;
                size_t rows = is_block_compressed(desc->Format) ? (height + 3) / 4 : height;
                size_t bytes;

                if (__builtin_mul_overflow(columns, rows, &bytes) ||
                    __builtin_mul_overflow(bytes, depth, &bytes) ||
                    __builtin_mul_overflow(bytes, unit, &bytes) ||
                    __builtin_add_overflow(sum, bytes, &sum))
                        return 0;
                /* The driver makes no more levels than there are. */
                if (width == 1 && height == 1 && (is_flat || depth == 1))
                        break;
                width = at_least_one(width / 2);
                height = at_least_one(height / 2);
                if (!is_flat)
                        depth = at_least_one(depth / 2);
        }
        return sum;
}
