/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_ROUTE_USES_H
#define SP_ROUTE_USES_H

/*
 * Uses -- is what a copy or a set touches in a block of the program's?
 *
 * STREAMPOOL_CHECK=uses, the default. Asked before the driver hears of the call, with no lock held;
 * the call itself is changed in nothing, whatever the answer. What each function
 * touches is in uses.def.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/driver.h"
#include "route/route.h"

/* Written once, before the shim is on: is a copy or a set looked at at all, for what it touches or
 * for the order of streams? */
extern bool sp_uses_are_looked_at;

/* What an address may be of. */
enum sp_side {
        SP_SIDE_DEVICE,  /* device memory, or the call fails */
        SP_SIDE_UNIFIED, /* anything */
        SP_SIDE_HOST,    /* a pointer of the host's */
};

/* Rows of bytes, so far apart; and slices of so many of them, so far apart. */
struct sp_use {
        uint64_t address; /* of the first byte */
        size_t width;     /* bytes of a row */
        size_t pitch, rows;
        size_t slice, slices;
        enum sp_side side;
        bool is_write;
};

/* figures; where one is too large to be counted, it is UINT64_MAX */

uint64_t sp_use_times(uint64_t count, uint64_t size);

/** sp_use_span() - from the first byte to the last, gaps included; 0 if nothing is touched, or if
 * rows or slices overlap: then the driver refuses, or has another idea of them. */
uint64_t sp_use_span(const struct sp_use *use);

/** sp_use_next() - the first byte that is touched at @offset or behind it, both counted from the
 * first byte of all. @offset is below the span. */
uint64_t sp_use_next(const struct sp_use *use, uint64_t offset);

/** sp_use_meet() - the first byte that both touch; 0 if there is none, or if that is not seen in a
 * bounded number of steps, one for each row. */
uint64_t sp_use_meet(const struct sp_use *one, const struct sp_use *other);

/* looking; @called is the function's name, a literal, and sp_caller where it was called */

/** sp_use_ask() - what the driver has at @address. */
CUresult sp_use_ask(uint64_t address, CUdeviceptr *base, size_t *bytes) SP_COLD;

/** sp_use_is_nothing() - is this its answer for an address where nothing is? A context that is not
 * as it should be has others. */
bool sp_use_is_nothing(CUresult result);

/** sp_use_site() - where sp_caller is, with its stack if stacks are kept. */
const void *sp_use_site(void) SP_COLD;

void sp_use_look(const char *called, const struct sp_use *use) SP_COLD;

/** sp_use_look_overlap() - do the two ends of a copy, which are as large, touch the same bytes? */
void sp_use_look_overlap(const char *called, const struct sp_use *to,
                         const struct sp_use *from) SP_COLD;

void sp_use_row(const char *called, enum sp_side side, bool is_write, uint64_t address,
                size_t bytes) SP_COLD;
void sp_use_copy(const char *called, enum sp_side to_side, uint64_t to, enum sp_side from_side,
                 uint64_t from, size_t bytes) SP_COLD;
void sp_use_rows(const char *called, uint64_t address, size_t pitch, size_t width,
                 size_t rows) SP_COLD;
void sp_use_2d(const char *called, const CUDA_MEMCPY2D *copy) SP_COLD;
void sp_use_3d(const char *called, const CUDA_MEMCPY3D *copy) SP_COLD;
void sp_use_3d_peer(const char *called, const CUDA_MEMCPY3D_PEER *copy) SP_COLD;
void sp_use_list(const char *called, const CUdeviceptr *to, const CUdeviceptr *from,
                 const size_t *sizes, size_t count) SP_COLD;

#endif
