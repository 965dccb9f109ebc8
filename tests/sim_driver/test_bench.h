/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_TEST_BENCH_H
#define SIM_TEST_BENCH_H

/*
 * Bench -- what every test of the simulated driver starts with
 *
 * Criterion runs each test in a process of its own, so each has a fresh driver.
 */

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <criterion/criterion.h>
#include <stdint.h>

#include "control.h"

#define MS 1000000u

struct bench {
        CUcontext context; /* primary of device 0, current */
        CUstream n1, n2;   /* non-blocking */
        CUstream b1, b2;   /* blocking */
        CUevent event;
        CUfunction spin, fill, add, check, watch, copy, hold, meet;
};

extern struct bench bench;

void bench_start(void);

/* Launches; the call must succeed. */
void bench_spin(CUstream stream, uint64_t nanoseconds);
void bench_fill(CUstream stream, CUdeviceptr to, uint64_t count, uint32_t value);
void bench_add(CUstream stream, CUdeviceptr to, uint64_t count, uint32_t value);
void bench_watch(CUstream stream, CUdeviceptr from, uint64_t count, uint32_t expected,
                 uint64_t nanoseconds, CUdeviceptr mismatches);
void bench_hold(CUstream stream, CUdeviceptr flag, uint32_t wanted);
void bench_meet(CUstream stream, CUdeviceptr mine, CUdeviceptr other, uint32_t value);
CUdeviceptr bench_alloc(size_t bytes);

/* The first element, when all work is done. */
uint32_t bench_value(CUdeviceptr address);

#define OK(call) cr_assert_eq(call, CUDA_SUCCESS, "%s failed", #call)

#endif
