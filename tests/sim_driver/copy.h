/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_COPY_H
#define SIM_COPY_H

/*
 * Copy -- bytes from here to there, in stream order
 *
 * A box is rows of bytes, rows make slices, slices the whole; a plain copy is one
 * row. Which side is device memory follows from the call or, for the calls that
 * do not say, from the address.
 */

#include "operation.h"

#pragma GCC visibility push(hidden)

enum sim_side {
        SIM_SIDE_HOST,
        SIM_SIDE_DEVICE,
        SIM_SIDE_UNIFIED, /* look at the address */
};

struct sim_place {
        enum sim_side side;
        uint64_t address;
        size_t pitch; /* bytes from row to row */
        size_t slice; /* bytes from slice to slice */
};

struct sim_box {
        struct sim_place from;
        struct sim_place to;
        size_t width; /* bytes of a row */
        size_t height;
        size_t depth;
};

struct sim_box sim_box_row(enum sim_side to, uint64_t to_address, enum sim_side from,
                           uint64_t from_address, size_t bytes);
CUresult sim_copy(CUstream stream, const struct sim_box *box, bool async);

/* The work alone, for a graph: it reads pageable memory when it runs. */
CUresult sim_box_work(struct sim_work *work, const struct sim_box *box);
CUresult sim_copy_work(struct sim_work *work, const CUDA_MEMCPY3D *copy);

#pragma GCC visibility pop

#endif
