/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DEADLOCK_H
#define DEADLOCK_H

/*
 * Deadlock -- does anything wait for a kernel that ends only when the program goes on?
 *
 * A persistent kernel holds a stream until somebody opens its gate. Meanwhile the
 * program allocates, launches and frees on other streams, and it is that which
 * opens the gate. An allocator that makes the host, or another stream, wait for
 * the kernel has made a deadlock out of a correct program.
 *
 *   deadlock.c         the list of cases, and how one is run
 *   deadlock_first.c   the kernel's stream was the only one with work before
 *   deadlock_loop.c    loops beside a kernel; who opens its gate; captures
 *   deadlock_cross.c   kernels and streams that wait for each other
 *   deadlock_memory.c  growth, and a device that is full
 *
 * On a real device a kernel gives up after a few seconds, so that the machine is
 * never stuck; one that gave up is a deadlock. On the simulated driver it holds
 * on, and the wait that nothing can end ends the program.
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cu.h"

/* In the order of the table that says what they do. */
enum opener { BY_KERNEL, BY_COPY, BY_SET, BY_VALUE, BY_GRAPH, BY_HOST_FUNCTION, OPENERS };

/* Gates of one case, in words of their own. */
#define GATES 4

struct ground {
        CUcontext context;
        struct cu_kernels kernels;
        uint32_t *gave_up;    /* pinned: kernels that ended in vain */
        uint32_t *mismatches; /* pinned */
        uint32_t *gates;      /* pinned */
        CUdeviceptr far_gate; /* on the device, for copies and sets */
        uint32_t *one;        /* pinned */
        CUgraphExec open;     /* a graph that opens the first gate */
        CUstream a, b, blocking;
        CUstream first; /* gates are shut on this stream, so that it is the only one with work */
        int start;      /* of the ways in which a case is done, the one to begin with */
};

/* Everything is loaded, has run once, and is idle: what is loaded late may wait for a device. */
void ground_open(struct ground *g, int start);
/* The host waits for everything; 1 if a kernel gave up or a word was wrong. */
int ground_close(struct ground *g);
/* The same without closing: gates are shut again, the context has been waited for. */
bool ground_settle(struct ground *g);

/* A persistent kernel on @stream that @opener will end. */
void hold(struct ground *g, CUstream stream, enum opener opener);
/* Work on @stream that ends it. */
void open_on(struct ground *g, CUstream stream, enum opener opener);
/* The host ends all kernels that do not wait for a gate on the device. */
void open_by_host(struct ground *g);

/* A block of cuMemAlloc is given back in use, and taken again, a few times; then it is freed. */
void churn(struct ground *g, CUstream stream, size_t bytes);
/* @count blocks that are allocated on @stream, filled, checked and freed there. */
void loop_async(struct ground *g, CUstream stream, int count, size_t bytes);
/* @count blocks of cuMemAlloc that are filled and checked on @stream, and not freed. */
void loop_sync(struct ground *g, CUstream stream, int count, size_t bytes, CUdeviceptr *blocks);
void free_all(CUdeviceptr *blocks, int count);
CUdeviceptr take_async(CUstream stream, size_t bytes);
CUdeviceptr take(size_t bytes);
void give_async(CUdeviceptr p, CUstream stream);
void give(CUdeviceptr p);
void fill_and_check(struct ground *g, CUstream stream, CUdeviceptr p, uint64_t words);

/* The cases. */
#define CASES                                                                                      \
        CASE(first_own)                                                                            \
        CASE(first_own_created_later)                                                              \
        CASE(first_own_other_thread)                                                               \
        CASE(first_legacy)                                                                         \
        CASE(first_legacy_created_later)                                                           \
        CASE(first_legacy_other_thread)                                                            \
        CASE(first_blocking)                                                                       \
        CASE(first_blocking_created_later)                                                         \
        CASE(first_per_thread)                                                                     \
        CASE(first_freed_behind)                                                                   \
        CASE(first_alloc_opens)                                                                    \
        CASE(loop_beside)                                                                          \
        CASE(loop_without_frees)                                                                   \
        CASE(loop_two_threads)                                                                     \
        CASE(host_opens)                                                                           \
        CASE(host_function_opens)                                                                  \
        CASE(other_thread_opens)                                                                   \
        CASE(capture_global)                                                                       \
        CASE(capture_thread_local)                                                                 \
        CASE(capture_relaxed)                                                                      \
        CASE(meet_one_thread)                                                                      \
        CASE(meet_two_threads)                                                                     \
        CASE(meet_first)                                                                           \
        CASE(values_to_and_fro)                                                                    \
        CASE(values_first)                                                                         \
        CASE(values_events)                                                                        \
        CASE(growth)                                                                               \
        CASE(growth_behind)                                                                        \
        CASE(full)                                                                                 \
        CASE(full_behind)                                                                          \
        CASE(free_behind)

#define CASE(name) void case_##name(struct ground *g);
CASES
#undef CASE

#endif
