/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quarrel -- what one thread ends, or begins to capture, while others allocate
 *
 *   quarrel MILLISECONDS ROLE...
 *
 * Each role is a thread, and a role may be named more than once:
 *
 *   allocate  memory of both kinds and page-locked memory, used and freed at once
 *   capture   captures of a mode that lets the others work
 *   stream    streams that are destroyed while what was freed on them is pending
 *   context   contexts that are destroyed with memory and work in them
 *   retain    takes and returns a use of the primary context, which others keep
 *   reset     resets the primary context again and again
 *   bystander memory of both kinds, in a primary context that may be reset any time
 *
 * Each role is right by itself, so nothing may fail, lack of memory excepted. A
 * bystander may be told that its context, or its memory, is gone.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cu.h"

#define THREADS_MAX 16
#define BLOCKS      6

static struct cu_kernels kernels;
static CUcontext context;
static atomic_bool over;
static atomic_int failures;

static void expect(CUresult result, const char *call)
{
        if (result == CUDA_SUCCESS)
                return;
        failures++;
        fprintf(stderr, "%s = %d\n", call, (int)result);
}
#define OK(call) expect((call), #call)

/* Lack of memory is no failure; the block is 0 then. */
static CUdeviceptr obtain(size_t bytes, CUstream stream)
{
        CUdeviceptr p = 0;
        CUresult result = stream ? cu.MemAllocAsync(&p, bytes, stream) : cu.MemAlloc(&p, bytes);

        if (result == CUDA_SUCCESS)
                return p;
        if (result != CUDA_ERROR_OUT_OF_MEMORY)
                expect(result, "allocation");
        return 0;
}

static void use(CUdeviceptr p, CUstream stream)
{
        if (p)
                OK(cu_fill(&kernels, stream, p, 100, 1));
}

static void *obtain_host(size_t bytes)
{
        void *host = NULL;
        CUresult result = cu.MemHostAlloc(&host, bytes, 0);

        if (result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY)
                expect(result, "page-locked allocation");
        return host;
}

static void *allocate(void *argument)
{
        CUstream stream;

        (void)argument;
        OK(cu.CtxSetCurrent(context));
        OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        while (!over) {
                CUdeviceptr p = obtain(1 << 18, NULL), q = obtain(1 << 18, stream);
                CUdeviceptr host = (CUdeviceptr)(uintptr_t)obtain_host(400);

                cu_owned(host, 400);
                use(host, stream);
                cu_disowned(host);
                OK(cu.MemFreeHost((void *)(uintptr_t)host));
                cu_owned(p, 1 << 18);
                cu_owned(q, 1 << 18);
                use(p, stream);
                use(q, stream);
                cu_disowned(p);
                OK(cu.MemFree(p));
                cu_disowned(q);
                OK(cu.MemFreeAsync(q, stream));
        }
        OK(cu.StreamSynchronize(stream));
        OK(cu.StreamDestroy(stream));
        return NULL;
}

static void *capture(void *argument)
{
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        CUstream stream;

        (void)argument;
        OK(cu.CtxSetCurrent(context));
        OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        while (!over) {
                CUdeviceptr p = obtain(3 << 16, stream);
                CUgraph graph = NULL;

                use(p, stream);
                OK(cu.MemFreeAsync(p, stream));
                OK(cu.StreamBeginCapture(stream, mode));
                OK(cu_spin(&kernels, stream, 100));
                OK(cu.StreamEndCapture(stream, &graph));
                if (graph)
                        OK(cu.GraphDestroy(graph));
                mode = mode == CU_STREAM_CAPTURE_MODE_RELAXED ? CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
                                                              : CU_STREAM_CAPTURE_MODE_RELAXED;
        }
        OK(cu.StreamDestroy(stream));
        return NULL;
}

static void *stream(void *argument)
{
        (void)argument;
        OK(cu.CtxSetCurrent(context));
        for (unsigned round = 0; !over; round++) {
                CUdeviceptr blocks[BLOCKS];
                CUstream own;

                OK(cu.StreamCreate(&own, round % 2 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
                for (int i = 0; i < BLOCKS; i++) {
                        blocks[i] = obtain((size_t)1 << (18 + i % 3), own);
                        use(blocks[i], own);
                }
                for (int i = 0; i < BLOCKS; i++)
                        OK(cu.MemFreeAsync(blocks[i], own));
                OK(cu.StreamDestroy(own));
        }
        return NULL;
}

static void *contexts(void *argument)
{
        (void)argument;
        while (!over) {
                CUcontext mine;
                CUstream own;

                OK(cu.CtxCreate(&mine, 0, 0));
                OK(cu.StreamCreate(&own, CU_STREAM_NON_BLOCKING));
                for (int i = 0; i < BLOCKS; i++) {
                        CUdeviceptr p = obtain(1 << 18, NULL), q = obtain(1 << 19, own);

                        OK(cu_spin(&kernels, own, 1000));
                        OK(cu.MemFreeAsync(q, own));
                        OK(cu.MemFree(i % 3 ? p : 0)); /* the rest goes with the context */
                        OK(cu.MemFreeHost(i % 3 ? obtain_host(8) : NULL));
                }
                OK(cu.CtxDestroy(mine));
        }
        return NULL;
}

static void *retain(void *argument)
{
        (void)argument;
        while (!over) {
                CUcontext same;

                OK(cu.DevicePrimaryCtxRetain(&same, 0));
                OK(cu.DevicePrimaryCtxRelease(0));
        }
        return NULL;
}

static void *reset(void *argument)
{
        (void)argument;
        while (!over) {
                CUcontext same;

                OK(cu.DevicePrimaryCtxReset(0));
                OK(cu.DevicePrimaryCtxRelease(0));
                OK(cu.DevicePrimaryCtxRetain(&same, 0));
                usleep(2000);
        }
        return NULL;
}

static bool tolerate(CUresult result)
{
        if (result != CUDA_ERROR_CONTEXT_IS_DESTROYED && result != CUDA_ERROR_INVALID_VALUE &&
            result != CUDA_ERROR_OUT_OF_MEMORY)
                expect(result, "bystander");
        return result == CUDA_SUCCESS;
}

static void *bystander(void *argument)
{
        (void)argument;
        while (!over) {
                CUdeviceptr q[BLOCKS], p;

                tolerate(cu.CtxSetCurrent(context));
                for (int i = 0; i < BLOCKS; i++) {
                        if (!tolerate(cu.MemAllocAsync(&q[i], 1 << 20, CU_STREAM_PER_THREAD)))
                                q[i] = 0;
                }
                /* Not freed: a reset does that, and then its address may be another thread's. */
                tolerate(cu.MemAlloc(&p, 1 << 16));
                for (int i = 0; i < BLOCKS; i++)
                        tolerate(cu.MemFreeAsync(q[i], CU_STREAM_PER_THREAD));
        }
        return NULL;
}

int main(int argc, char **argv)
{
        static const struct {
                const char *name;
                void *(*run)(void *argument);
        } roles[] = {
                {"allocate", allocate},   {"capture", capture}, {"stream", stream},
                {"context", contexts},    {"retain", retain},   {"reset", reset},
                {"bystander", bystander},
        };
        pthread_t threads[THREADS_MAX];
        int count = 0;

        context = cu_start(0);
        cu_load_kernels(&kernels);
        for (int i = 2; i < argc && count < THREADS_MAX; i++)
                for (size_t j = 0; j < sizeof(roles) / sizeof(roles[0]); j++)
                        if (!strcmp(argv[i], roles[j].name) &&
                            !pthread_create(&threads[count], NULL, roles[j].run, NULL))
                                count++;
        usleep(argc > 1 ? 1000 * (unsigned)atoi(argv[1]) : 1000000);
        over = true;
        for (int i = 0; i < count; i++)
                pthread_join(threads[i], NULL);
        OK(cu.CtxSetCurrent(context));
        OK(cu.CtxSynchronize());
        printf("threads %d failures %d\n", count, failures);
        return 0;
}
