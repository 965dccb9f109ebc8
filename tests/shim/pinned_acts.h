/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_PINNED_ACTS_H
#define TESTS_PINNED_ACTS_H

/*
 * Pinned acts -- page-locked blocks, in short words, and what may be said of them
 */

#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/shim/begin.h"
#include "tests/sim_driver/control.h"
#include "track/context.h"
#include "track/ledger.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static CUcontext context;
static CUstream stream;
static CUdeviceptr device_block;

static inline void start(void)
{
        context = begin_on(0);
        cr_assert_eq(sp_on_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemAlloc_v2(&device_block, 64 * KIB), CUDA_SUCCESS);
        sim_calls_reset();
}

static inline char *alloc(size_t size, unsigned int flags)
{
        void *host = NULL;

        cr_assert_eq(sp_on_cuMemHostAlloc(&host, size, flags), CUDA_SUCCESS);
        cr_assert_not_null(host);
        return host;
}

static inline void give(void *host)
{
        cr_assert_eq(sp_on_cuMemFreeHost(host), CUDA_SUCCESS);
}

static inline void synchronise(void)
{
        cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
}

/* Work that reads the block, and is not done until somebody waits. */
static inline void copy_from(const void *host, size_t size, CUstream on)
{
        launch_on(on);
        cr_assert_eq(cuMemcpyHtoDAsync_v2(device_block, host, size, on), CUDA_SUCCESS);
        cr_assert_gt(sim_pending(), 0);
}

static inline bool is_pooled(const void *host)
{
        struct sp_ledger_entry entry;

        cr_assert(sp_ledger_find(SP_SPACE_HOST, (uintptr_t)host, &entry));
        cr_expect_eq(entry.kind, SP_KIND_PINNED);
        return entry.pooled;
}

static inline struct sp_kind_totals totals(void)
{
        struct sp_ledger_totals all;

        cr_assert(sp_ledger_totals(&all));
        return all.kind[SP_KIND_PINNED];
}

static inline uint64_t found(enum sp_finding_kind kind)
{
        struct sp_ledger_totals all;

        cr_assert(sp_ledger_totals(&all));
        return all.findings[kind];
}

static inline uint64_t attribute_of(const void *host, CUpointer_attribute attribute)
{
        CUpointer_attribute attributes[] = {attribute};
        uint64_t value = 0, same = 0;
        void *values[] = {&same};

        cr_assert_eq(sp_on_cuPointerGetAttribute(&value, attribute, (uintptr_t)host), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuPointerGetAttributes(1, attributes, values, (uintptr_t)host),
                     CUDA_SUCCESS);
        cr_expect_eq(value, same, "attribute %d", attribute);
        return value;
}

static inline void expect_allocation(char *host, size_t size)
{
        CUdeviceptr base = 0, device = 0;
        size_t length = 0;
        char *inside = host + size / 2;

        cr_expect_eq(attribute_of(inside, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR), (uintptr_t)host);
        cr_expect_eq(attribute_of(inside, CU_POINTER_ATTRIBUTE_RANGE_SIZE), size);
        cr_expect_eq(attribute_of(inside, CU_POINTER_ATTRIBUTE_HOST_POINTER), (uintptr_t)inside);
        cr_expect_eq(attribute_of(inside, CU_POINTER_ATTRIBUTE_DEVICE_POINTER), (uintptr_t)inside);
        cr_expect_eq(attribute_of(inside, CU_POINTER_ATTRIBUTE_CONTEXT), (uintptr_t)context);
        cr_expect_eq(attribute_of(inside, CU_POINTER_ATTRIBUTE_MEMORY_TYPE), CU_MEMORYTYPE_HOST);
        cr_expect_eq(attribute_of(inside, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE), 0);
        cr_expect_eq(attribute_of(inside, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE), 0);
        cr_expect_eq(sp_on_cuMemGetAddressRange_v2(&base, &length, (uintptr_t)inside),
                     CUDA_SUCCESS);
        cr_expect(base == (uintptr_t)host && length == size);
        cr_expect_eq(sp_on_cuMemHostGetDevicePointer_v2(&device, inside, 0), CUDA_SUCCESS);
        cr_expect_eq(device, (uintptr_t)inside);
}

#endif
