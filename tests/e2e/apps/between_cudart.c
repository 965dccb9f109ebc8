/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between, the library -- stands between a program and the driver, as NVIDIA's runtime does
 *
 * It is called like that one, looks its functions up as that one does, and has frames of
 * its own between its caller and the driver, of which one is not always of one size.
 */
#define _GNU_SOURCE

#include <alloca.h>
#include <cudaTypedefs.h>
#include <dlfcn.h>
#include <string.h>

#include "between.h"

#define NOINLINE __attribute__((noinline))

static PFN_cuGetProcAddress_v12000 find;
static PFN_cuMemAlloc_v3020 allocate;
static PFN_cuMemFree_v3020 give_back;
static volatile int calls; /* keeps a call from being the last thing that a function does */

bool between_start(void)
{
        void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        void *found = driver ? dlsym(driver, "cuGetProcAddress_v2") : NULL;

        memcpy(&find, &found, sizeof(find));
        return find && !find("cuMemAlloc", (void **)&allocate, 3020, 0, NULL) &&
               !find("cuMemFree", (void **)&give_back, 3020, 0, NULL);
}

static NOINLINE CUresult inner(CUdeviceptr *memory, size_t bytes)
{
        CUresult result = allocate(memory, bytes);

        calls++;
        return result;
}

CUresult between_allocate(CUdeviceptr *memory, size_t bytes)
{
        volatile char room[200];
        CUresult result;

        room[0] = 0;
        result = inner(memory, bytes);
        calls += room[0];
        return result;
}

CUresult between_allocate_sized(CUdeviceptr *memory, size_t bytes, size_t size)
{
        volatile char *room = alloca(size + 16);
        CUresult result;

        room[0] = 0;
        result = inner(memory, bytes);
        calls += room[0];
        return result;
}

CUresult between_free(CUdeviceptr memory)
{
        CUresult result = give_back(memory);

        calls++;
        return result;
}
