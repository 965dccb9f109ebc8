/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Graph gate -- no wait of ours in the midst of a graph launch into the same stream
 *
 * Each side says that it comes, then looks for the other, in sequentially consistent
 * order: so at least one of two sees the other, and steps back.
 */

#include "stamp/graph_gate.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "base/thread.h"

#define GATES 64
#define TURNS 16 /* that a launch lets waits go first */

static struct gate {
        atomic_uint launches; /* threads in cuGraphLaunch */
        atomic_uint waits;    /* threads that give a stream a wait, or look whether they may */
} __attribute__((aligned(64))) gates[GATES];

static struct gate *gate_of(CUstream stream)
{
        return &gates[((uintptr_t)stream * UINT64_C(0x9e3779b97f4a7c15) >> 32) % GATES];
}

/* On a processor of its own the other one is done in microseconds; else it has to be let run. */
static void pause_a_while(unsigned int *looks)
{
        if (++*looks < 64)
                sched_yield();
        else
                sp_thread_nap();
}

/* After some turns a launch stays, and who comes then steps back. */
void sp_graph_gate_enter(CUstream stream)
{
        struct gate *gate = gate_of(stream);
        unsigned int looks = 0;

        atomic_fetch_add(&gate->launches, 1);
        while (atomic_load(&gate->waits)) {
                bool stays = looks > TURNS;

                if (!stays)
                        atomic_fetch_sub(&gate->launches, 1);
                pause_a_while(&looks);
                if (!stays)
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

/* Who finds launches takes back that it has come: it is not to keep others out meanwhile. */
bool sp_graph_gate_close(CUstream stream)
{
        struct gate *gate = gate_of(stream);
        unsigned int looks = 0;
        uint64_t end = 0;

        if (stream == CU_STREAM_PER_THREAD)
                return true;
        for (;;) {
                atomic_fetch_add(&gate->waits, 1);
                if (!atomic_load(&gate->launches))
                        return true;
                atomic_fetch_sub(&gate->waits, 1);
                if (!end)
                        end = now() + SP_GATE_PATIENCE_NS;
                if (now() > end)
                        return false;
                pause_a_while(&looks);
        }
}

void sp_graph_gate_open(CUstream stream)
{
        if (stream != CU_STREAM_PER_THREAD)
                atomic_fetch_sub(&gate_of(stream)->waits, 1);
}
