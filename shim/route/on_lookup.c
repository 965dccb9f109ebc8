/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers: finding the driver and starting it
 *
 * dlsym() is how a program finds the first function of the driver, and
 * cuGetProcAddress how every CUDA runtime since 11.3 finds the others. Both are
 * answered by those who were asked, with the program's own arguments; what they
 * say about the result, and what they leave untouched, reaches the program
 * unchanged. Only an address that belongs to a function we wrap is replaced. One
 * that may submit work and is not replaced is noted: we would not see that work.
 *
 * These handlers also run before the shim has begun.
 */

#include <stdbool.h>
#include <string.h>

#include "base/life.h"
#include "driver/driver.h"
#include "driver/lookup.h"
#include "report/counters.h"
#include "route/work.h"
#include "track/runtime.h"
#include "track/submit.h"

/* What the program does with it, nobody announces. */
static void note_unknown(const char *symbol)
{
        if (sp_submit_unknown(symbol))
                sp_work_give_up();
}

/*
 * The last call of the dl family is always the program's own, repeated if we had
 * to make others in between: so dlerror() tells the program about its look-up
 * and not about ours (D6).
 */
void *sp_on_dlsym(void *handle, const char *name)
{
        void *found = sp_dlsym(handle, name);
        void *answer;

        if (!found || sp_lookup_is_second())
                return found;
        if (!sp_driver_is_loaded()) {
                bool is_driver = sp_driver_adopt(found);

                found = sp_dlsym(handle, name);
                if (!is_driver)
                        return found;
        }
        answer = sp_lookup_wrapper(found);
        if (answer != found)
                sp_count(lookups_dlsym);
        else if (!sp_submit_is_other(name) && sp_driver_contains(found))
                note_unknown(name);
        return answer;
}

/* Does the program ask for a function that we wrap? It may get one that we do not know: of a
 * driver newer than the headers we were built with. For diagnostics. */
static bool is_name_of_ours(const char *symbol, int version)
{
        for (int i = 0; i < SP_ENTRY_COUNT; i++) {
                const struct sp_entry_info *info = &sp_entry_info[i];

                if (info->kind != SP_ROW_CALL && info->since <= version &&
                    strcmp(info->api, symbol) == 0)
                        return true;
        }
        return false;
}

/* @pfn: where a look-up that succeeded wrote; NULL there stands for "no such function". */
static void replace(const char *symbol, void **pfn, int version)
{
        void *found = pfn ? *pfn : NULL;

        if (!found)
                return;
        sp_runtime_note(sp_caller);
        *pfn = sp_lookup_wrapper(found);
        sp_count(lookups_driver);
        if (*pfn != found) {
                sp_count(lookups_ours);
                return;
        }
        if (is_name_of_ours(symbol, version))
                sp_count(lookups_unknown);
        note_unknown(symbol);
}

CUresult CUDAAPI sp_on_cuGetProcAddress(const char *symbol, void **pfn, int version,
                                        cuuint64_t flags)
{
        CUresult result = sp_driver.cuGetProcAddress(symbol, pfn, version, flags);

        if (result == CUDA_SUCCESS)
                replace(symbol, pfn, version);
        return result;
}

CUresult CUDAAPI sp_on_cuGetProcAddress_v2(const char *symbol, void **pfn, int version,
                                           cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
        CUresult result = sp_driver.cuGetProcAddress_v2(symbol, pfn, version, flags, status);

        if (result == CUDA_SUCCESS)
                replace(symbol, pfn, version);
        return result;
}

/* No lock is held: the driver's cuInit forks (D18). */
CUresult CUDAAPI sp_on_cuInit(unsigned int flags)
{
        CUresult result = sp_driver.cuInit(flags);

        if (result == CUDA_SUCCESS && !sp_life_has_begun())
                sp_life_start();
        return result;
}
