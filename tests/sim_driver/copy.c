/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Copy -- bytes from here to there, in stream order
 *
 * What the host waits for (cuda.h, "API synchronization behavior", and M32):
 *
 *   - a synchronous copy waits until it is done, except from pageable memory of up
 *     to 64 KiB, which is staged, and between device memory;
 *   - an asynchronous one never waits, except to pageable memory;
 *   - an asynchronous copy from pageable memory is staged: the source may change
 *     as soon as the call returns. In a capture it is read at the launch.
 */

#include "copy.h"

#include <string.h>

#define STAGED_MAX (64u << 10)

enum {
        TO,
        TO_PITCH,
        TO_SLICE,
        FROM,
        FROM_PITCH,
        FROM_SLICE,
        WIDTH,
        HEIGHT,
        DEPTH,
};

static void move_bytes(const struct sim_work *work)
{
        const uint64_t *word = work->word;
        const unsigned char *from = (const unsigned char *)(uintptr_t)word[FROM];
        unsigned char *to = (unsigned char *)(uintptr_t)word[TO];

        if (work->staged)
                from = work->staged->bytes;
        for (uint64_t z = 0; z < word[DEPTH]; z++)
                for (uint64_t y = 0; y < word[HEIGHT]; y++)
                        memmove(to + z * word[TO_SLICE] + y * word[TO_PITCH],
                                from + z * word[FROM_SLICE] + y * word[FROM_PITCH], word[WIDTH]);
}

struct sim_box sim_box_row(enum sim_side to, uint64_t to_address, enum sim_side from,
                           uint64_t from_address, size_t bytes)
{
        return (struct sim_box){
                .to = {.side = to, .address = to_address},
                .from = {.side = from, .address = from_address},
                .width = bytes,
                .height = 1,
                .depth = 1,
        };
}

/* From the first byte to the last, gaps included. */
static size_t span(const struct sim_box *box, const struct sim_place *place)
{
        return place->slice * (box->depth - 1) + place->pitch * (box->height - 1) + box->width;
}

/* Turns UNIFIED into what it is; 1 if the device side is not the program's memory (M31). */
static CUresult settle(const struct sim_box *box, struct sim_place *place)
{
        const struct sim_allocation *allocation = sim_memory_find(place->address);

        if (!place->address)
                return CUDA_ERROR_INVALID_VALUE;
        if (place->side == SIM_SIDE_UNIFIED)
                place->side = allocation ? SIM_SIDE_DEVICE : SIM_SIDE_HOST;
        if (place->side == SIM_SIDE_DEVICE && !allocation)
                return CUDA_ERROR_INVALID_VALUE;
        if (allocation && sim_memory_check(place->address, span(box, place)))
                return CUDA_ERROR_INVALID_VALUE;
        if (allocation && allocation->kind != SIM_MEMORY_PINNED &&
            allocation->kind != SIM_MEMORY_REGISTERED)
                place->side = SIM_SIDE_DEVICE;
        return CUDA_SUCCESS;
}

static bool is_pageable(const struct sim_place *place)
{
        return place->side == SIM_SIDE_HOST && !sim_memory_find(place->address);
}

static bool host_waits(const struct sim_box *box, bool async)
{
        bool staged = is_pageable(&box->from) && span(box, &box->from) <= STAGED_MAX;

        if (is_pageable(&box->to))
                return true;
        if (async || staged)
                return false;
        return box->from.side == SIM_SIDE_HOST || box->to.side == SIM_SIDE_HOST;
}

static struct sim_work copy_work(const struct sim_box *box)
{
        struct sim_work work = {
                .name = "copy",
                .duration_ns = sim_cost(box->width * box->height * box->depth),
                .effect = move_bytes,
                .word =
                        {
                                [TO] = box->to.address,
                                [TO_PITCH] = box->to.pitch,
                                [TO_SLICE] = box->to.slice,
                                [FROM] = box->from.address,
                                [FROM_PITCH] = box->from.pitch,
                                [FROM_SLICE] = box->from.slice,
                                [WIDTH] = box->width,
                                [HEIGHT] = box->height,
                                [DEPTH] = box->depth,
                        },
        };

        sim_work_touch(&work, box->to.address, span(box, &box->to), SIM_WRITE);
        sim_work_touch(&work, box->from.address, span(box, &box->from), SIM_READ);
        return work;
}

CUresult sim_box_work(struct sim_work *work, const struct sim_box *box)
{
        struct sim_box own = *box;
        CUresult result;

        if (!own.width || !own.height || !own.depth)
                return CUDA_ERROR_INVALID_VALUE;
        result = settle(&own, &own.from);
        if (result)
                return result;
        result = settle(&own, &own.to);
        if (result)
                return result;
        *work = copy_work(&own);
        return CUDA_SUCCESS;
}

CUresult sim_copy(CUstream handle, const struct sim_box *box, bool async)
{
        struct sim_box own = *box;
        struct sim_stream *stream;
        struct sim_work work;
        CUresult result = sim_stream_resolve(handle, &stream);

        if (result)
                return result;
        if (!own.width || !own.height || !own.depth)
                return CUDA_SUCCESS;
        result = settle(&own, &own.from);
        if (result)
                return result;
        result = settle(&own, &own.to);
        if (result)
                return result;
        work = copy_work(&own);
        if (stream->capture)
                return async ? sim_submit(stream, &work) : sim_submit_and_wait(stream, &work);
        if (is_pageable(&own.from) && !is_pageable(&own.to))
                work.staged = sim_staged_new((const void *)(uintptr_t)own.from.address,
                                             span(&own, &own.from));
        if (host_waits(&own, async))
                return sim_submit_and_wait(stream, &work);
        return sim_submit(stream, &work);
}
