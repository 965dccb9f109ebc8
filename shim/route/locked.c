/* SPDX-License-Identifier: Apache-2.0 */

/* Locked -- the driver is to lock pages of the host's memory: may it? */

#include "route/locked.h"

#include <stdatomic.h>

#include "base/log.h"
#include "route/perform.h"
#include "route/route.h"
#include "track/limit.h"

/* Once a process: whoever makes do with less is refused often. */
static void tell(size_t size)
{
        static atomic_flag was_told = ATOMIC_FLAG_INIT;

        if (!atomic_flag_test_and_set(&was_told))
                sp_log(SP_LOG_WARNING,
                       "%zu bytes of page-locked memory are refused by STREAMPOOL_PINNED_LIMIT: "
                       "%llu are held",
                       size, (unsigned long long)sp_limit_counted(SP_LIMIT_HOST));
}

static bool take(size_t bytes)
{
        return sp_limit_take(SP_LIMIT_HOST, bytes) ||
               (sp_relieve_host() && sp_limit_take(SP_LIMIT_HOST, bytes));
}

/* Nothing of no size is locked, and what is wrong is for the driver to say. */
CUresult sp_locked_take(size_t size, size_t *counted)
{
        size_t bytes = sp_limit_rounded(SP_KIND_PINNED, size);
        CUresult result;

        *counted = 0;
        if (!size || sp_limit_cap(SP_LIMIT_HOST) == SP_LIMIT_NONE)
                return CUDA_SUCCESS;
        if (take(bytes)) {
                *counted = bytes;
                return CUDA_SUCCESS;
        }
        result = sp_route_ask_driver();
        if (result != CUDA_SUCCESS)
                return result;
        tell(size);
        return CUDA_ERROR_OUT_OF_MEMORY;
}

void sp_locked_ended(enum sp_kind kind, uint64_t address, size_t size, size_t counted,
                     CUresult result)
{
        struct sp_ledger_entry entry;

        if (result != CUDA_SUCCESS) {
                sp_limit_give(SP_LIMIT_HOST, counted);
                return;
        }
        if (!address)
                return;
        entry = sp_route_entry(kind, address, size);
        entry.counted = counted;
        sp_ledger_add(&entry);
}
