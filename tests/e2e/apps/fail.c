/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fail -- memory of every kind, asked for by a program that survives any answer
 *
 *   fail ROUNDS
 *
 * A line for each kind: its name as the report has it, and the code of each call.
 * What was had is given back, so that nothing is left of those that failed either.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cu.h"

#define BYTES ((size_t)64 << 10)
#define PAGE  ((size_t)2 << 20)

static CUstream stream;
static CUmemoryPool pool;
static char *page;

static const CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
};

/* Each asks once, and gives back what it got. */

static CUresult device(void)
{
        CUdeviceptr p;
        CUresult result = cu.MemAlloc(&p, BYTES);

        if (result == CUDA_SUCCESS)
                CU_OK(cu.MemFree(p));
        return result;
}

static CUresult async(void)
{
        CUdeviceptr p;
        CUresult result = cu.MemAllocAsync(&p, BYTES, stream);

        if (result == CUDA_SUCCESS)
                CU_OK(cu.MemFreeAsync(p, stream));
        return result;
}

static CUresult from_pool(void)
{
        CUdeviceptr p;
        CUresult result = cu.MemAllocFromPoolAsync(&p, BYTES, pool, stream);

        if (result == CUDA_SUCCESS)
                CU_OK(cu.MemFreeAsync(p, stream));
        return result;
}

static CUresult pitch(void)
{
        CUdeviceptr p;
        size_t row;
        CUresult result = cu.MemAllocPitch(&p, &row, 512, BYTES / 512, 4);

        if (result == CUDA_SUCCESS)
                CU_OK(cu.MemFree(p));
        return result;
}

static CUresult managed(void)
{
        CUdeviceptr p;
        CUresult result = cu.MemAllocManaged(&p, BYTES, CU_MEM_ATTACH_GLOBAL);

        if (result == CUDA_SUCCESS)
                CU_OK(cu.MemFree(p));
        return result;
}

static CUresult array(void)
{
        CUDA_ARRAY_DESCRIPTOR shape = {64, 64, CU_AD_FORMAT_FLOAT, 4};
        CUarray made;
        CUresult result = cu.ArrayCreate(&made, &shape);

        if (result == CUDA_SUCCESS)
                CU_OK(cu.ArrayDestroy(made));
        return result;
}

static CUresult mipmap(void)
{
        CUDA_ARRAY3D_DESCRIPTOR shape = {64, 64, 0, CU_AD_FORMAT_FLOAT, 4, 0};
        CUmipmappedArray made;
        CUresult result = cu.MipmappedArrayCreate(&made, &shape, 1);

        if (result == CUDA_SUCCESS)
                CU_OK(cu.MipmappedArrayDestroy(made));
        return result;
}

static CUresult vmm(void)
{
        CUmemGenericAllocationHandle handle;
        CUresult result = cu.MemCreate(&handle, PAGE, &properties, 0);

        if (result == CUDA_SUCCESS)
                CU_OK(cu.MemRelease(handle));
        return result;
}

static CUresult mapped(void)
{
        CUmemGenericAllocationHandle handle;
        CUdeviceptr p;
        CUresult result;

        CU_OK(cu.MemCreate(&handle, PAGE, &properties, 0));
        CU_OK(cu.MemAddressReserve(&p, PAGE, 0, 0, 0));
        result = cu.MemMap(p, PAGE, 0, handle, 0);
        if (result == CUDA_SUCCESS)
                CU_OK(cu.MemUnmap(p, PAGE));
        CU_OK(cu.MemRelease(handle));
        CU_OK(cu.MemAddressFree(p, PAGE));
        return result;
}

static CUresult pinned(void)
{
        void *host;
        CUresult result = cu.MemHostAlloc(&host, BYTES, 0);

        if (result == CUDA_SUCCESS)
                CU_OK(cu.MemFreeHost(host));
        return result;
}

static CUresult registered(void)
{
        CUresult result = cu.MemHostRegister(page, BYTES, 0);

        if (result == CUDA_SUCCESS)
                CU_OK(cu.MemHostUnregister(page));
        return result;
}

static void ask(const char *name, CUresult (*once)(void), int rounds)
{
        printf("%s", name);
        for (int i = 0; i < rounds; i++)
                printf(" %d", (int)once());
        printf("\n");
}

int main(int argc, char **argv)
{
        int rounds = argc > 1 ? atoi(argv[1]) : 1;

        cu_start(0);
        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.DeviceGetDefaultMemPool(&pool, 0));
        if (posix_memalign((void **)&page, 4096, BYTES))
                return 1;
        ask("device", device, rounds);
        ask("async", async, rounds);
        ask("from_pool", from_pool, rounds);
        ask("pitch", pitch, rounds);
        ask("managed", managed, rounds);
        ask("array", array, rounds);
        ask("mipmap", mipmap, rounds);
        ask("vmm", vmm, rounds);
        ask("mapped", mapped, rounds);
        ask("pinned", pinned, rounds);
        ask("registered", registered, rounds);
        return 0;
}
