/* SPDX-License-Identifier: Apache-2.0 */

/*
 * On ledger -- the handlers of memory that is only written down
 *
 * They call the simulated driver. What it does not give to a single process,
 * memory of another one, comes from functions of this file.
 */

#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/shim/begin.h"
#include "tests/sim_driver/control.h"
#include "track/array_size.h"
#include "track/context.h"
#include "track/ledger.h"

static const char here;

static void start(void)
{
        begin_on(1);
        sp_caller = &here;
}

TestSuite(on_ledger, .init = start);

static struct sp_kind_totals totals(enum sp_kind kind)
{
        struct sp_ledger_totals now;

        cr_assert(sp_ledger_totals(&now));
        return now.kind[kind];
}

static uint64_t found(enum sp_finding_kind kind)
{
        struct sp_ledger_totals now;

        cr_assert(sp_ledger_totals(&now));
        return now.findings[kind];
}

/* One live entry of @kind with these bytes, of this device and context, from here. */
static void expect_entry(enum sp_space space, uint64_t address, enum sp_kind kind, size_t bytes)
{
        struct sp_ledger_entry entry;

        cr_assert(sp_ledger_find(space, address, &entry), "%s", sp_kind_name(kind));
        cr_expect_eq(entry.kind, kind, "%s is %s", sp_kind_name(kind), sp_kind_name(entry.kind));
        cr_expect_eq(entry.bytes, bytes, "%s has %zu bytes", sp_kind_name(kind), entry.bytes);
        cr_expect_eq(entry.device, 1, "%s", sp_kind_name(kind));
        cr_expect_eq(entry.site, &here, "%s", sp_kind_name(kind));
        if (kind != SP_KIND_VMM && !entry.pooled)
                cr_expect_eq(entry.context, sp_context_current()->model, "%s", sp_kind_name(kind));
}

static void expect_gone(enum sp_kind kind)
{
        cr_expect_eq(totals(kind).tally.count, 0, "%s", sp_kind_name(kind));
        cr_expect_eq(totals(kind).tally.bytes, 0, "%s", sp_kind_name(kind));
        cr_expect_eq(totals(kind).tally.freed, totals(kind).tally.made, "%s", sp_kind_name(kind));
}

/* each kind comes and goes */

Test(on_ledger, pitch_is_written_with_its_padding)
{
        CUdeviceptr pointer;
        size_t pitch;

        cr_assert_eq(sp_on_cuMemAllocPitch_v2(&pointer, &pitch, 100, 7, 4), CUDA_SUCCESS);
        cr_expect_gt(pitch, 100);
        expect_entry(SP_SPACE_DEVICE, pointer, SP_KIND_PITCH, pitch * 7);
        cr_assert_eq(sp_on_cuMemFree_v2(pointer), CUDA_SUCCESS);
        expect_gone(SP_KIND_PITCH);
}

Test(on_ledger, managed)
{
        CUdeviceptr pointer;

        cr_assert_eq(sp_on_cuMemAllocManaged(&pointer, 5000, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
        expect_entry(SP_SPACE_DEVICE, pointer, SP_KIND_MANAGED, 5000);
        cr_assert_eq(sp_on_cuMemFree_v2(pointer), CUDA_SUCCESS);
        expect_gone(SP_KIND_MANAGED);
}

Test(on_ledger, arrays)
{
        CUDA_ARRAY_DESCRIPTOR flat = {
                .Width = 30, .Height = 20, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 2};
        CUDA_ARRAY3D_DESCRIPTOR deep = {
                .Width = 8, .Height = 4, .Depth = 2, .Format = CU_AD_FORMAT_HALF, .NumChannels = 4};
        CUmipmappedArray mipmap;
        CUarray array;

        cr_assert_eq(sp_on_cuArrayCreate_v2(&array, &flat), CUDA_SUCCESS);
        expect_entry(SP_SPACE_ARRAY, (uintptr_t)array, SP_KIND_ARRAY, 30 * 20 * 8);
        cr_assert_eq(sp_on_cuArrayDestroy(array), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuArray3DCreate_v2(&array, &deep), CUDA_SUCCESS);
        expect_entry(SP_SPACE_ARRAY, (uintptr_t)array, SP_KIND_ARRAY, 8 * 4 * 2 * 8);
        cr_assert_eq(sp_on_cuArrayDestroy(array), CUDA_SUCCESS);
        expect_gone(SP_KIND_ARRAY);
        cr_assert_eq(sp_on_cuMipmappedArrayCreate(&mipmap, &deep, 2), CUDA_SUCCESS);
        expect_entry(SP_SPACE_MIPMAP, (uintptr_t)mipmap, SP_KIND_MIPMAP,
                     8 * 4 * 2 * 8 + 4 * 2 * 1 * 8);
        cr_assert_eq(sp_on_cuMipmappedArrayDestroy(mipmap), CUDA_SUCCESS);
        expect_gone(SP_KIND_MIPMAP);
}

Test(on_ledger, pinned_and_registered_host_memory)
{
        void *own = aligned_alloc(4096, 8192);
        void *pinned[3];

        cr_assert_eq(sp_on_cuMemAllocHost_v2(&pinned[0], 300), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemHostAlloc(&pinned[1], 400, CU_MEMHOSTALLOC_PORTABLE), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemHostAlloc(&pinned[2], 0, 0), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemHostRegister_v2(own, 8192, 0), CUDA_SUCCESS);
        expect_entry(SP_SPACE_HOST, (uintptr_t)pinned[0], SP_KIND_PINNED, 300);
        expect_entry(SP_SPACE_HOST, (uintptr_t)pinned[1], SP_KIND_PINNED, 400);
        expect_entry(SP_SPACE_HOST, (uintptr_t)own, SP_KIND_REGISTERED, 8192);
        cr_expect_eq(totals(SP_KIND_PINNED).tally.made, 2, "a null pointer is no allocation");
        cr_assert_eq(sp_on_cuMemFreeHost(pinned[0]), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemFreeHost(pinned[1]), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemHostUnregister(own), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemHostRegister(own, 4096, 0), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemHostUnregister(own), CUDA_SUCCESS);
        expect_gone(SP_KIND_PINNED);
        expect_gone(SP_KIND_REGISTERED);
        free(own);
}

Test(on_ledger, physical_memory_lives_as_long_as_it_is_mapped)
{
        CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1}};
        const size_t size = 2 << 20;
        CUmemGenericAllocationHandle handle;
        CUdeviceptr range;

        cr_assert_eq(sp_driver.cuMemAddressReserve(&range, size, 0, 0, 0), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemCreate(&handle, size, &prop, 0), CUDA_SUCCESS);
        expect_entry(SP_SPACE_HANDLE, handle, SP_KIND_VMM, size);
        cr_assert_eq(sp_on_cuMemMap(range, size, 0, handle, 0), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemRelease(handle), CUDA_SUCCESS);
        cr_expect_eq(totals(SP_KIND_VMM).tally.bytes, size, "it is mapped still");
        cr_assert_eq(sp_on_cuMemUnmap(range, size), CUDA_SUCCESS);
        cr_expect_eq(totals(SP_KIND_VMM).tally.count, 0);
        cr_expect_eq(totals(SP_KIND_MAPPED).tally.count, 0);
        cr_expect_neq(sp_on_cuMemRelease(handle), CUDA_SUCCESS);
        cr_expect_eq(found(SP_FINDING_DOUBLE_FREE), 1);
}

/* memory of somebody else */

static CUresult CUDAAPI lend(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags)
{
        (void)handle;
        (void)flags;
        *pointer = 0x700000000000;
        return CUDA_SUCCESS;
}

static CUresult CUDAAPI take_back(CUdeviceptr pointer)
{
        return pointer == 0x700000000000 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult CUDAAPI lend_buffer(CUdeviceptr *pointer, CUexternalMemory memory,
                                    const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc)
{
        (void)memory;
        (void)desc;
        *pointer = 0x710000000000;
        return CUDA_SUCCESS;
}

static CUresult CUDAAPI lend_handle(CUmemGenericAllocationHandle *handle, void *source,
                                    CUmemAllocationHandleType type)
{
        (void)source;
        (void)type;
        *handle = 0x720000000000;
        return CUDA_SUCCESS;
}

static CUresult CUDAAPI lend_pointer(CUdeviceptr *pointer, CUmemoryPool pool,
                                     CUmemPoolPtrExportData *exported)
{
        (void)pool;
        (void)exported;
        *pointer = 0x730000000000;
        return CUDA_SUCCESS;
}

Test(on_ledger, borrowed_memory_is_known_and_no_leak)
{
        CUDA_EXTERNAL_MEMORY_BUFFER_DESC desc = {.size = 640};
        CUmemGenericAllocationHandle handle;
        CUipcMemHandle ipc = {{0}};
        CUdeviceptr pointer;

        sp_driver.cuIpcOpenMemHandle = lend;
        sp_driver.cuIpcOpenMemHandle_v2 = lend;
        sp_driver.cuIpcCloseMemHandle = take_back;
        sp_driver.cuExternalMemoryGetMappedBuffer = lend_buffer;
        sp_driver.cuMemImportFromShareableHandle = lend_handle;
        sp_driver.cuMemPoolImportPointer = lend_pointer;
        cr_assert_eq(sp_on_cuIpcOpenMemHandle_v2(&pointer, ipc, 0), CUDA_SUCCESS);
        expect_entry(SP_SPACE_DEVICE, pointer, SP_KIND_IMPORTED, 0);
        cr_assert_eq(sp_on_cuIpcOpenMemHandle(&pointer, ipc, 0), CUDA_SUCCESS);
        cr_expect_eq(totals(SP_KIND_IMPORTED).tally.count, 1, "opened twice");
        cr_assert_eq(sp_on_cuExternalMemoryGetMappedBuffer(&pointer, NULL, &desc), CUDA_SUCCESS);
        expect_entry(SP_SPACE_DEVICE, pointer, SP_KIND_IMPORTED, 640);
        cr_assert_eq(sp_on_cuMemPoolImportPointer(&pointer, NULL, NULL), CUDA_SUCCESS);
        expect_entry(SP_SPACE_DEVICE, pointer, SP_KIND_IMPORTED, 0);
        cr_assert_eq(sp_on_cuMemImportFromShareableHandle(&handle, NULL, 0), CUDA_SUCCESS);
        expect_entry(SP_SPACE_HANDLE, handle, SP_KIND_SHARED, 0);
        cr_expect_eq(totals(SP_KIND_IMPORTED).tally.count, 3);

        for (unsigned int i = 0; i < 2; i++)
                cr_assert_eq(sp_on_cuIpcCloseMemHandle(0x700000000000), CUDA_SUCCESS);
        cr_expect_eq(totals(SP_KIND_IMPORTED).tally.count, 2);
        cr_expect_not(sp_kind_leaks(SP_KIND_IMPORTED) || sp_kind_leaks(SP_KIND_SHARED));
}

/* frees of the wrong sort: the driver's verdict, and a finding */

Test(on_ledger, wrong_frees_are_answered_by_the_driver_and_found)
{
        CUdeviceptr device;
        void *pinned;

        cr_assert_eq(sp_on_cuMemAlloc_v2(&device, 4096), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemHostAlloc(&pinned, 4096, 0), CUDA_SUCCESS);
        cr_expect_eq(sp_on_cuMemFreeHost((void *)(uintptr_t)device), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_on_cuMemFree_v2((uintptr_t)pinned), CUDA_ERROR_INVALID_VALUE);
        cr_expect_neq(sp_on_cuMemHostUnregister(pinned), CUDA_SUCCESS);
        cr_expect_eq(found(SP_FINDING_WRONG_KIND), 3);
        cr_expect_eq(totals(SP_KIND_PINNED).tally.count, 1, "it is alive still");
        cr_expect_eq(totals(SP_KIND_DEVICE).tally.count, 1, "it is alive still");
        cr_expect_eq(sp_on_cuMemFreeHost(NULL), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemFreeHost(pinned), CUDA_SUCCESS);
        cr_expect_eq(sp_on_cuMemFreeHost(pinned), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(found(SP_FINDING_DOUBLE_FREE), 1);
        cr_assert_eq(sp_on_cuMemFree_v2(device), CUDA_SUCCESS);
}

/* out of memory */

Test(on_ledger, is_asked_again_if_the_pool_could_give_something_back)
{
        CUdeviceptr pointer;
        size_t pitch;

        sim_fail("cuMemAllocPitch_v2", 1, CUDA_ERROR_OUT_OF_MEMORY);
        cr_expect_eq(sp_on_cuMemAllocPitch_v2(&pointer, &pitch, 64, 1, 4), CUDA_ERROR_OUT_OF_MEMORY,
                     "there is no pool yet");
        cr_expect_eq(sim_calls("cuMemAllocPitch_v2"), 1);
        cr_expect_eq(totals(SP_KIND_PITCH).tally.made, 0);

        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, 1 << 20), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemFree_v2(pointer), CUDA_SUCCESS);
        sim_fail("cuMemAllocPitch_v2", 1, CUDA_ERROR_OUT_OF_MEMORY);
        cr_expect_eq(sp_on_cuMemAllocPitch_v2(&pointer, &pitch, 64, 1, 4), CUDA_SUCCESS);
        cr_expect_eq(sim_calls("cuMemAllocPitch_v2"), 3);
        cr_expect_eq(totals(SP_KIND_PITCH).tally.made, 1);
}

/* sizes of arrays */

Test(array_size, follows_the_descriptor)
{
        static const struct {
                CUDA_ARRAY3D_DESCRIPTOR desc;
                unsigned int levels;
                size_t bytes;
        } rows[] = {
                {{.Width = 10, .Format = CU_AD_FORMAT_SIGNED_INT8, .NumChannels = 1}, 1, 10},
                {{.Width = 10, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4}, 1, 160},
                {{.Width = 4, .Height = 4, .Format = 0xc1, .NumChannels = 2}, 1, 32},
                {{.Width = 4, .Height = 4, .Format = 0x50, .NumChannels = 4}, 1, 64},
                /* block compressed: 4 x 4 texels in 8 or 16 bytes, the last ones too */
                {{.Width = 8, .Height = 8, .Format = 0x91, .NumChannels = 4}, 1, 32},
                {{.Width = 9, .Height = 8, .Format = 0x9d, .NumChannels = 4}, 1, 96},
                /* levels halve, layers do not, and there are no more than fit */
                {{.Width = 4, .Height = 2, .Depth = 2, .Format = 1, .NumChannels = 1}, 2, 16 + 2},
                {{.Width = 4,
                  .Height = 2,
                  .Depth = 6,
                  .Format = 1,
                  .NumChannels = 1,
                  .Flags = CUDA_ARRAY3D_LAYERED},
                 2,
                 48 + 12},
                {{.Width = 4, .Format = 1, .NumChannels = 1}, 99, 4 + 2 + 1},
                /* no memory of its own, or none that can be told */
                {{.Width = 64, .Format = 1, .NumChannels = 1, .Flags = CUDA_ARRAY3D_SPARSE}, 1, 0},
                {{.Width = 64, .Height = 64, .Format = 0xb0, .NumChannels = 3}, 1, 0},
                {{.Width = SIZE_MAX, .Height = 2, .Format = 1, .NumChannels = 1}, 1, 0},
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                cr_expect_eq(sp_array_bytes(&rows[i].desc, rows[i].levels), rows[i].bytes,
                             "row %zu has %zu bytes", i,
                             sp_array_bytes(&rows[i].desc, rows[i].levels));
}
