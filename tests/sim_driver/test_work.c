/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Work -- kernels do what their names say, and what cannot be launched is refused
 */

#include "test_bench.h"

#define COUNT 256
#define BYTES (COUNT * sizeof(uint32_t))

TestSuite(work, .init = bench_start, .timeout = 20);

static CUdeviceptr counter(void)
{
        CUdeviceptr address = bench_alloc(4);

        OK(cuMemsetD32_v2(address, 0, 1));
        return address;
}

Test(work, check_counts_the_elements_that_differ)
{
        CUdeviceptr p = bench_alloc(BYTES), mismatches = counter();
        uint64_t count = COUNT;
        uint32_t expected = 5;
        void *parameters[] = {&p, &count, &expected, &mismatches};

        bench_fill(bench.n1, p, COUNT, 5);
        OK(cuMemsetD32Async(p + 8, 6, 3, bench.n1));
        OK(cuLaunchKernel(bench.check, 1, 1, 1, 1, 1, 1, 0, bench.n1, parameters, NULL));
        cr_expect_eq(bench_value(mismatches), 3);
}

Test(work, copy_copies)
{
        CUdeviceptr from = bench_alloc(BYTES), to = bench_alloc(BYTES);
        uint64_t count = COUNT;
        void *parameters[] = {&to, &from, &count};

        bench_fill(bench.n1, from, COUNT, 8);
        OK(cuLaunchKernel(bench.copy, 1, 1, 1, 1, 1, 1, 0, bench.n1, parameters, NULL));
        cr_expect_eq(bench_value(to + BYTES - 4), 8);
}

static void visit(CUfunction function, CUdeviceptr p, uint64_t count, uint32_t before,
                  uint32_t after, CUdeviceptr mismatches)
{
        void *parameters[] = {&p, &count, &before, &after, &mismatches};

        OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, bench.n1, parameters, NULL));
}

Test(work, a_visit_looks_at_both_ends)
{
        CUdeviceptr p = bench_alloc(BYTES), mismatches = counter();
        CUfunction function;
        CUmodule module;

        OK(cuModuleLoadData(&module, "any image"));
        OK(cuModuleGetFunction(&function, module, "visit"));
        visit(function, p, BYTES, 0, 7, mismatches);
        visit(function, p, BYTES, 7, 8, mismatches);
        cr_expect_eq(bench_value(mismatches), 0);
        OK(cuMemsetD8Async(p + BYTES - 1, 9, 1, bench.n1));
        visit(function, p, BYTES, 8, 10, mismatches);
        cr_expect_eq(bench_value(mismatches), 1);
        OK(cuMemsetD8Async(p, 9, 1, bench.n1));
        visit(function, p, BYTES, 10, 11, mismatches);
        cr_expect_eq(bench_value(mismatches), 2);
        visit(function, p, 1, 11, 12, mismatches);
        cr_expect_eq(bench_value(mismatches), 2);
}

Test(work, a_watcher_sees_a_write_that_is_undone_before_its_end)
{
        CUdeviceptr p = bench_alloc(BYTES), mismatches = counter();

        bench_fill(bench.n1, p, COUNT, 5);
        OK(cuStreamSynchronize(bench.n1));
        bench_watch(bench.n1, p, COUNT, 5, 10 * MS, mismatches);
        OK(cuMemsetD32Async(p, 6, 1, bench.n2));
        bench_spin(bench.n2, MS);
        OK(cuMemsetD32Async(p, 5, 1, bench.n2));
        cr_expect_gt(bench_value(mismatches), 0);
}

Test(work, a_watcher_of_untouched_memory_sees_nothing)
{
        CUdeviceptr p = bench_alloc(BYTES), q = bench_alloc(BYTES), mismatches = counter();

        bench_fill(bench.n1, p, COUNT, 5);
        bench_watch(bench.n1, p, COUNT, 5, 10 * MS, mismatches);
        bench_fill(bench.n2, q, COUNT, 6);
        cr_expect_eq(bench_value(mismatches), 0);
}

Test(work, arguments_may_come_in_one_buffer)
{
        CUdeviceptr p = bench_alloc(BYTES), mismatches = counter();
        struct {
                CUdeviceptr p;
                uint64_t count;
                uint32_t expected;
                CUdeviceptr mismatches;
        } arguments = {p, COUNT, 9, mismatches};
        size_t bytes = sizeof(arguments);
        void *extra[] = {
                CU_LAUNCH_PARAM_BUFFER_POINTER,
                &arguments,
                CU_LAUNCH_PARAM_BUFFER_SIZE,
                &bytes,
                CU_LAUNCH_PARAM_END,
        };

        bench_fill(bench.n1, p, COUNT, 8);
        OK(cuLaunchKernel(bench.check, 1, 1, 1, 1, 1, 1, 0, bench.n1, NULL, extra));
        cr_expect_eq(bench_value(mismatches), COUNT);
        cr_expect_eq(cuLaunchKernel(bench.check, 1, 1, 1, 1, 1, 1, 0, bench.n1, NULL, NULL),
                     CUDA_ERROR_INVALID_VALUE);
}

Test(work, an_empty_grid_is_refused)
{
        uint64_t time = 0;
        void *parameters[] = {&time};

        cr_expect_eq(cuLaunchKernel(bench.spin, 1, 0, 1, 1, 1, 1, 0, bench.n1, parameters, NULL),
                     CUDA_ERROR_INVALID_VALUE);
}

Test(work, an_unknown_kernel_is_not_found)
{
        CUmodule module;
        CUfunction function;

        OK(cuModuleLoadData(&module, "any image"));
        cr_expect_eq(cuModuleGetFunction(&function, module, "nothing"), CUDA_ERROR_NOT_FOUND);
        OK(cuModuleUnload(module));
}

Test(work, loading_a_module_waits_for_the_context)
{
        CUmodule module;

        bench_spin(bench.n1, 10 * MS);
        OK(cuModuleLoadData(&module, "any image"));
        cr_expect_eq(cuStreamQuery(bench.n1), CUDA_SUCCESS, "3B");
}

#if CUDA_VERSION >= 12000
Test(work, a_library_has_the_same_kernels)
{
        CUdeviceptr p = bench_alloc(BYTES);
        CUlibrary library;
        CUkernel kernel;
        uint64_t count = COUNT;
        uint32_t value = 4;
        void *parameters[] = {&p, &count, &value};

        OK(cuLibraryLoadData(&library, "any image", NULL, NULL, 0, NULL, NULL, 0));
        OK(cuLibraryGetKernel(&kernel, library, "fill"));
        OK(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
        cr_expect_eq(bench_value(p), 4);
        OK(cuLibraryUnload(library));
}
#endif

#if CUDA_VERSION >= 12040
Test(work, a_kernel_says_what_it_takes)
{
        static const size_t wanted[][2] = {{0, 8}, {8, 8}, {16, 4}, {24, 8}};
        size_t offset, bytes;

        for (size_t i = 0; i < 4; i++) {
                OK(cuFuncGetParamInfo(bench.check, i, &offset, &bytes));
                cr_expect_eq(offset, wanted[i][0]);
                cr_expect_eq(bytes, wanted[i][1]);
        }
        OK(cuFuncGetParamInfo(bench.check, 3, &offset, NULL));
        cr_expect_eq(cuFuncGetParamInfo(bench.check, 4, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(cuFuncGetParamInfo(NULL, 0, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
}

/* A launch takes either handle, and these functions their own. */
Test(work, a_kernel_of_a_library_is_no_function)
{
        CUlibrary library;
        CUkernel kernel;
        CUfunction function;
        const char *name;
        size_t offset, bytes;

        OK(cuLibraryLoadData(&library, "any image", NULL, NULL, 0, NULL, NULL, 0));
        OK(cuLibraryGetKernel(&kernel, library, "second"));
        OK(cuKernelGetFunction(&function, kernel));
        OK(cuKernelGetParamInfo(kernel, 1, &offset, &bytes));
        cr_expect_eq(offset, 16);
        cr_expect_eq(bytes, 4);
        OK(cuFuncGetParamInfo(function, 0, &offset, &bytes));
        cr_expect_eq(bytes, 16);
        OK(cuKernelGetName(&name, kernel));
        cr_expect_str_eq(name, "second");
        OK(cuFuncGetName(&name, function));
        cr_expect_str_eq(name, "second");
        cr_expect_eq(cuFuncGetParamInfo((CUfunction)kernel, 0, &offset, &bytes),
                     CUDA_ERROR_INVALID_HANDLE);
        cr_expect_eq(cuKernelGetParamInfo((CUkernel)function, 0, &offset, &bytes),
                     CUDA_ERROR_INVALID_HANDLE);
        cr_expect_eq(cuFuncGetName(&name, (CUfunction)kernel), CUDA_ERROR_INVALID_HANDLE);
        OK(cuLibraryUnload(library));
}

Test(work, a_structure_is_one_parameter)
{
        CUdeviceptr at[] = {0, counter()};
        uint32_t value = 7;
        CUmodule module;
        CUfunction second;

        OK(cuModuleLoadData(&module, "any image"));
        OK(cuModuleGetFunction(&second, module, "second"));
        OK(cuLaunchKernel(second, 1, 1, 1, 1, 1, 1, 0, bench.n1, (void *[]){at, &value}, NULL));
        cr_expect_eq(bench_value(at[1]), 7);
}
#endif

/* H12: such an event is due before the kernel's end. */
Test(work, a_programmatic_event_does_not_wait_for_its_kernel)
{
        CUlaunchAttribute attribute = {
                .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
                .value.programmaticEvent.event = bench.event,
        };
        CUlaunchConfig config = {
                .gridDimX = 1,
                .gridDimY = 1,
                .gridDimZ = 1,
                .blockDimX = 1,
                .blockDimY = 1,
                .blockDimZ = 1,
                .hStream = bench.n1,
                .attrs = &attribute,
                .numAttrs = 1,
        };
        uint64_t time = 10 * MS;
        void *parameters[] = {&time};

        bench_spin(bench.n1, 10 * MS);
        OK(cuLaunchKernelEx(&config, bench.spin, parameters, NULL));
        cr_expect_eq(cuEventQuery(bench.event), CUDA_ERROR_NOT_READY);
        OK(cuEventSynchronize(bench.event));
        cr_expect_eq(cuStreamQuery(bench.n1), CUDA_ERROR_NOT_READY);
}

Test(work, a_copy_between_devices_arrives)
{
        CUcontext other;
        CUdeviceptr p = bench_alloc(BYTES), q;

        OK(cuDevicePrimaryCtxRetain(&other, 1));
        OK(cuCtxPushCurrent_v2(other));
        q = bench_alloc(BYTES);
        OK(cuCtxPopCurrent_v2(NULL));
        bench_fill(bench.n1, p, COUNT, 7);
        OK(cuMemcpyPeerAsync(q, other, p, bench.context, BYTES, bench.n1));
        OK(cuStreamSynchronize(bench.n1));
        cr_expect_eq(bench_value(q), 7);
}

Test(work, a_prefetch_is_an_operation_of_its_stream)
{
        CUdeviceptr managed, plain = bench_alloc(BYTES);

        OK(cuMemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL));
        bench_spin(bench.n1, 10 * MS);
        OK(cuMemPrefetchAsync(managed, BYTES, 0, bench.n1));
        cr_expect_eq(sim_pending(), 2);
        OK(cuMemAdvise(managed, BYTES, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
        cr_expect_eq(cuMemPrefetchAsync(plain, BYTES, 0, bench.n1), CUDA_ERROR_INVALID_VALUE);
}

Test(work, attaching_memory_is_an_operation_of_its_stream)
{
        CUdeviceptr managed;

        OK(cuMemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL));
        bench_spin(bench.n1, 10 * MS);
        OK(cuStreamAttachMemAsync(bench.n1, managed, 0, CU_MEM_ATTACH_SINGLE));
        cr_expect_eq(sim_pending(), 2);
        cr_expect_eq(cuStreamAttachMemAsync(bench.n1, managed + 4, 0, CU_MEM_ATTACH_SINGLE),
                     CUDA_ERROR_INVALID_VALUE);
}

#if CUDA_VERSION >= 13000
Test(work, a_batch_of_prefetches_is_one_operation_each)
{
        CUmemLocation place = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
        size_t sizes[] = {BYTES, BYTES}, index = 0;
        CUdeviceptr managed[2];

        for (int i = 0; i < 2; i++)
                OK(cuMemAllocManaged(&managed[i], BYTES, CU_MEM_ATTACH_GLOBAL));
        bench_spin(bench.n1, 10 * MS);
        OK(cuMemPrefetchBatchAsync(managed, sizes, 2, &place, &index, 1, 0, bench.n1));
        cr_expect_eq(sim_pending(), 3);
        OK(cuMemDiscardBatchAsync(managed, sizes, 2, 0, bench.n1));
        OK(cuMemDiscardAndPrefetchBatchAsync(managed, sizes, 2, &place, &index, 1, 0, bench.n1));
        cr_expect_eq(sim_pending(), 7);
        cr_expect_eq(cuMemDiscardBatchAsync(managed, sizes, 2, 1, bench.n1),
                     CUDA_ERROR_INVALID_VALUE);
}
#endif

Test(work, a_launch_on_many_devices_is_one_on_each_stream)
{
        CUdeviceptr p = bench_alloc(BYTES), q = bench_alloc(BYTES);
        uint64_t count = COUNT;
        uint32_t value = 5;
        CUDA_LAUNCH_PARAMS list[2] = {
                {bench.fill, 1, 1, 1, 1, 1, 1, 0, bench.n1, (void *[]){&p, &count, &value}},
                {bench.fill, 1, 1, 1, 1, 1, 1, 0, bench.n2, (void *[]){&q, &count, &value}},
        };

        bench_spin(bench.n1, 10 * MS);
        OK(cuLaunchCooperativeKernelMultiDevice(list, 2, 0));
        OK(cuStreamSynchronize(bench.n2));
        cr_expect_eq(cuStreamQuery(bench.n1), CUDA_ERROR_NOT_READY);
        cr_expect_eq(bench_value(p), 5);
        cr_expect_eq(bench_value(q), 5);
        list[1].hStream = NULL;
        cr_expect_eq(cuLaunchCooperativeKernelMultiDevice(list, 2, 0), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(cuLaunchCooperativeKernelMultiDevice(NULL, 2, 0), CUDA_ERROR_INVALID_VALUE);
}

Test(work, a_unified_copy_looks_at_the_addresses)
{
        CUdeviceptr p = bench_alloc(BYTES);
        uint32_t there = 3, back = 0;

        OK(cuMemcpy(p, (CUdeviceptr)(uintptr_t)&there, 4));
        OK(cuMemcpy((CUdeviceptr)(uintptr_t)&back, p, 4));
        cr_expect_eq(back, 3);
}

Test(work, a_slice_is_where_pitch_and_height_put_it)
{
        CUdeviceptr p = bench_alloc(4 * 16);
        unsigned char bytes[64];
        CUDA_MEMCPY3D copy = {
                .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                .srcDevice = p,
                .srcPitch = 8,
                .srcHeight = 2,
                .srcZ = 1,
                .dstMemoryType = CU_MEMORYTYPE_HOST,
                .dstHost = bytes,
                .dstPitch = 2,
                .WidthInBytes = 2,
                .Height = 2,
                .Depth = 2,
        };

        for (unsigned char i = 0; i < 64; i++)
                bytes[i] = i;
        OK(cuMemcpyHtoD_v2(p, bytes, 64));
        OK(cuMemcpy3D_v2(&copy));
        cr_expect_arr_eq(bytes, ((unsigned char[]){16, 17, 24, 25, 32, 33, 40, 41}), 8);
}

Test(work, memory_that_is_not_the_programs_is_refused)
{
        CUdeviceptr p = bench_alloc(BYTES);
        uint32_t value = 0;

        cr_expect_eq(cuMemcpyHtoD_v2(p + BYTES - 2, &value, 4), CUDA_ERROR_INVALID_VALUE);
        OK(cuMemFree_v2(p));
        cr_expect_eq(cuMemsetD8_v2(p, 1, 1), CUDA_ERROR_INVALID_VALUE, "M31");
        cr_expect_eq(cuMemcpyDtoHAsync_v2(&value, p, 4, bench.n1), CUDA_ERROR_INVALID_VALUE);
}
