/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_CHUNK_H
#define SP_TRACK_CHUNK_H

/*
 * Chunk -- physical memory, before it has an address and between two
 *
 * When the model moves a segment, it asks to release it and then to grow
 * elsewhere. The memory of the one is kept as a spare for the other: that saves
 * the driver's search for memory and its clearing of it, and nobody else in the
 * system can take it in between.
 *
 * Spares belong to one call of the program's, which gives back what it had no
 * use for before it waits for anything, and at its end.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "driver/driver.h"
#include "track/context.h"

struct sp_chunk {
        struct sp_device *device;
        size_t size;
        CUmemGenericAllocationHandle handle;
        bool was_mapped;
        atomic_int descriptor; /* for other processes, plus one; 0: none was made */
};

#define SP_SPARES_MAX 64

struct sp_spares {
        unsigned int count;
        struct sp_chunk item[SP_SPARES_MAX];
};

/**
 * sp_chunk_take() - a spare of just that size, or new memory within the limit
 * @spares: NULL for none. If the device is full, those of another size are given back first.
 *
 * Return: CUDA_SUCCESS, or the driver's code.
 */
CUresult sp_chunk_take(struct sp_chunk *chunk, struct sp_device *device, size_t size,
                       struct sp_spares *spares);

/** sp_chunk_export() - a descriptor of it, the same each time, which is the chunk's own. Return:
 * CUDA_SUCCESS, or the driver's code. */
CUresult sp_chunk_export(struct sp_chunk *chunk, int *descriptor);

/** sp_chunk_give() - a spare if there is room, else the driver's again. @spares: NULL for none. */
void sp_chunk_give(const struct sp_chunk *chunk, struct sp_spares *spares);

/** sp_spares_drop() - gives all of them back. Return: true if there were any. */
bool sp_spares_drop(struct sp_spares *spares);

#endif
