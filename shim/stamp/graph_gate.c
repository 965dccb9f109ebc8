/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Graph gate -- no wait of ours in the midst of a graph launch into the same stream
 *
 * Each side says that it comes, then looks for the other, in sequentially consistent
 * order: so at least one of two sees the other. Of the two, a launch steps back.
 */

#include "stamp/graph_gate.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#define GATES 64

static struct gate {
        atomic_uint launches; /* threads in cuGraphLaunch */
        atomic_uint waits;    /* threads that give a stream a wait, or would like to */
} __attribute__((aligned(64))) gates[GATES];

static struct gate *gate_of(CUstream stream)
{
        return &gates[((uintptr_t)stream * UINT64_C(0x9e3779b97f4a7c15) >> 32) % GATES];
}

void sp_graph_gate_enter(CUstream stream)
{
        struct gate *gate = gate_of(stream);

        atomic_fetch_add(&gate->launches, 1);
        while (atomic_load(&gate->waits)) {
                atomic_fetch_sub(&gate->launches, 1);
                while (atomic_load(&gate->waits))
                        sched_yield();
                atomic_fetch_add(&gate->launches, 1);
        }
}

void sp_graph_gate_leave(CUstream stream)
{
        atomic_fetch_sub(&gate_of(stream)->launches, 1);
}

static uint64_t now(void)
{
        struct timespec time;

        clock_gettime(CLOCK_MONOTONIC, &time);
        return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

bool sp_graph_gate_close(CUstream stream)
{
        struct gate *gate = gate_of(stream);
        uint64_t end;

        if (stream == CU_STREAM_PER_THREAD)
                return true;
        atomic_fetch_add(&gate->waits, 1);
        if (!atomic_load(&gate->launches))
                return true;
        end = now() + SP_GATE_PATIENCE_NS;
        while (atomic_load(&gate->launches)) {
                if (now() > end) {
                        atomic_fetch_sub(&gate->waits, 1);
                        return false;
                }
                sched_yield();
        }
        return true;
}

void sp_graph_gate_open(CUstream stream)
{
        if (stream != CU_STREAM_PER_THREAD)
                atomic_fetch_sub(&gate_of(stream)->waits, 1);
}
