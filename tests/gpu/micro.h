/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MICRO_H
#define MICRO_H

/*
 * Micro -- what single calls cost, through the entry points that programs use
 *
 * A part is a function that measures a few things and prints each with
 * micro_figure(). Every part leaves nothing behind: no memory, no work.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cu.h"

#define MICRO_KIB ((size_t)1 << 10)
#define MICRO_MIB ((size_t)1 << 20)
#define MICRO_GIB ((size_t)1 << 30)

/* Written once, before any part runs. */
struct micro {
        bool quick;        /* as little of everything as there is */
        uint64_t slice_ns; /* how long one thing is measured */
        CUcontext context;
        struct cu_kernels kernels;
};

extern struct micro micro;

/* How a block is had and given back. */
struct micro_family {
        const char *name;
        CUresult (*take)(CUdeviceptr *p, size_t bytes, CUstream stream);
        CUresult (*give)(CUdeviceptr p, CUstream stream);
};

extern const struct micro_family micro_sync;   /* cuMemAlloc, cuMemFree */
extern const struct micro_family micro_async;  /* cuMemAllocAsync, cuMemFreeAsync */
extern const struct micro_family micro_pinned; /* cuMemHostAlloc, cuMemFreeHost */

/** micro_figure() - print one line: @part.@name, a tab, @value. */
void micro_figure(const char *part, const char *name, double value);

/** micro_now() - nanoseconds of a clock that only goes forward. */
uint64_t micro_now(void);

/** micro_percentile() - of @samples, which are sorted by it; @percent up to 100. */
double micro_percentile(double *samples, size_t count, double percent);

/** micro_random() - the next of a sequence that is the same in every run; never 0. */
uint64_t micro_random(uint64_t *state);

/** micro_size() - 512 B to 4 MiB, with evenly spread logarithms, a multiple of 8. */
size_t micro_size(uint64_t *state);

/** micro_stream() - a stream that waits for no other. */
CUstream micro_stream(void);

/* The parts. */
void micro_pairs(const char *name);       /* one block again and again */
void micro_churn(const char *name);       /* 4096 blocks of all sizes */
void micro_mixed(const char *name);       /* the tail, beside kernels */
void micro_busy(const char *name);        /* cuMemFree behind a long kernel */
void micro_handover(const char *name);    /* from stream to stream, along an event */
void micro_threads(const char *name);     /* 1 to 16, each with a stream */
void micro_grow_async(const char *name);  /* 100 GiB in pieces, and given back */
void micro_grow_small(const char *name);  /* ... by cuMemAlloc, in pieces of 2 MiB */
void micro_grow_middle(const char *name); /* ... of 64 MiB */
void micro_grow_large(const char *name);  /* ... of 1 GiB */
void micro_copies(const char *name);      /* from block to block */
void micro_fail(const char *name);        /* more than there is */
void micro_fill(const char *name);        /* all there is */
void micro_launches(const char *name);    /* what a launch costs the host */
void micro_events(const char *name);      /* and what an event does */

#endif
