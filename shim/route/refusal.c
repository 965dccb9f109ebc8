/* SPDX-License-Identifier: Apache-2.0 */

/* Refusal -- the program is told that there is no memory, and a person is told why */

#include "route/refusal.h"

#include "base/life.h"
#include "report/counters.h"
#include "report/shortage.h"
#include "track/limit.h"

void sp_refused(const struct sp_ask *ask)
{
        struct sp_shortage shortage = {
                .kind = ask->kind,
                .bytes = ask->bytes,
                .device = ask->device,
                .site = sp_caller,
                .by_limit = ask->by_limit,
                .limit = sp_limit_cap(ask->device),
                .counted = sp_limit_counted(ask->device),
        };
        size_t free_bytes, total_bytes;
        CUdevice current;

        sp_count(allocs_refused);
        if (!sp_shortage_is_due())
                return;
        /* Legal at any time, also in a capture (3A). */
        if (sp_driver.cuCtxGetDevice(&current) == CUDA_SUCCESS && current == ask->device &&
            sp_driver.cuMemGetInfo_v2(&free_bytes, &total_bytes) == CUDA_SUCCESS) {
                shortage.free_bytes = free_bytes;
                shortage.total_bytes = total_bytes;
        }
        sp_shortage_tell(&shortage);
}
