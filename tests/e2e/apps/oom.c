/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Oom -- memory that was freed is there for whoever asks next
 *
 *   oom SCENARIO...
 *
 * A pool that keeps memory must not be the reason that anybody is refused: the
 * program itself (O1), or another part of the driver (O2). Every scenario says
 * the codes it saw; they are those of the bare driver.
 */
#include <stdio.h>
#include <string.h>

#include "cu.h"

#define PIECES 16

static struct cu_kernels kernels;
static CUstream stream;
static size_t total;

static void say(const char *name, CUresult result)
{
        printf(" %s=%d", name, (int)result);
}

static size_t part(unsigned percent)
{
        size_t left;

        CU_OK(cu.MemGetInfo(&left, &total));
        return left / 100 * percent;
}

/* Take nearly everything in pieces of several sizes, use it, give it back. */
static void fill_and_free(bool async)
{
        size_t bytes = part(90) / PIECES;
        CUdeviceptr p[PIECES];

        for (int i = 0; i < PIECES; i++) {
                size_t size = bytes + (size_t)(i % 3 - 1) * (bytes / 4);

                if (async)
                        CU_OK(cu.MemAllocAsync(&p[i], size, stream));
                else
                        CU_OK(cu.MemAlloc(&p[i], size));
                CU_OK(cu_fill(&kernels, stream, p[i], 1000, 1));
        }
        for (int i = 0; i < PIECES; i++)
                if (async)
                        CU_OK(cu.MemFreeAsync(p[i], stream));
                else
                        CU_OK(cu.MemFree(p[i]));
}

static void one_large_block(void)
{
        CUdeviceptr p;

        for (int i = 0; i < 3; i++) {
                fill_and_free(false);
                say("alloc", cu.MemAlloc(&p, part(95)));
                say("free", cu.MemFree(p));
        }
}

static void large_block_after_async(void)
{
        CUdeviceptr p;

        for (int i = 0; i < 3; i++) {
                fill_and_free(true);
                CU_OK(cu.StreamSynchronize(stream));
                say("alloc", cu.MemAlloc(&p, part(95)));
                say("free", cu.MemFree(p));
        }
}

static void async_after_plain(void)
{
        CUdeviceptr p;

        fill_and_free(false);
        CU_OK(cu.CtxSynchronize());
        say("alloc", cu.MemAllocAsync(&p, part(90), stream));
        say("free", cu.MemFreeAsync(p, stream));
        CU_OK(cu.StreamSynchronize(stream));
}

/* The bare free waits for the kernel, so the next allocation succeeds; so must ours. */
static void freed_while_in_use(void)
{
        size_t bytes = part(80);
        CUdeviceptr p, q;

        say("alloc", cu.MemAlloc(&p, bytes));
        CU_OK(cu_fill(&kernels, stream, p, 1000, 1));
        CU_OK(cu_spin(&kernels, stream, 5000000));
        say("free", cu.MemFree(p));
        say("alloc", cu.MemAlloc(&q, bytes));
        say("free", cu.MemFree(q));
}

static void other_consumers(void)
{
        CUmemAllocationProp properties = {
                .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
        };
        CUmemGenericAllocationHandle handle = 0;
        CUDA_ARRAY3D_DESCRIPTOR shape = {16384, 0, 0, CU_AD_FORMAT_FLOAT, 4, 0};
        CUdeviceptr p = 0;
        CUmemoryPool pool;
        CUarray array;
        size_t pitch, bytes;
        CUmemPoolProps pool_properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                          .location = properties.location};

        fill_and_free(false);
        bytes = part(80) >> 21 << 21;
        say("create", cu.MemCreate(&handle, bytes, &properties, 0));
        say("release", cu.MemRelease(handle));
        fill_and_free(false);
        say("pitch", cu.MemAllocPitch(&p, &pitch, 1 << 20, part(80) >> 20, 4));
        say("free", cu.MemFree(p));
        fill_and_free(false);
        shape.Height = part(70) / (16384 * 16);
        if (shape.Height > 32768)
                shape.Height = 32768;
        say("array", cu.Array3DCreate(&array, &shape));
        say("destroy", cu.ArrayDestroy(array));
        fill_and_free(false);
        CU_OK(cu.MemPoolCreate(&pool, &pool_properties));
        say("from_pool", cu.MemAllocFromPoolAsync(&p, part(80), pool, stream));
        say("free", cu.MemFreeAsync(p, stream));
        CU_OK(cu.StreamSynchronize(stream));
        CU_OK(cu.MemPoolDestroy(pool));
        fill_and_free(false);
        cu_load_kernels(&kernels);
        printf(" module=0");
}

/* Calls that need memory of the driver's own; the runner makes one of them fail once. While there
 * is idle memory in the pool, the program never hears of it. */
static void small_consumers(void)
{
        CUmemPoolProps properties = {
                .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
        };
        struct cu_kernels more;
        CUgraphExec exec = NULL;
        CUcontext second = NULL;
        CUgraph graph = NULL;
        CUmemoryPool pool;
        CUevent event;
        CUdeviceptr p;

        CU_OK(cu.MemAlloc(&p, 4096));
        fill_and_free(false);
        CU_OK(cu.CtxSynchronize());
        say("launch", cu_fill(&kernels, stream, p, 1024, 1));
        cu_load_kernels(&more);
        say("event", cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
        say("pool", cu.MemPoolCreate(&pool, &properties));
        CU_OK(cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        CU_OK(cu_fill(&kernels, stream, p, 1024, 2));
        CU_OK(cu.StreamEndCapture(stream, &graph));
        say("instantiate", cu.GraphInstantiateWithFlags(&exec, graph, 0));
        say("replay", exec ? cu.GraphLaunch(exec, stream) : CUDA_SUCCESS);
        say("context", cu.CtxCreate(&second, 0, 0));
        CU_OK(cu.StreamSynchronize(stream));
}

/* Somebody captures, in the mode that forbids nearly everything; mapping memory stays legal. */
static void consumer_in_a_capture(void)
{
        CUmemAllocationProp properties = {
                .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
        };
        CUmemGenericAllocationHandle handle = 0;
        CUgraph graph = NULL;
        size_t bytes;

        fill_and_free(false);
        CU_OK(cu.CtxSynchronize());
        bytes = part(80) >> 21 << 21;
        say("begin", cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        say("create", cu.MemCreate(&handle, bytes, &properties, 0));
        say("end", cu.StreamEndCapture(stream, &graph));
        say("release", cu.MemRelease(handle));
        say("destroy", cu.GraphDestroy(graph));
}

static void more_than_there_is(void)
{
        CUdeviceptr p = 0, q = 0;

        say("alloc", cu.MemAlloc(&p, part(60)));
        say("too_much", cu.MemAlloc(&q, total / 100 * 60));
        say("too_much", cu.MemAllocAsync(&q, total / 100 * 60, stream));
        say("small", cu.MemAlloc(&q, 1 << 20));
        say("free", cu.MemFree(q));
        say("free", cu.MemFree(p));
        say("now", cu.MemAlloc(&p, part(60)));
        say("free", cu.MemFree(p));
}

int main(int argc, char **argv)
{
        static const struct {
                const char *name;
                void (*run)(void);
        } scenarios[] = {
                {"one_large_block", one_large_block},
                {"large_block_after_async", large_block_after_async},
                {"async_after_plain", async_after_plain},
                {"freed_while_in_use", freed_while_in_use},
                {"other_consumers", other_consumers},
                {"consumer_in_a_capture", consumer_in_a_capture},
                {"small_consumers", small_consumers},
                {"more_than_there_is", more_than_there_is},
        };

        cu_start(0);
        cu_load_kernels(&kernels);
        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
                for (int j = 1; j < argc; j++)
                        if (!strcmp(argv[j], scenarios[i].name)) {
                                printf("%s", argv[j]);
                                scenarios[i].run();
                                printf("\n");
                        }
        return 0;
}
