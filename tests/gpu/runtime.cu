/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runtime -- a CUDA runtime program that counts what it allocates
 *
 *   runtime [rounds] [faults]
 *
 * Built four ways: static and shared cudart, with the legacy and with per-thread
 * default streams. Prints "made KIND N" for each kind of memory, a checksum that
 * depends on every value computed, and with `faults` what a report must find.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <cuda_runtime.h>

#define OK(call) expect((call), #call, __LINE__)

static void expect(cudaError_t error, const char *call, int line)
{
        if (error == cudaSuccess)
                return;
        fprintf(stderr, "line %d: %s: %s\n", line, call, cudaGetErrorString(error));
        exit(99);
}

__global__ void fill(uint32_t *p, size_t count, uint32_t value)
{
        for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
             i += (size_t)gridDim.x * blockDim.x)
                p[i] = value + (uint32_t)i;
}

__global__ void sum(const uint32_t *p, size_t count, unsigned long long *total)
{
        unsigned long long mine = 0;

        for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
             i += (size_t)gridDim.x * blockDim.x)
                mine += p[i] % 1009;
        atomicAdd(total, mine);
}

static unsigned made_device, made_async, made_pitch, made_managed, made_pinned;
static unsigned long long *total; /* pinned */

static void use(uint32_t *p, size_t count, uint32_t value, cudaStream_t stream)
{
        fill<<<32, 128, 0, stream>>>(p, count, value);
        sum<<<32, 128, 0, stream>>>(p, count, total);
        OK(cudaGetLastError());
}

static void round_on(cudaStream_t stream, uint32_t n)
{
        size_t count = 1000 + n * 7919 % 300000;
        uint32_t *p, *q;

        OK(cudaMalloc(&p, count * 4));
        OK(cudaMallocAsync(&q, count * 4, stream));
        made_device++;
        made_async++;
        use(p, count, n, stream);
        use(q, count, n + 1, stream);
        OK(cudaMemcpyAsync(q, p, count * 4, cudaMemcpyDeviceToDevice, stream));
        sum<<<32, 128, 0, stream>>>(q, count, total);
        OK(cudaFreeAsync(q, stream));
        OK(cudaFree(p));
}

static void other_kinds(cudaStream_t stream)
{
        uint32_t *pitched, *managed;
        cudaArray_t array;
        size_t pitch;
        cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();

        OK(cudaMallocPitch(&pitched, &pitch, 1000, 100));
        made_pitch++;
        use(pitched, 250, 1, stream);
        OK(cudaMallocManaged(&managed, 40000));
        made_managed++;
        use(managed, 10000, 2, stream);
        OK(cudaStreamSynchronize(stream));
        OK(cudaFree(managed));
        OK(cudaFree(pitched));
        OK(cudaMallocArray(&array, &format, 64, 64));
        OK(cudaFreeArray(array));
        OK(cudaFree(nullptr));
}

static void graph(cudaStream_t stream)
{
        cudaGraph_t captured;
        cudaGraphExec_t exec;
        uint32_t *p;

        OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        OK(cudaMallocAsync(&p, 400000, stream));
        use(p, 100000, 5, stream);
        OK(cudaFreeAsync(p, stream));
        OK(cudaStreamEndCapture(stream, &captured));
        OK(cudaGraphInstantiate(&exec, captured, 0));
        for (int i = 0; i < 3; i++)
                OK(cudaGraphLaunch(exec, stream));
        OK(cudaStreamSynchronize(stream));
        OK(cudaGraphExecDestroy(exec));
        OK(cudaGraphDestroy(captured));
}

/* Default stream of two threads; with per-thread streams these are two. */
static void threads(void)
{
        std::vector<std::thread> all;

        for (int i = 0; i < 2; i++)
                all.emplace_back([i] {
                        uint32_t *p[16];

                        for (int j = 0; j < 16; j++) {
                                OK(cudaMallocAsync(&p[j], 100000, 0));
                                use(p[j], 25000, (uint32_t)(i * 100 + j), 0);
                                OK(cudaFreeAsync(p[j], 0));
                        }
                        OK(cudaStreamSynchronize(0));
                });
        for (std::thread &one : all)
                one.join();
        made_async += 32;
}

static void faults(void)
{
        uint32_t *twice, *kept, *inside;
        int local;

        OK(cudaMalloc(&twice, 5000));
        OK(cudaFree(twice));
        printf("code %d\n", (int)cudaFree(twice));
        printf("code %d\n", (int)cudaFree(&local));
        OK(cudaMalloc(&inside, 5000));
        printf("code %d\n", (int)cudaFree((char *)inside + 512));
        OK(cudaFree(inside));
        OK(cudaMalloc(&kept, 123456));
        made_device += 3;
        cudaGetLastError();
        printf("finding double_free 1\nfinding foreign 1\nfinding interior 1\n");
        printf("leak device 1 123456\n");
}

int main(int argc, char **argv)
{
        int rounds = argc > 1 ? atoi(argv[1]) : 100;
        bool with_faults = argc > 2 && !strcmp(argv[2], "faults");
        cudaStream_t streams[2];

        OK(cudaHostAlloc(&total, sizeof(*total), cudaHostAllocMapped));
        *total = 0;
        made_pinned++;
        for (cudaStream_t &stream : streams)
                OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        for (int i = 0; i < rounds; i++)
                round_on(streams[i % 2], (uint32_t)i);
        other_kinds(streams[0]);
        OK(cudaDeviceSynchronize());
        graph(streams[1]);
        threads();
        round_on(0, 4711);
        OK(cudaDeviceSynchronize());
        printf("checksum %llu\n", *total);
        if (with_faults)
                faults();
        OK(cudaFreeHost(total));
        printf("made device %u\nmade async %u\nmade pitch %u\nmade managed %u\nmade pinned %u\n",
               made_device, made_async, made_pitch, made_managed, made_pinned);
        return 0;
}
