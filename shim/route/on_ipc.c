/* SPDX-License-Identifier: Apache-2.0 */

/*
 * On IPC -- cuMemAlloc memory of one process in another
 *
 * The driver's handle means a whole allocation of its own. A block of ours that
 * is one has that handle. Any other is a part of something larger, and the other
 * side could not know which (Q2): it gets a sealed handle (track/seal.h), which
 * means this block and opens at its beginning, whichever of its addresses was
 * asked about, as the driver's does (M26). Only a process under the shim can open
 * it, with the pool or without; anywhere else the driver refuses it.
 *
 * Closing waits for the context, because unmapping waits for nobody (M2), and the
 * driver's own close ends the memory as well. Where that wait would break a
 * capture, the memory stays mapped until the next close. In the process that made
 * the handle it does not open, as with the driver.
 *
 * The whole of each chunk behind a block becomes visible to the other process,
 * as the whole page does that the driver puts small blocks into.
 */

#include "base/life.h"
#include "route/fault.h"
#include "route/perform.h"
#include "route/route.h"
#include "route/whole.h"
#include "route/whose.h"
#include "track/export.h"
#include "track/import.h"
#include "track/ledger.h"

CUresult CUDAAPI sp_on_cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer)
{
        struct spm_allocation block;
        enum sp_whose whose = sp_whose(pointer, &block);
        CUresult result;

        if (whose == SP_FOREIGN)
                return sp_driver.cuIpcGetMemHandle(handle, pointer);
        if (!handle || whose == SP_FREED || !sp_can_be_exported(&block))
                return CUDA_ERROR_INVALID_VALUE;
        /* Before somebody can have it. */
        sp_known_outside(&block);
        result = sp_is_whole_native(&block) ? sp_driver.cuIpcGetMemHandle(handle, pointer)
                                            : sp_export_seal(&block, handle);
        return result;
}

/* The seal of a handle that is for us to open; what is wrong with the call is the driver's to say.
 */
static struct sp_context *opener(const CUdeviceptr *pointer, const CUipcMemHandle *handle,
                                 unsigned int flags, struct sp_seal *seal)
{
        if (!sp_life_is_on() || !sp_seal_read(handle, seal) || !pointer ||
            flags > CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
                return NULL;
        return sp_context_current();
}

static CUresult open_seal(CUdeviceptr *pointer, const struct sp_seal *seal,
                          struct sp_context *context, unsigned int flags)
{
        if (sp_export_is_own(seal))
                return CUDA_ERROR_INVALID_CONTEXT;
        return sp_import_open(seal, context, flags, pointer);
}

static CUresult write_down(CUresult result, const CUdeviceptr *pointer)
{
        if (result == CUDA_SUCCESS)
                sp_route_write_down(SP_KIND_IMPORTED, *pointer, 0);
        return result;
}

CUresult CUDAAPI sp_on_cuIpcOpenMemHandle(CUdeviceptr *pointer, CUipcMemHandle handle,
                                          unsigned int flags)
{
        CUresult result =
                sp_fault(SP_KIND_IMPORTED, "cuIpcOpenMemHandle", pointer ? SP_FAULT_UNSIZED : 0);
        struct sp_context *context;
        struct sp_seal seal;

        if (result != CUDA_SUCCESS)
                return result;
        context = opener(pointer, &handle, flags, &seal);
        result = SP_ASK(context ? open_seal(pointer, &seal, context, flags)
                                : sp_driver.cuIpcOpenMemHandle(pointer, handle, flags));
        return write_down(result, pointer);
}

CUresult CUDAAPI sp_on_cuIpcOpenMemHandle_v2(CUdeviceptr *pointer, CUipcMemHandle handle,
                                             unsigned int flags)
{
        CUresult result =
                sp_fault(SP_KIND_IMPORTED, "cuIpcOpenMemHandle", pointer ? SP_FAULT_UNSIZED : 0);
        struct sp_context *context;
        struct sp_seal seal;

        if (result != CUDA_SUCCESS)
                return result;
        context = opener(pointer, &handle, flags, &seal);
        result = SP_ASK(context ? open_seal(pointer, &seal, context, flags)
                                : sp_driver.cuIpcOpenMemHandle_v2(pointer, handle, flags));
        return write_down(result, pointer);
}

/* What was closed before the wait is unmapped after it. */
static CUresult close_import(CUdeviceptr pointer, struct sp_context *context)
{
        CUresult result = sp_route_ask_driver();
        struct sp_import *closed;

        if (result != CUDA_SUCCESS)
                return result;
        if (!sp_import_close(pointer))
                return CUDA_ERROR_INVALID_VALUE;
        closed = sp_import_take_closed(context);
        if (!closed)
                return CUDA_SUCCESS;
        if (sp_route_wait(context, &result))
                sp_import_sweep(closed);
        else
                sp_import_put_back(closed);
        return result;
}

CUresult CUDAAPI sp_on_cuIpcCloseMemHandle(CUdeviceptr pointer)
{
        struct sp_ledger_entry entry;
        bool known = sp_ledger_take(SP_SPACE_DEVICE, pointer, &entry);
        struct sp_context *context;
        CUdeviceptr address;
        CUresult result;
        size_t size;

        result = sp_import_find(pointer, &address, &size, &context) && address == pointer
                         ? close_import(pointer, context)
                         : sp_driver.cuIpcCloseMemHandle(pointer);
        sp_ledger_free_ended(known ? &entry : NULL, SP_SPACE_DEVICE, pointer, "cuIpcCloseMemHandle",
                             result);
        return result;
}
