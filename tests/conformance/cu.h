/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CU_H
#define CU_H

/*
 * Cu -- the driver, for programs that must run on any driver
 *
 * The functions are looked up in libcuda.so.1 while the program runs, as most
 * CUDA programs do, so that one binary runs on the real driver and on the
 * simulated one, alone and under the shim, and starts where there is none.
 * cu.Name is NULL where the driver has no such function.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cuda.h>
#include <cudaTypedefs.h>

struct cu {
#define CU(name, symbol, type) type name;
#include "cu.def"
#undef CU
};

/* Written once by cu_load(), before any thread starts. */
extern struct cu cu;

/* The kernels of kernels.h in one context. */
struct cu_kernels {
        CUmodule module;
        CUfunction spin, fill, add, check, watch, copy, hold, meet;
};

/** cu_load() - find the driver; ends the program with status 77 where there is none. */
void cu_load(void);

/** cu_symbol() - any other symbol of the driver's library, or NULL. */
void *cu_symbol(const char *name);

/** cu_is_simulated() - whether this is the simulated driver. */
bool cu_is_simulated(void);

/** cu_start() - cu_load(), cuInit(), the primary context of @device made current. */
CUcontext cu_start(int device);

/** cu_load_kernels() - load the kernels into the current context. */
void cu_load_kernels(struct cu_kernels *kernels);

/** cu_expect() - end the program with a message unless @result is CUDA_SUCCESS. */
void cu_expect(CUresult result, const char *call, const char *file, int line);
#define CU_OK(call) cu_expect((call), #call, __FILE__, __LINE__)

/*
 * Launches. Sizes are in words of 32 bits; @nanoseconds is time on the device.
 * check and watch add the number of words that differ to *@mismatches.
 */
CUresult cu_spin(const struct cu_kernels *k, CUstream stream, uint64_t nanoseconds);
CUresult cu_fill(const struct cu_kernels *k, CUstream stream, CUdeviceptr p, uint64_t count,
                 uint32_t value);
CUresult cu_add(const struct cu_kernels *k, CUstream stream, CUdeviceptr p, uint64_t count,
                uint32_t value);
CUresult cu_check(const struct cu_kernels *k, CUstream stream, CUdeviceptr p, uint64_t count,
                  uint32_t expected, CUdeviceptr mismatches);
CUresult cu_watch(const struct cu_kernels *k, CUstream stream, CUdeviceptr p, uint64_t count,
                  uint32_t expected, uint64_t nanoseconds, CUdeviceptr mismatches);
CUresult cu_copy(const struct cu_kernels *k, CUstream stream, CUdeviceptr to, CUdeviceptr from,
                 uint64_t count);

/* Kernels that wait for a word; after @nanoseconds in vain they add 1 to *@gave_up (kernels.h). */
CUresult cu_hold(const struct cu_kernels *k, CUstream stream, CUdeviceptr flag, uint32_t wanted,
                 uint64_t nanoseconds, CUdeviceptr gave_up);
CUresult cu_meet(const struct cu_kernels *k, CUstream stream, CUdeviceptr mine, CUdeviceptr other,
                 uint32_t value, uint64_t nanoseconds, CUdeviceptr gave_up);

/** cu_launch() - one launch of @grid blocks of 128 threads with @arguments. */
CUresult cu_launch(CUfunction function, CUstream stream, unsigned grid, void **arguments);

/**
 * cu_counter() - words the host and the device both reach, all zero
 *
 * Pinned memory: kernels add to it, and the host reads it after a
 * synchronisation, without a copy that would change the order of things.
 */
uint32_t *cu_counter(size_t count);

/*
 * What the program holds, told to the simulated driver: under the shim several
 * program-level blocks share one block of the driver, and the simulation is to
 * notice when two of them are in use in one place at one time. Nothing happens
 * on the real driver.
 */
void cu_owned(CUdeviceptr p, size_t bytes);
void cu_disowned(CUdeviceptr p);

#endif
