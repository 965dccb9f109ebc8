/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways to one function of the driver
 *
 * Linked with libcuda, as C programs are. By each way an allocation is made and
 * freed, and the function must be the shim's. Then: which stream does stream 0
 * mean? In functions of the per-thread variant it is another one.
 */

#define _GNU_SOURCE

#include <cuda.h>

#include "routes.h"

/* cuda.h declares the per-thread variants only to programs that use nothing else. */
CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **arguments,
                               void **extra);
CUresult cuStreamQuery_ptsz(CUstream stream);

static void use(const char *way, void *alloc, void *free_it)
{
        uint64_t pointer = 0;

        CHECK(is_ours(alloc), "%s: cuMemAlloc_v2 is not ours", way);
        CHECK(is_ours(free_it), "%s: cuMemFree_v2 is not ours", way);
        if (!alloc || !free_it)
                return;
        CHECK(((alloc_function)alloc)(&pointer, 4096) == 0 && pointer, "%s", way);
        CHECK(((free_function)free_it)(pointer) == 0, "%s", way);
}

static void check_ways(void)
{
        void *driver = dlopen("libcuda.so.1", RTLD_NOW);
        void *again = dlopen("libcuda.so", RTLD_NOW);
        void *program = dlopen(NULL, RTLD_NOW);
        void *found[2] = {NULL, NULL};

        use("linked", (void *)cuMemAlloc, (void *)cuMemFree);
        use("by handle", dlsym(driver, "cuMemAlloc_v2"), dlsym(driver, "cuMemFree_v2"));
        if (again)
                use("by the other name", dlsym(again, "cuMemAlloc_v2"),
                    dlsym(again, "cuMemFree_v2"));
        use("by the program", dlsym(program, "cuMemAlloc_v2"), dlsym(program, "cuMemFree_v2"));
        use("by default", dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"),
            dlsym(RTLD_DEFAULT, "cuMemFree_v2"));
        use("by next", dlsym(RTLD_NEXT, "cuMemAlloc_v2"), dlsym(RTLD_NEXT, "cuMemFree_v2"));

#if CUDA_VERSION >= 12000
        CHECK(cuGetProcAddress("cuMemAlloc", &found[0], 13000, 0, NULL) == CUDA_SUCCESS, "_v2");
        CHECK(cuGetProcAddress("cuMemFree", &found[1], 13000, 0, NULL) == CUDA_SUCCESS, "_v2");
        use("by cuGetProcAddress_v2", found[0], found[1]);
#endif

        gpa1_function old = (gpa1_function)dlsym(RTLD_DEFAULT, "cuGetProcAddress");

        CHECK(old("cuMemAlloc", &found[0], 12000, 0) == 0, "v1");
        CHECK(old("cuMemFree", &found[1], 12000, 0) == 0, "v1");
        use("by cuGetProcAddress", found[0], found[1]);
}

/* A kernel that lasts longer than this program asks. */
static CUfunction spin(void)
{
        CUmodule module = NULL;
        CUfunction function = NULL;

        CHECK(cuModuleLoadData(&module, "any image") == CUDA_SUCCESS, "module");
        CHECK(cuModuleGetFunction(&function, module, "spin") == CUDA_SUCCESS, "function");
        return function;
}

static void check_stream_0(void)
{
        uint64_t nanoseconds = 1000000000;
        void *arguments[] = {&nanoseconds};
        CUfunction function = spin();
        CUlaunchConfig config = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1};

        config.blockDimX = config.blockDimY = config.blockDimZ = 1;
        CHECK(cuLaunchKernelEx_ptsz(&config, function, arguments, NULL) == CUDA_SUCCESS, "launch");
        CHECK(config.hStream == NULL, "the program's structure was changed");
        CHECK(cuStreamQuery(CU_STREAM_PER_THREAD) == CUDA_ERROR_NOT_READY, "not on its own stream");
        CHECK(cuStreamQuery_ptsz(NULL) == CUDA_ERROR_NOT_READY, "stream 0 is the thread's own");
        CHECK(cuStreamSynchronize(CU_STREAM_PER_THREAD) == CUDA_SUCCESS, "synchronize");

        CHECK(cuLaunchKernelEx(&config, function, arguments, NULL) == CUDA_SUCCESS, "launch");
        CHECK(cuStreamQuery(CU_STREAM_LEGACY) == CUDA_ERROR_NOT_READY, "not on the legacy stream");
        CHECK(cuStreamQuery(NULL) == CUDA_ERROR_NOT_READY, "stream 0 is the legacy stream");
        CHECK(cuStreamQuery_ptsz(NULL) == CUDA_SUCCESS, "stream 0 is the thread's own, and idle");
        CHECK(cuCtxSynchronize() == CUDA_SUCCESS, "synchronize");
}

int main(void)
{
        CUcontext context;
        CUdevice device;

        if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) ||
            cuCtxSetCurrent(context))
                return 2;
        check_ways();
        check_stream_0();
        return RESULT();
}
