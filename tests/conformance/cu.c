/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cu -- the driver, for programs that must run on any driver
 *
 * The library is opened once and never closed. Kernels are launched with a
 * small grid: they are there to take time and to touch memory, not to be fast.
 */
#include "cu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

struct cu cu;

static void *library;
static void (*owner_alloc)(CUdeviceptr p, size_t bytes);
static void (*owner_free)(CUdeviceptr p);

void *cu_symbol(const char *name)
{
        return dlsym(library, name);
}

bool cu_is_simulated(void)
{
        return cu_symbol("sim_calls") != NULL;
}

void cu_load(void)
{
        if (library)
                return;
        library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        if (!library) {
                fprintf(stderr, "no CUDA driver: %s\n", dlerror());
                exit(77);
        }
#define CU(name, symbol, type) cu.name = (type)(uintptr_t)dlsym(library, #symbol);
#include "cu.def"
#undef CU
        owner_alloc = (void (*)(CUdeviceptr, size_t))(uintptr_t)cu_symbol("sim_oracle_alloc");
        owner_free = (void (*)(CUdeviceptr))(uintptr_t)cu_symbol("sim_oracle_free");
}

void cu_expect(CUresult result, const char *call, const char *file, int line)
{
        if (result == CUDA_SUCCESS)
                return;
        fflush(stdout);
        fprintf(stderr, "%s:%d: %s = %d\n", file, line, call, (int)result);
        exit(99);
}

CUcontext cu_start(int device)
{
        CUcontext context;
        CUdevice handle;

        cu_load();
        CU_OK(cu.Init(0));
        CU_OK(cu.DeviceGet(&handle, device));
        CU_OK(cu.DevicePrimaryCtxRetain(&context, handle));
        CU_OK(cu.CtxSetCurrent(context));
        return context;
}

void cu_load_kernels(struct cu_kernels *k)
{
        struct {
                const char *name;
                CUfunction *function;
        } const functions[] = {
                {"spin", &k->spin},   {"fill", &k->fill}, {"add", &k->add},   {"check", &k->check},
                {"watch", &k->watch}, {"copy", &k->copy}, {"hold", &k->hold}, {"meet", &k->meet},
        };

        CU_OK(cu.ModuleLoadData(&k->module, cu_ptx));
        for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
                CU_OK(cu.ModuleGetFunction(functions[i].function, k->module, functions[i].name));
}

CUresult cu_launch(CUfunction function, CUstream stream, unsigned grid, void **arguments)
{
        return cu.LaunchKernel(function, grid, 1, 1, 128, 1, 1, 0, stream, arguments, NULL);
}

/* Enough blocks for the words, and few enough that many kernels run side by side. */
static unsigned grid_for(uint64_t count)
{
        uint64_t blocks = (count + 127) / 128;

        return blocks < 1 ? 1 : blocks > 16 ? 16 : (unsigned)blocks;
}

static CUresult launch_one_thread(CUfunction function, CUstream stream, void **arguments)
{
        return cu.LaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL);
}

CUresult cu_spin(const struct cu_kernels *k, CUstream stream, uint64_t nanoseconds)
{
        void *arguments[] = {&nanoseconds};

        return launch_one_thread(k->spin, stream, arguments);
}

CUresult cu_hold(const struct cu_kernels *k, CUstream stream, CUdeviceptr flag, uint32_t wanted,
                 uint64_t nanoseconds, CUdeviceptr gave_up)
{
        void *arguments[] = {&flag, &wanted, &nanoseconds, &gave_up};

        return launch_one_thread(k->hold, stream, arguments);
}

CUresult cu_meet(const struct cu_kernels *k, CUstream stream, CUdeviceptr mine, CUdeviceptr other,
                 uint32_t value, uint64_t nanoseconds, CUdeviceptr gave_up)
{
        void *arguments[] = {&mine, &other, &value, &nanoseconds, &gave_up};

        return launch_one_thread(k->meet, stream, arguments);
}

CUresult cu_fill(const struct cu_kernels *k, CUstream stream, CUdeviceptr p, uint64_t count,
                 uint32_t value)
{
        void *arguments[] = {&p, &count, &value};

        return cu_launch(k->fill, stream, grid_for(count), arguments);
}

CUresult cu_add(const struct cu_kernels *k, CUstream stream, CUdeviceptr p, uint64_t count,
                uint32_t value)
{
        void *arguments[] = {&p, &count, &value};

        return cu_launch(k->add, stream, grid_for(count), arguments);
}

CUresult cu_check(const struct cu_kernels *k, CUstream stream, CUdeviceptr p, uint64_t count,
                  uint32_t expected, CUdeviceptr mismatches)
{
        void *arguments[] = {&p, &count, &expected, &mismatches};

        return cu_launch(k->check, stream, grid_for(count), arguments);
}

CUresult cu_watch(const struct cu_kernels *k, CUstream stream, CUdeviceptr p, uint64_t count,
                  uint32_t expected, uint64_t nanoseconds, CUdeviceptr mismatches)
{
        void *arguments[] = {&p, &count, &expected, &nanoseconds, &mismatches};

        return cu_launch(k->watch, stream, grid_for(count), arguments);
}

CUresult cu_copy(const struct cu_kernels *k, CUstream stream, CUdeviceptr to, CUdeviceptr from,
                 uint64_t count)
{
        void *arguments[] = {&to, &from, &count};

        return cu_launch(k->copy, stream, grid_for(count), arguments);
}

uint32_t *cu_counter(size_t count)
{
        void *counter;

        CU_OK(cu.MemHostAlloc(&counter, count * sizeof(uint32_t),
                              CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
        memset(counter, 0, count * sizeof(uint32_t));
        return counter;
}

void cu_owned(CUdeviceptr p, size_t bytes)
{
        if (owner_alloc && p)
                owner_alloc(p, bytes);
}

void cu_disowned(CUdeviceptr p)
{
        if (owner_free && p)
                owner_free(p);
}
