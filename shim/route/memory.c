/* SPDX-License-Identifier: Apache-2.0 */

/* Memory -- what calls about device memory have in common, in a stream's order or not */

#include "route/memory.h"

#include "route/fault.h"
#include "route/work.h"
#include "track/export.h"
#include "track/held.h"
#include "track/state.h"

CUresult sp_memory_fault(enum sp_kind kind, const char *function, CUdeviceptr *pointer, size_t size)
{
        CUresult result = sp_fault(kind, function, pointer ? size : 0);

        if (result == CUDA_ERROR_OUT_OF_MEMORY)
                *pointer = 0;
        return result;
}

enum spm_status sp_memory_give_back(CUdeviceptr address, enum spm_free_kind kind, spm_stream stream,
                                    struct spm_magazine *full, struct spm_allocation *block)
{
        struct spm_actions actions;
        struct spm_model *model;
        enum spm_status status;

        if (!sp_route_pools())
                return SPM_E_FOREIGN;
        model = sp_model_enter();
        if (full)
                spm_magazine_flush(model, full);
        status = spm_free(model, address, 0, kind, stream, block, &actions);
        if (status == SPM_OK) {
                sp_work_note(block);
                sp_held_freed(block, kind == SPM_FREE_SYNC ? "cuMemFree" : "cuMemFreeAsync");
                /* Before another thread can give back what lies behind it. */
                if (block->exported)
                        sp_export_end(block);
        }
        sp_model_leave();
        if (status != SPM_OK)
                return status;
        sp_perform(&actions, NULL);
        return SPM_OK;
}

void sp_freeing_mirror(const struct sp_freeing *freeing, CUresult result, enum spm_free_kind kind,
                       spm_stream stream)
{
        if (freeing->known && result == CUDA_SUCCESS)
                sp_mirror_free(freeing->entry.shadow, kind, stream);
}

struct sp_freeing sp_freeing_begin(CUdeviceptr address, const char *function)
{
        struct sp_freeing freeing = {.address = address, .function = function};

        freeing.known = sp_ledger_take(SP_SPACE_DEVICE, address, &freeing.entry);
        return freeing;
}

void sp_freeing_end(const struct sp_freeing *freeing, CUresult result)
{
        sp_ledger_free_ended(freeing->known ? &freeing->entry : NULL, SP_SPACE_DEVICE,
                             freeing->address, freeing->function, result);
}

CUresult sp_memory_refuse(CUdeviceptr address, const char *function)
{
        sp_ledger_bad_free(SP_SPACE_DEVICE, address, function, CUDA_ERROR_INVALID_VALUE);
        return CUDA_ERROR_INVALID_VALUE;
}

CUresult sp_memory_refuse_as(CUdeviceptr address, const char *function, CUresult result)
{
        struct spm_allocation block;

        if (result != CUDA_ERROR_DEINITIALIZED ||
            sp_memory_give_back(address, SPM_FREE_SYNC, 0, NULL, &block) != SPM_OK)
                sp_ledger_bad_free(SP_SPACE_DEVICE, address, function, result);
        return result;
}
