/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bench -- what every test of the simulated driver starts with
 */

#include "test_bench.h"

struct bench bench;

void bench_start(void)
{
        CUmodule module;

        OK(cuInit(0));
        OK(cuDevicePrimaryCtxRetain(&bench.context, 0));
        OK(cuCtxSetCurrent(bench.context));
        OK(cuStreamCreate(&bench.n1, CU_STREAM_NON_BLOCKING));
        OK(cuStreamCreate(&bench.n2, CU_STREAM_NON_BLOCKING));
        OK(cuStreamCreate(&bench.b1, CU_STREAM_DEFAULT));
        OK(cuStreamCreate(&bench.b2, CU_STREAM_DEFAULT));
        OK(cuEventCreate(&bench.event, CU_EVENT_DEFAULT));
        OK(cuModuleLoadData(&module, "any image"));
        OK(cuModuleGetFunction(&bench.spin, module, "spin"));
        OK(cuModuleGetFunction(&bench.fill, module, "fill"));
        OK(cuModuleGetFunction(&bench.add, module, "add"));
        OK(cuModuleGetFunction(&bench.check, module, "check"));
        OK(cuModuleGetFunction(&bench.watch, module, "watch"));
        OK(cuModuleGetFunction(&bench.copy, module, "copy"));
        OK(cuModuleGetFunction(&bench.hold, module, "hold"));
        OK(cuModuleGetFunction(&bench.meet, module, "meet"));
}

static void launch(CUfunction function, CUstream stream, void **parameters)
{
        OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}

void bench_spin(CUstream stream, uint64_t nanoseconds)
{
        launch(bench.spin, stream, (void *[]){&nanoseconds});
}

void bench_fill(CUstream stream, CUdeviceptr to, uint64_t count, uint32_t value)
{
        launch(bench.fill, stream, (void *[]){&to, &count, &value});
}

void bench_add(CUstream stream, CUdeviceptr to, uint64_t count, uint32_t value)
{
        launch(bench.add, stream, (void *[]){&to, &count, &value});
}

void bench_watch(CUstream stream, CUdeviceptr from, uint64_t count, uint32_t expected,
                 uint64_t nanoseconds, CUdeviceptr mismatches)
{
        launch(bench.watch, stream,
               (void *[]){&from, &count, &expected, &nanoseconds, &mismatches});
}

void bench_hold(CUstream stream, CUdeviceptr flag, uint32_t wanted)
{
        uint64_t limit = 0, gave_up = 0; /* that, no simulated kernel does */

        launch(bench.hold, stream, (void *[]){&flag, &wanted, &limit, &gave_up});
}

void bench_meet(CUstream stream, CUdeviceptr mine, CUdeviceptr other, uint32_t value)
{
        uint64_t limit = 0, gave_up = 0;

        launch(bench.meet, stream, (void *[]){&mine, &other, &value, &limit, &gave_up});
}

CUdeviceptr bench_alloc(size_t bytes)
{
        CUdeviceptr address = 0;

        OK(cuMemAlloc_v2(&address, bytes));
        return address;
}

uint32_t bench_value(CUdeviceptr address)
{
        uint32_t value = 0;

        OK(cuCtxSynchronize());
        OK(cuMemcpyDtoH_v2(&value, address, sizeof(value)));
        return value;
}
