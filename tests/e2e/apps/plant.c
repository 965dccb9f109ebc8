/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plant -- a program with exactly the faults it is asked for
 *
 *   plant [clean] [leak] [double] [foreign] [interior] [wrong] [context] [handles]
 *
 * Says what it does as it does it: "code NAME N" for every return code,
 * "leak KIND COUNT BYTES" and "finding NAME COUNT" for what a report must show.
 * "made KIND N ..." on the way out counts the allocations made, by kind.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cu.h"

#define PAGE 4096

static CUstream stream;
static unsigned made_device, made_async;

static CUresult say(const char *name, CUresult result)
{
        printf("code %s %d\n", name, (int)result);
        return result;
}
#define SAY(name, ...) say("cu" #name, cu.name(__VA_ARGS__))

static CUdeviceptr plain(size_t bytes)
{
        CUdeviceptr p = 0;

        CU_OK(cu.MemAlloc(&p, bytes));
        made_device++;
        return p;
}

static CUdeviceptr async(size_t bytes)
{
        CUdeviceptr p = 0;

        CU_OK(cu.MemAllocAsync(&p, bytes, stream));
        CU_OK(cu.StreamSynchronize(stream));
        made_async++;
        return p;
}

static CUdeviceptr managed(size_t bytes)
{
        CUdeviceptr p = 0;

        CU_OK(cu.MemAllocManaged(&p, bytes, CU_MEM_ATTACH_GLOBAL));
        return p;
}

static CUdeviceptr pitched(void)
{
        CUdeviceptr p = 0;
        size_t pitch = 0;

        CU_OK(cu.MemAllocPitch(&p, &pitch, 1000, 10, 4));
        return p;
}

static void *pinned(size_t bytes)
{
        void *host = NULL;

        CU_OK(cu.MemHostAlloc(&host, bytes, 0));
        return host;
}

static void *registered(size_t bytes)
{
        void *host = NULL;

        if (posix_memalign(&host, PAGE, bytes))
                exit(99);
        CU_OK(cu.MemHostRegister(host, bytes, 0));
        return host;
}

static CUarray array(void)
{
        CUDA_ARRAY_DESCRIPTOR shape = {64, 64, CU_AD_FORMAT_FLOAT, 1};
        CUarray handle = NULL;

        CU_OK(cu.ArrayCreate(&handle, &shape));
        return handle;
}

static CUmipmappedArray mipmap(void)
{
        CUDA_ARRAY3D_DESCRIPTOR shape = {64, 64, 0, CU_AD_FORMAT_FLOAT, 1, 0};
        CUmipmappedArray handle = NULL;

        CU_OK(cu.MipmappedArrayCreate(&handle, &shape, 4));
        return handle;
}

static CUmemGenericAllocationHandle physical(void)
{
        CUmemAllocationProp properties = {
                .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
        };
        CUmemGenericAllocationHandle handle = 0;

        CU_OK(cu.MemCreate(&handle, 2 << 20, &properties, 0));
        return handle;
}

/* Every kind, given back as it should be. */
static void do_clean(void)
{
        void *host = registered(2 * PAGE);

        for (int i = 0; i < 20; i++) {
                CU_OK(cu.MemFree(plain(1000 + (size_t)i * 5000)));
                CU_OK(cu.MemFreeAsync(async(1000 + (size_t)i * 5000), stream));
                CU_OK(cu.MemFree(async(3000)));
                CU_OK(cu.MemFreeAsync(plain(3000), stream));
                CU_OK(cu.StreamSynchronize(stream));
        }
        CU_OK(cu.MemFree(pitched()));
        CU_OK(cu.MemFree(managed(5000)));
        CU_OK(cu.ArrayDestroy(array()));
        CU_OK(cu.MipmappedArrayDestroy(mipmap()));
        CU_OK(cu.MemRelease(physical()));
        CU_OK(cu.MemFreeHost(pinned(5000)));
        CU_OK(cu.MemHostUnregister(host));
        CU_OK(cu.MemFree(0));
        CU_OK(cu.MemFreeHost(NULL));
        free(host);
}

static void do_leak(void)
{
        plain(1000);
        plain(200000);
        plain(3 << 20);
        printf("leak device 3 %d\n", 1000 + 200000 + (3 << 20));
        async(7000);
        async(1 << 20);
        printf("leak async 2 %d\n", 7000 + (1 << 20));
        pitched();
        printf("leak pitch 1 -1\n");
        managed(11000);
        managed(12000);
        printf("leak managed 2 23000\n");
        array();
        printf("leak array 1 %d\n", 64 * 64 * 4);
        mipmap();
        printf("leak mipmap 1 -1\n");
        physical();
        printf("leak vmm 1 %d\n", 2 << 20);
        pinned(13000);
        pinned(14000);
        printf("leak pinned 2 27000\n");
        registered(2 * PAGE);
        printf("leak registered 1 %d\n", 2 * PAGE);
}

static void do_double(void)
{
        CUdeviceptr p = plain(5000), q = async(5000), m = managed(5000), r = pitched();
        void *host = pinned(5000), *page = registered(PAGE);

        SAY(MemFree, p);
        SAY(MemFree, p);
        SAY(MemFree, p);
        SAY(MemFreeAsync, p, stream);
        SAY(MemFreeAsync, q, stream);
        SAY(MemFreeAsync, q, stream);
        SAY(MemFree, m);
        SAY(MemFree, m);
        SAY(MemFree, r);
        SAY(MemFree, r);
        SAY(MemFreeHost, host);
        SAY(MemFreeHost, host);
        SAY(MemHostUnregister, page);
        SAY(MemHostUnregister, page);
        printf("finding double_free 8\n");
        free(page);
}

/* Handles released twice. Nobody has asked what a real driver does with those. */
static void do_handles(void)
{
        CUmemGenericAllocationHandle handle = physical();

        SAY(MemRelease, handle);
        SAY(MemRelease, handle);
        printf("finding double_free 1\n");
}

static void do_foreign(void)
{
        /* Never known to the driver, as an address that malloc() gives a second time may have been.
         */
        static char own[64];

        SAY(MemFree, 0x1234);
        SAY(MemFree, (CUdeviceptr)(uintptr_t)own);
        SAY(MemFreeAsync, 0x5678, stream);
        SAY(MemFreeHost, own);
        SAY(MemHostUnregister, own);
        printf("finding foreign 5\n");
}

static void do_interior(void)
{
        CUdeviceptr p = plain(5000), q = async(5000), m = managed(9000);

        SAY(MemFree, p + 512);
        SAY(MemFreeAsync, q + 256, stream);
        SAY(MemFree, m + 4096);
        printf("finding interior 3\n");
        SAY(MemFree, p);
        SAY(MemFree, q);
        SAY(MemFree, m);
}

static void do_wrong(void)
{
        CUdeviceptr p = plain(5000), m = managed(5000);
        void *host = pinned(5000);

        SAY(MemFreeHost, (void *)(uintptr_t)p);
        SAY(MemFree, (CUdeviceptr)(uintptr_t)host);
        SAY(MemFreeAsync, m, stream);
        printf("finding wrong_kind 3\n");
        SAY(MemFree, p);
        SAY(MemFree, m);
        SAY(MemFreeHost, host);
}

/* What dies with a context has not leaked, but cannot be freed any more. */
static void do_context(void)
{
        CUcontext own = NULL, second = NULL;
        CUdevice device;
        CUdeviceptr p;

        CU_OK(cu.CtxGetCurrent(&own));
        CU_OK(cu.DeviceGet(&device, 0));
        CU_OK(cu.CtxCreate(&second, 0, device));
        plain(30000);
        plain(40000);
        p = plain(50000);
        pitched();
        pinned(5000);
        CU_OK(cu.CtxDestroy(second));
        CU_OK(cu.CtxSetCurrent(own));
        SAY(MemFree, p);
        printf("finding after_context 1\n");
}

int main(int argc, char **argv)
{
        static const struct {
                const char *name;
                void (*plant)(void);
        } faults[] = {
                {"clean", do_clean},     {"leak", do_leak},         {"double", do_double},
                {"foreign", do_foreign}, {"interior", do_interior}, {"wrong", do_wrong},
                {"context", do_context}, {"handles", do_handles},
        };

        cu_start(0);
        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        for (int i = 1; i < argc; i++)
                for (size_t j = 0; j < sizeof(faults) / sizeof(faults[0]); j++)
                        if (!strcmp(argv[i], faults[j].name))
                                faults[j].plant();
        CU_OK(cu.StreamDestroy(stream));
        printf("made device %u async %u\n", made_device, made_async);
        return 0;
}
