/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_SUPPORT_H
#define TEST_SUPPORT_H

/*
 * Support -- a context, two streams and a kernel that runs for as long as asked
 *
 * Results are compared as numbers: the tables that tests repeat speak of 201 and
 * 900, and a failure then prints the same.
 */

#include <criterion/criterion.h>
#include <cuda.h>
#include <stdint.h>
#include "control.h"

#define MIB ((size_t)1 << 20)
#define MS  ((uint64_t)1000000)

#define expect(code, call)                                                                         \
        do {                                                                                       \
                int sim_got = (int)(call);                                                         \
                                                                                                   \
                cr_assert(sim_got == (code), "%s = %d, not %d", #call, sim_got, (int)(code));      \
        } while (0)
#define ok(call) expect(0, call)

/* Every header declares another version of it. */
CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);

struct world {
        CUdevice device;
        CUcontext context; /* the primary */
        CUstream s1, s2;   /* non-blocking */
        CUfunction spin;
};

static inline CUfunction find_kernel(const char *name)
{
        CUmodule module;
        CUfunction function;

        ok(cuModuleLoadData(&module, ""));
        ok(cuModuleGetFunction(&function, module, name));
        return function;
}

static inline struct world begin(void)
{
        struct world world;

        ok(cuInit(0));
        ok(cuDeviceGet(&world.device, 0));
        ok(cuDevicePrimaryCtxRetain(&world.context, world.device));
        ok(cuCtxSetCurrent(world.context));
        ok(cuStreamCreate(&world.s1, CU_STREAM_NON_BLOCKING));
        ok(cuStreamCreate(&world.s2, CU_STREAM_NON_BLOCKING));
        world.spin = find_kernel("spin");
        return world;
}

static inline void spin(const struct world *world, CUstream stream, uint64_t nanoseconds)
{
        void *arguments[] = {&nanoseconds};

        ok(cuLaunchKernel(world->spin, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
}

static inline CUmemAllocationProp memory_of(CUdevice device)
{
        CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};

        prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        prop.location.id = device;
        return prop;
}

static inline size_t free_bytes(void)
{
        size_t bytes;

        ok(cuMemGetInfo(&bytes, NULL));
        return bytes;
}

#endif
