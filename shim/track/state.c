/* SPDX-License-Identifier: Apache-2.0 */

/* State -- the one model of this process: how it begins, and when it keeps still */

#include "track/state.h"

#include <sched.h>

#include "base/barrier.h"
#include "base/config.h"
#include "base/thread.h"
#include "base/log.h"
#include "driver/driver.h"
#include "track/fault.h"
#include "track/layout.h"
#include "track/limit.h"

atomic_uint sp_captures;
atomic_uint sp_epoch = 1;

/* Written once, before the shim is on. */
static int driver_version;

/* Threads between sp_quiet_enter() and _leave(). Each side first counts itself and then looks at
 * the other, so one of them sees the other. */
static atomic_uint quiet_users;

bool sp_quiet_enter(void)
{
        atomic_fetch_add(&quiet_users, 1);
        if (!atomic_load(&sp_captures))
                return true;
        sp_quiet_leave();
        return false;
}

void sp_quiet_leave(void)
{
        atomic_fetch_sub(&quiet_users, 1);
}

void sp_quiet_end(void)
{
        atomic_fetch_add(&sp_captures, 1);
        sp_epoch_end();
        while (atomic_load(&quiet_users))
                sched_yield();
}

static int count_devices(void)
{
        int count = 0;

        if (!sp_driver.cuDeviceGetCount || sp_driver.cuDeviceGetCount(&count) != CUDA_SUCCESS)
                return 0;
        return count;
}

/* A percentage is one of what the driver has, not of what we say it has. */
static void set_limits(const struct sp_config *config, int count)
{
        sp_limit_set(SP_LIMIT_HOST, config->pinned_limit, 0);
        for (int i = 0; i < count && i < SP_LIMITS; i++) {
                struct sp_amount cap = sp_limits_of(&config->limit, (unsigned int)i);
                struct sp_amount soft = sp_limits_of(&config->soft_limit, (unsigned int)i);
                size_t total = 0;

                if ((cap.share || soft.share) &&
                    (!sp_driver.cuDeviceTotalMem_v2 ||
                     sp_driver.cuDeviceTotalMem_v2(&total, i) != CUDA_SUCCESS))
                        sp_log(SP_LOG_ERROR, "device %d does not say of what a limit is a share",
                               i);
                sp_limit_set(i, sp_amount_bytes(cap, total), sp_amount_bytes(soft, total));
        }
}

static void fence(void *unused)
{
        (void)unused;
        (void)sp_barrier();
}

static void pause_for_others(void *unused)
{
        (void)unused;
        sp_thread_nap();
}

bool sp_state_start(void)
{
        const struct sp_config *config = sp_config();
        struct spm_config wish = {
                .batch_blocks = config->batch,
                .batch_bytes = config->batch_bytes,
                .fence = sp_barrier_start() ? fence : NULL,
                .pause = pause_for_others,
        };
        int devices = count_devices();

        if (!sp_driver.cuDriverGetVersion ||
            sp_driver.cuDriverGetVersion(&driver_version) != CUDA_SUCCESS)
                driver_version = 0;
        set_limits(config, devices);
        sp_fault_start(config->fault);
        sp_layout_start(config->layout, devices);
        return sp_model_make(&wish);
}

int sp_state_driver_version(void)
{
        return driver_version;
}
