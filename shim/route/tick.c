/* SPDX-License-Identifier: Apache-2.0 */

/* Tick -- memory that was idle for long goes back to the driver */

#include "route/tick.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "base/config.h"
#include "report/occasion.h"
#include "route/perform.h"
#include "route/route.h"
#include "route/thrift.h"
#include "track/state.h"
#include "track/vmm.h"

#define TICKS 10 /* to a decay: what is to go leaves in so many steps */

/* Atomic: when the next tick is due, on the clock below. */
static atomic_ullong due;

__thread unsigned int sp_tick_calls __attribute__((tls_model("initial-exec")));

/* The clock of the last timer interrupt: a few milliseconds late, and read without one. */
static unsigned long long now_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
        return (unsigned long long)now.tv_sec * 1000000000 + (unsigned long long)now.tv_nsec;
}

/* True for one thread of those that come after it was due. */
static bool is_due(unsigned long long now)
{
        unsigned long long at = atomic_load_explicit(&due, memory_order_relaxed);

        return now >= at &&
               atomic_compare_exchange_strong(&due, &at, now + sp_config()->decay / TICKS);
}

void sp_tick(void)
{
        struct spm_actions actions;
        enum spm_status status;
        unsigned long long now;

        sp_report_if_asked();
        if (!sp_route_may_act())
                return;
        sp_thrift_trim();
        if (!sp_config()->decay)
                return;
        now = now_ns();
        if (!is_due(now))
                return;
        sp_vmm_tick();
        do {
                status = spm_tick(sp_model_enter(), now, &actions);
                sp_model_leave();
                sp_perform(&actions, NULL);
        } while (status == SPM_AGAIN);
}
