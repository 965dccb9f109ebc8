/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First light -- a small inference server, as a program to try the shim on
 *
 * Requests of many sizes are answered in turn on two streams. A request has
 * its input from cuMemAlloc, as old code does, and its scratch memory from
 * cuMemAllocAsync, as new code does. The program knows nothing of streampool.
 *
 * It also has the faults of real programs: two answers are kept in a cache
 * that nobody empties, one input is freed twice, and one "free" is given a
 * pointer that no allocation ever returned.
 *
 *   first_light [requests]
 */
#include <stdio.h>
#include <stdlib.h>

#include "cu.h"

#define STREAMS 2

struct server {
        struct cu_kernels kernels;
        CUstream streams[STREAMS];
        CUdeviceptr cache[2]; /* answers somebody wanted to keep; never freed */
        int cached;
        uint64_t sum; /* of all answers */
        int refused;  /* frees the driver did not accept */
};

static void release(struct server *server, CUdeviceptr p)
{
        server->refused += cu.MemFree(p) != CUDA_SUCCESS;
}

/* Words of the n-th request: 4 thousand to 1 million, the same in every run. */
static uint64_t request_words(uint32_t n)
{
        return 4096 + (n * 2654435761u >> 12) % (1u << 20);
}

static void keep_answer(struct server *server, CUdeviceptr answer, uint64_t words, CUstream stream)
{
        CUdeviceptr *slot = &server->cache[server->cached++];

        CU_OK(cu.MemAlloc(slot, words * 4));
        CU_OK(cu.MemcpyDtoDAsync(*slot, answer, words * 4, stream));
}

static void answer_request(struct server *server, uint32_t n)
{
        CUstream stream = server->streams[n % STREAMS];
        uint64_t words = request_words(n);
        CUdeviceptr input, scratch, answer;
        uint32_t result;

        CU_OK(cu.MemAlloc(&input, words * 4));
        CU_OK(cu.MemAllocAsync(&scratch, words * 4, stream));
        CU_OK(cu.MemAllocAsync(&answer, words * 4, stream));

        CU_OK(cu_fill(&server->kernels, stream, input, words, n));
        CU_OK(cu_copy(&server->kernels, stream, scratch, input, words));
        CU_OK(cu_add(&server->kernels, stream, scratch, words, 1));
        CU_OK(cu_copy(&server->kernels, stream, answer, scratch, words));
        CU_OK(cu.MemFreeAsync(scratch, stream));
        CU_OK(cu.MemcpyDtoHAsync(&result, answer + (words - 1) * 4, 4, stream));
        if (n == 10 || n == 20)
                keep_answer(server, answer, words, stream);
        CU_OK(cu.MemFreeAsync(answer, stream));
        CU_OK(cu.StreamSynchronize(stream));
        server->sum += result;

        release(server, input);
        if (n == 30)
                release(server, input); /* freed already */
        if (n == 40)
                release(server, (CUdeviceptr)(uintptr_t)server); /* no device memory at all */
}

int main(int argc, char **argv)
{
        uint32_t requests = argc > 1 ? (uint32_t)atoi(argv[1]) : 200;
        struct server server = {0};

        cu_start(0);
        cu_load_kernels(&server.kernels);
        for (int i = 0; i < STREAMS; i++)
                CU_OK(cu.StreamCreate(&server.streams[i], CU_STREAM_NON_BLOCKING));
        for (uint32_t n = 1; n <= requests; n++)
                answer_request(&server, n);
        for (int i = 0; i < STREAMS; i++)
                CU_OK(cu.StreamDestroy(server.streams[i]));
        printf("%u requests answered, sum %llu, %d frees refused\n", requests,
               (unsigned long long)server.sum, server.refused);
        return 0;
}
