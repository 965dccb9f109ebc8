/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MAPPING_H
#define MAPPING_H

/*
 * Mapping -- a program that maps each of its arrays itself, as JAX does
 */

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "report/counters.h"
#include "tests/shim/begin.h"
#include "tests/sim_driver/control.h"
#include "track/vmm.h"

#define MIB ((size_t)1 << 20)

struct array {
        CUmemGenericAllocationHandle handle;
        CUdeviceptr va;
        size_t size;
};

static inline void ok(CUresult result)
{
        cr_assert_eq(result, CUDA_SUCCESS, "%d", (int)result);
}

/* JAX asks for memory that could be exported. */
static inline CUmemAllocationProp prop_on(int device)
{
        return (CUmemAllocationProp){
                .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
        };
}

static inline CUresult create(CUmemGenericAllocationHandle *handle, size_t size, int device)
{
        CUmemAllocationProp prop = prop_on(device);

        return sp_on_cuMemCreate(handle, size, &prop, 0);
}

static inline CUresult allow(CUdeviceptr va, size_t size, int device, CUmemAccess_flags flags)
{
        CUmemAccessDesc access = {
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                .flags = flags,
        };

        return sp_on_cuMemSetAccess(va, size, &access, 1);
}

static inline CUresult allow_rw(CUdeviceptr va, size_t size, int device)
{
        return allow(va, size, device, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

static inline struct array make_on(int device, size_t size)
{
        struct array array = {.size = size};

        ok(create(&array.handle, size, device));
        ok(sp_on_cuMemAddressReserve(&array.va, size, 2 * MIB, 0, 0));
        ok(sp_on_cuMemMap(array.va, size, 0, array.handle, 0));
        ok(allow_rw(array.va, size, device));
        return array;
}

static inline struct array make(size_t size)
{
        return make_on(0, size);
}

static inline void give(struct array array)
{
        ok(sp_on_cuMemUnmap(array.va, array.size));
        ok(sp_on_cuMemRelease(array.handle));
        ok(sp_on_cuMemAddressFree(array.va, array.size));
}

/* Memory of arrays, as the driver knows it. */
static inline size_t in_use(int device)
{
        static size_t most[8];
        size_t unused, total;
        CUcontext context, popped;

        ok(cuDevicePrimaryCtxRetain(&context, device));
        ok(cuCtxPushCurrent_v2(context));
        ok(sp_driver.cuMemGetInfo_v2(&unused, &total));
        ok(cuCtxPopCurrent_v2(&popped));
        ok(cuDevicePrimaryCtxRelease_v2(device));
        if (unused > most[device])
                most[device] = unused;
        return most[device] - unused;
}

/* Nothing is kept beyond what the program once had at a time: it had 34 MiB. */
static inline void start_mapping(void)
{
        CUmemGenericAllocationHandle handle;

        begin_on(0);
        ok(create(&handle, 34 * MIB, 0));
        ok(sp_on_cuMemRelease(handle));
        ok(create(&handle, 34 * MIB, 1));
        ok(sp_on_cuMemRelease(handle));
        cr_assert_eq(in_use(0), 0);
        sim_calls_reset();
}

static inline struct sp_ledger_totals ledger(void)
{
        struct sp_ledger_totals now;

        cr_assert(sp_ledger_totals(&now));
        return now;
}

#endif
