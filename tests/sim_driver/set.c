/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Set -- one value into many elements, in stream order
 *
 * A synchronous set of device memory does not wait for the device; only the set of
 * host memory does (cuda.h, "API synchronization behavior").
 */

#include "set.h"

#include <string.h>

enum {
        TO,
        PITCH,
        SIZE,
        VALUE,
        WIDTH,
        HEIGHT,
};

static void set_elements(const struct sim_work *work)
{
        const uint64_t *word = work->word;

        for (uint64_t y = 0; y < word[HEIGHT]; y++) {
                unsigned char *row = (unsigned char *)(uintptr_t)(word[TO] + y * word[PITCH]);
                uint32_t value = (uint32_t)word[VALUE];

                if (word[SIZE] == 1)
                        memset(row, (int)value, word[WIDTH]);
                for (uint64_t x = 0; word[SIZE] > 1 && x < word[WIDTH]; x++)
                        memcpy(row + x * word[SIZE], &value, word[SIZE]);
        }
}

CUresult sim_set_work(struct sim_work *work, CUdeviceptr to, size_t pitch, unsigned int size,
                      unsigned int value, size_t width, size_t height)
{
        size_t span = pitch * (height - 1) + width * size;

        if (to % size || (height > 1 && (pitch < width * size || pitch % size)))
                return CUDA_ERROR_INVALID_VALUE;
        if (sim_memory_check(to, span))
                return CUDA_ERROR_INVALID_VALUE;
        *work = (struct sim_work){
                .name = "set",
                .duration_ns = sim_cost(width * size * height),
                .effect = set_elements,
                .word = {to, pitch, size, value, width, height},
        };
        sim_work_touch(work, to, span, SIM_WRITE);
        return CUDA_SUCCESS;
}

static CUresult set(CUstream handle, CUdeviceptr to, size_t pitch, unsigned int size,
                    unsigned int value, size_t width, size_t height, bool async)
{
        struct sim_stream *stream;
        struct sim_work work;
        CUresult result = sim_stream_resolve(handle, &stream);

        if (result)
                return result;
        if (!width || !height)
                return CUDA_SUCCESS;
        result = sim_set_work(&work, to, pitch, size, value, width, height);
        if (result)
                return result;
        if (!async && (stream->capture || !sim_memory_find(to)->device))
                return sim_submit_and_wait(stream, &work);
        return sim_submit(stream, &work);
}

#define SET_CALLS(bits, type)                                                                      \
        SIM_DEFAULT_PAIR(cuMemsetD##bits##_v2, (CUdeviceptr to, type value, size_t count),         \
                         (to, value, count))                                                       \
        {                                                                                          \
                return set(stream, to, 0, bits / 8, value, count, 1, false);                       \
        }                                                                                          \
        SIM_STREAM_PAIR(cuMemsetD##bits##Async, stream,                                            \
                        (CUdeviceptr to, type value, size_t count, CUstream stream),               \
                        (to, value, count, stream))                                                \
        {                                                                                          \
                return set(stream, to, 0, bits / 8, value, count, 1, true);                        \
        }                                                                                          \
        SIM_DEFAULT_PAIR(cuMemsetD2D##bits##_v2,                                                   \
                         (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height),  \
                         (to, pitch, value, width, height))                                        \
        {                                                                                          \
                return set(stream, to, pitch, bits / 8, value, width, height, false);              \
        }                                                                                          \
        SIM_STREAM_PAIR(cuMemsetD2D##bits##Async, stream,                                          \
                        (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height,    \
                         CUstream stream),                                                         \
                        (to, pitch, value, width, height, stream))                                 \
        {                                                                                          \
                return set(stream, to, pitch, bits / 8, value, width, height, true);               \
        }

SET_CALLS(8, unsigned char)
SET_CALLS(16, unsigned short)
SET_CALLS(32, unsigned int)
