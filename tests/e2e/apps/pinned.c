/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinned -- eight bytes of page-locked memory at every step, as JAX has them
 *
 *   pinned ROUNDS
 *
 * Each round sends a number to the device through a block of its own, which is
 * freed while the copy may still be waiting. A block that somebody else is given
 * too early brings a wrong number. Other sizes and flags come now and then.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cu.h"

enum { SLOTS = 256, STREAMS = 2 };

static CUstream streams[STREAMS];
static CUdeviceptr slots; /* SLOTS numbers on the device */

static void send(uint64_t round, size_t bytes, unsigned int flags)
{
        uint64_t *host = NULL;

        CU_OK(cu.MemHostAlloc((void **)&host, bytes, flags));
        cu_owned((uintptr_t)host, bytes);
        host[0] = round;
        host[bytes / 8 - 1] = round;
        CU_OK(cu.MemcpyHtoDAsync(slots + round % SLOTS * 8, host + bytes / 8 - 1, 8,
                                 streams[round % STREAMS]));
        cu_disowned((uintptr_t)host);
        CU_OK(cu.MemFreeHost(host));
}

/* How many of the last SLOTS numbers are not what was sent? */
static int receive(uint64_t rounds)
{
        uint64_t *host = NULL;
        int wrong = 0;

        CU_OK(cu.MemAllocHost((void **)&host, SLOTS * 8));
        for (int i = 0; i < STREAMS; i++)
                CU_OK(cu.StreamSynchronize(streams[i]));
        CU_OK(cu.MemcpyDtoHAsync(host, slots, SLOTS * 8, streams[0]));
        CU_OK(cu.StreamSynchronize(streams[0]));
        for (uint64_t round = rounds - SLOTS; round < rounds; round++)
                wrong += host[round % SLOTS] != round;
        CU_OK(cu.MemFreeHost(host));
        return wrong;
}

int main(int argc, char **argv)
{
        uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
        int wrong = 0;

        cu_start(0);
        CU_OK(cu.StreamCreate(&streams[0], CU_STREAM_NON_BLOCKING));
        CU_OK(cu.StreamCreate(&streams[1], CU_STREAM_DEFAULT));
        CU_OK(cu.MemAlloc(&slots, SLOTS * 8));
        for (uint64_t round = 0; round < rounds; round++) {
                send(round, round % 50 == 7 ? 100000 : 8,
                     round % 10 == 3 ? CU_MEMHOSTALLOC_WRITECOMBINED : 0);
                if (round % SLOTS == SLOTS - 1)
                        wrong += receive(round + 1);
        }
        CU_OK(cu.CtxSynchronize());
        CU_OK(cu.MemFree(slots));
        printf("rounds %llu wrong %d\n", (unsigned long long)rounds, wrong);
        return 0;
}
