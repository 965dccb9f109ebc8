/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defaults -- orders that a call makes which the driver may never see
 *
 *   defaults waits | destroyed | gone
 *
 * Each scene frees a block behind a long kernel, and is given it again where all
 * that orders the new owner behind the kernel is a wait of the host for an idle
 * stream, or an allocation on the legacy stream.
 */
#include <stdio.h>
#include <string.h>

#include "cu.h"

#define BYTES 4096
#define WORDS (BYTES / 4)
#define LONG  50000000 /* nanoseconds of a kernel that outlasts all that follows */
#define MANY  24       /* blocks: more than a thread has at hand of them at once */

static CUcontext context;
static struct cu_kernels kernels;
static uint32_t *mismatches;

static CUdeviceptr take(CUstream stream)
{
        CUdeviceptr p;

        CU_OK(cu.MemAllocAsync(&p, BYTES, stream));
        cu_owned(p, BYTES);
        return p;
}

static void give(CUdeviceptr p, CUstream stream)
{
        cu_disowned(p);
        CU_OK(cu.MemFreeAsync(p, stream));
}

static void use(const struct cu_kernels *of, CUstream stream, CUdeviceptr p, uint64_t duration)
{
        CU_OK(cu_fill(of, stream, p, WORDS, 7));
        CU_OK(cu_watch(of, stream, p, WORDS, 7, duration, (CUdeviceptr)(uintptr_t)mismatches));
}

/* Blocks of the size have been there before, and all that was done is known to be done. */
static void warm(CUstream stream)
{
        CUdeviceptr blocks[MANY];

        for (int round = 0; round < 3; round++) {
                for (int i = 0; i < MANY; i++)
                        blocks[i] = take(stream);
                for (int i = 0; i < MANY; i++)
                        give(blocks[i], stream);
                CU_OK(cu.CtxSynchronize());
        }
}

static CUdeviceptr take_again(CUdeviceptr wanted, CUstream stream)
{
        CUdeviceptr p = 0;

        for (int i = 0; i < MANY && p != wanted; i++)
                p = take(stream);
        return p;
}

/* The context waits for the kernel, so the host does when it waits for the allocation. */
static void waits(void)
{
        CUstream stream, busy, elsewhere;
        struct cu_kernels others;
        CUcontext other;
        CUevent event;
        CUdeviceptr p;

        CU_OK(cu.CtxCreate(&other, 0, 0));
        cu_load_kernels(&others);
        CU_OK(cu.StreamCreate(&elsewhere, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.CtxSetCurrent(context));
        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.StreamCreate(&busy, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
        warm(stream);
        p = take(stream);
        CU_OK(cu.StreamSynchronize(stream));
        use(&kernels, busy, p, LONG);
        CU_OK(cu.EventRecord(event, busy));
        CU_OK(cu.CtxWaitEvent(context, event));
        give(p, stream);
        p = take_again(p, stream);
        CU_OK(cu.StreamSynchronize(stream));
        CU_OK(cu.CtxSetCurrent(other));
        use(&others, elsewhere, p, 1000);
        CU_OK(cu.CtxSynchronize());
        CU_OK(cu.CtxSetCurrent(context));
}

/* The legacy stream is behind the kernel by a call, before the kernel's stream is destroyed: that
 * call is the free itself, or else an earlier allocation. */
static void destroyed(bool is_free)
{
        CUstream busy, later;
        CUdeviceptr p;

        CU_OK(cu.StreamCreate(&busy, CU_STREAM_DEFAULT));
        warm(CU_STREAM_LEGACY);
        p = take(CU_STREAM_LEGACY);
        use(&kernels, busy, p, LONG);
        if (is_free)
                give(p, CU_STREAM_LEGACY);
        else
                take(CU_STREAM_LEGACY);
        CU_OK(cu.StreamDestroy(busy));
        if (!is_free)
                give(p, CU_STREAM_LEGACY);
        p = take_again(p, CU_STREAM_LEGACY);
        CU_OK(cu.StreamCreate(&later, CU_STREAM_DEFAULT));
        use(&kernels, later, p, 1000);
        CU_OK(cu.CtxSynchronize());
}

int main(int argc, char **argv)
{
        const char *scene = argc > 1 ? argv[1] : "";

        context = cu_start(0);
        cu_load_kernels(&kernels);
        mismatches = cu_counter(1);
        if (!strcmp(scene, "waits"))
                waits();
        else if (!strcmp(scene, "destroyed"))
                destroyed(false);
        else if (!strcmp(scene, "gone"))
                destroyed(true);
        else
                return 2;
        printf("defaults %s mismatches %u\n", scene, *mismatches);
        return 0;
}
