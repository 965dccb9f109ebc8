/* SPDX-License-Identifier: Apache-2.0 */

/*
 * On ledger -- memory that is the driver's alone, and only written down
 *
 * Every call is forwarded with the caller's own arguments, and answered with
 * the driver's own result, unless it is past the limit (ask.h). An allocation
 * that fails for memory is asked for once more if the pools could give some
 * back (O2). A free takes the entry from the ledger first: the driver may give
 * the address out again before its call returns (E2).
 *
 * Memory of somebody else (on_ipc.c, imported pools, external memory) is known to the ledger, so
 * that freeing it is no finding, and not held against the program at exit.
 */

#include "route/route.h"

#include "route/ask.h"
#include "route/fault.h"
#include "route/give_back.h"
#include "route/locked.h"
#include "route/perform.h"
#include "track/array_size.h"
#include "track/context.h"
#include "track/ledger.h"

struct sp_ledger_entry sp_route_entry(enum sp_kind kind, uint64_t address, size_t bytes)
{
        struct sp_context *context = sp_context_current();

        return (struct sp_ledger_entry){
                .address = address,
                .bytes = bytes,
                .kind = kind,
                .device = context ? context->device->ordinal : -1,
                .context = context ? context->model : 0,
        };
}

void sp_route_write_down(enum sp_kind kind, uint64_t address, size_t bytes)
{
        struct sp_ledger_entry entry = sp_route_entry(kind, address, bytes);

        /* Some calls succeed with a null pointer, for a size of 0. */
        if (address)
                sp_ledger_add(&entry);
}

/* linear device memory */

/* What the driver makes of a row (measured); SIZE_MAX if that cannot be counted. */
static size_t pitch_bytes(size_t width, size_t height)
{
        size_t row = (width + 511) / 512 * 512, bytes;

        return row < width || __builtin_mul_overflow(row, height, &bytes) ? SIZE_MAX : bytes;
}

CUresult CUDAAPI sp_on_cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width,
                                          size_t height, unsigned int element)
{
        size_t bytes = pointer ? pitch_bytes(width, height) : 0;
        CUresult result = sp_fault(SP_KIND_PITCH, "cuMemAllocPitch", pitch ? bytes : 0);
        struct sp_ask ask;
        CUdeviceptr pointer_before = pointer ? *pointer : 0;
        size_t pitch_before = pitch ? *pitch : 0;

        if (result != CUDA_SUCCESS)
                return result;
        ask = sp_ask_for(SP_KIND_PITCH, bytes);
        result = SP_ASK_FOR(&ask,
                            sp_driver.cuMemAllocPitch_v2(pointer, pitch, width, height, element));
        if (result != CUDA_SUCCESS)
                return result;
        if (!sp_ask_settle(&ask, *pitch * height)) {
                sp_driver.cuMemFree_v2(*pointer);
                /* A refusal writes nothing, though we know of it only now. */
                *pointer = pointer_before;
                *pitch = pitch_before;
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
        sp_ask_write_down(&ask, *pointer, sp_context_current(), 0);
        return result;
}

CUresult CUDAAPI sp_on_cuMemAllocManaged(CUdeviceptr *pointer, size_t size, unsigned int flags)
{
        CUresult result = sp_fault(SP_KIND_MANAGED, "cuMemAllocManaged", pointer ? size : 0);
        struct sp_ask ask;

        if (result != CUDA_SUCCESS)
                return result;
        ask = sp_ask_for(SP_KIND_MANAGED, pointer ? size : 0);
        result = SP_ASK_FOR(&ask, sp_driver.cuMemAllocManaged(pointer, size, flags));
        if (result == CUDA_SUCCESS)
                sp_ask_write_down(&ask, *pointer, sp_context_current(), 0);
        return result;
}

/* arrays */

static size_t flat_bytes(const CUDA_ARRAY_DESCRIPTOR *desc)
{
        CUDA_ARRAY3D_DESCRIPTOR same = {
                .Width = desc->Width,
                .Height = desc->Height,
                .Format = desc->Format,
                .NumChannels = desc->NumChannels,
        };

        return sp_array_bytes(&same, 1);
}

CUresult CUDAAPI sp_on_cuArrayCreate_v2(CUarray *handle, const CUDA_ARRAY_DESCRIPTOR *desc)
{
        size_t bytes = handle && desc ? flat_bytes(desc) : 0;
        CUresult result = sp_fault(SP_KIND_ARRAY, "cuArrayCreate", bytes);
        struct sp_ask ask;

        if (result != CUDA_SUCCESS)
                return result;
        ask = sp_ask_for(SP_KIND_ARRAY, bytes);
        result = SP_ASK_FOR(&ask, sp_driver.cuArrayCreate_v2(handle, desc));
        if (result == CUDA_SUCCESS)
                sp_ask_write_down(&ask, (uintptr_t)*handle, sp_context_current(), 0);
        return result;
}

CUresult CUDAAPI sp_on_cuArray3DCreate_v2(CUarray *handle, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
        size_t bytes = handle && desc ? sp_array_bytes(desc, 1) : 0;
        CUresult result = sp_fault(SP_KIND_ARRAY, "cuArray3DCreate", bytes);
        struct sp_ask ask;

        if (result != CUDA_SUCCESS)
                return result;
        ask = sp_ask_for(SP_KIND_ARRAY, bytes);
        result = SP_ASK_FOR(&ask, sp_driver.cuArray3DCreate_v2(handle, desc));
        if (result == CUDA_SUCCESS)
                sp_ask_write_down(&ask, (uintptr_t)*handle, sp_context_current(), 0);
        return result;
}

CUresult CUDAAPI sp_on_cuMipmappedArrayCreate(CUmipmappedArray *handle,
                                              const CUDA_ARRAY3D_DESCRIPTOR *desc,
                                              unsigned int levels)
{
        size_t bytes = handle && desc ? sp_array_bytes(desc, levels) : 0;
        CUresult result = sp_fault(SP_KIND_MIPMAP, "cuMipmappedArrayCreate", bytes);
        struct sp_ask ask;

        if (result != CUDA_SUCCESS)
                return result;
        ask = sp_ask_for(SP_KIND_MIPMAP, bytes);
        result = SP_ASK_FOR(&ask, sp_driver.cuMipmappedArrayCreate(handle, desc, levels));
        if (result == CUDA_SUCCESS)
                sp_ask_write_down(&ask, (uintptr_t)*handle, sp_context_current(), 0);
        return result;
}

CUresult CUDAAPI sp_on_cuArrayDestroy(CUarray array)
{
        return SP_GIVE_BACK(SP_SPACE_ARRAY, array, "cuArrayDestroy",
                            sp_driver.cuArrayDestroy(array));
}

CUresult CUDAAPI sp_on_cuMipmappedArrayDestroy(CUmipmappedArray array)
{
        return SP_GIVE_BACK(SP_SPACE_MIPMAP, array, "cuMipmappedArrayDestroy",
                            sp_driver.cuMipmappedArrayDestroy(array));
}

/* host memory of the program's own */

/* The two versions have one prototype and different rules: each goes to its own. */
CUresult CUDAAPI sp_on_cuMemHostRegister(void *pointer, size_t size, unsigned int flags)
{
        CUresult result = sp_fault(SP_KIND_REGISTERED, "cuMemHostRegister", pointer ? size : 0);
        size_t counted = 0;

        if (result == CUDA_SUCCESS)
                result = sp_locked_take(pointer ? size : 0, &counted);
        if (result == CUDA_SUCCESS)
                result = SP_ASK(sp_driver.cuMemHostRegister(pointer, size, flags));
        sp_locked_ended(SP_KIND_REGISTERED, (uintptr_t)pointer, size, counted, result);
        return result;
}

CUresult CUDAAPI sp_on_cuMemHostRegister_v2(void *pointer, size_t size, unsigned int flags)
{
        CUresult result = sp_fault(SP_KIND_REGISTERED, "cuMemHostRegister", pointer ? size : 0);
        size_t counted = 0;

        if (result == CUDA_SUCCESS)
                result = sp_locked_take(pointer ? size : 0, &counted);
        if (result == CUDA_SUCCESS)
                result = SP_ASK(sp_driver.cuMemHostRegister_v2(pointer, size, flags));
        sp_locked_ended(SP_KIND_REGISTERED, (uintptr_t)pointer, size, counted, result);
        return result;
}

CUresult CUDAAPI sp_on_cuMemHostUnregister(void *pointer)
{
        return SP_GIVE_BACK(SP_SPACE_HOST, pointer, "cuMemHostUnregister",
                            sp_driver.cuMemHostUnregister(pointer));
}

/* memory of somebody else: whoever made it knows its size */

CUresult CUDAAPI sp_on_cuMemPoolImportPointer(CUdeviceptr *pointer, CUmemoryPool pool,
                                              CUmemPoolPtrExportData *exported)
{
        CUresult result = sp_fault(SP_KIND_IMPORTED, "cuMemPoolImportPointer",
                                   pointer && exported ? SP_FAULT_UNSIZED : 0);

        if (result == CUDA_SUCCESS)
                result = sp_driver.cuMemPoolImportPointer(pointer, pool, exported);
        if (result == CUDA_SUCCESS)
                sp_route_write_down(SP_KIND_IMPORTED, *pointer, 0);
        return result;
}

CUresult CUDAAPI sp_on_cuExternalMemoryGetMappedBuffer(CUdeviceptr *pointer,
                                                       CUexternalMemory memory,
                                                       const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc)
{
        CUresult result = sp_fault(SP_KIND_IMPORTED, "cuExternalMemoryGetMappedBuffer",
                                   pointer && desc ? (size_t)desc->size : 0);

        if (result == CUDA_SUCCESS)
                result = SP_ASK(sp_driver.cuExternalMemoryGetMappedBuffer(pointer, memory, desc));
        if (result == CUDA_SUCCESS)
                sp_route_write_down(SP_KIND_IMPORTED, *pointer, (size_t)desc->size);
        return result;
}
