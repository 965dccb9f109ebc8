/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start -- the first moment at which the driver works
 *
 * The library is loaded into every process of a job, shells and compilers
 * included. In those nothing happens but one on_exit() in the constructor: no
 * environment is read, no file, thread, socket or memory is made and nothing is
 * printed before the first successful cuInit (D20).
 *
 * The start runs in one thread, with no lock held, because it calls the driver.
 * Other threads do not wait for it: their calls go to the driver until it is
 * done, and what they allocate in that time is not ours.
 */

#define _GNU_SOURCE

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/config.h"
#include "base/life.h"
#include "base/log.h"
#include "driver/driver.h"
#include "entry/exit.h"
#include "report/occasion.h"
#include "report/spot.h"
#include "report/suppress.h"
#include "route/arguments.h"
#include "route/order.h"
#include "route/route.h"
#include "route/uses.h"
#include "track/record.h"
#include "track/stack.h"

/* Is it what STREAMPOOL_ONLY names? Both names of a process count: a script is known by the
 * one, a renamed link by the other. */
static bool is_selected(const struct sp_config *config)
{
        char executable[4096];
        ssize_t length = readlink("/proc/self/exe", executable, sizeof(executable) - 1);

        if (length > 0) {
                executable[length] = '\0';
                if (sp_config_selects(config, executable))
                        return true;
        }
        return sp_config_selects(config, program_invocation_name);
}

static bool is_wanted(const struct sp_config *config)
{
        return !config->disable && config->mode != SP_MODE_OFF && is_selected(config);
}

bool sp_life_start(void)
{
        const struct sp_config *config = sp_config();
        bool on;

        if (!sp_life_begin())
                return sp_life_has_begun();
        sp_config_load();
        if (config->help)
                sp_config_help();
        on = is_wanted(config) && sp_stack_start(&config->stack) && sp_route_start();
        if (on) {
                sp_record_start();
                sp_arguments_start();
                if (config->check & SP_CHECK_ORDER)
                        sp_order_start();
                sp_uses_are_looked_at =
                        config->check & (SP_CHECK_USES | SP_CHECK_ORDER) || sp_record_is_on;
                sp_launches_are_looked_at =
                        sp_arguments_are_looked_at || sp_order_is_on || sp_record_is_on;
                pthread_atfork(NULL, NULL, sp_life_child);
                atexit(sp_life_leaving);
                sp_report_occasions_start();
                sp_suppress_start();
                sp_spot_start();
                sp_log(SP_LOG_INFO, "on, with the driver at %s", sp_driver_path());
        } else {
                sp_log(SP_LOG_INFO, "off: %s",
                       config->disable               ? "STREAMPOOL_DISABLE is set"
                       : config->mode == SP_MODE_OFF ? "STREAMPOOL_MODE is off"
                       : is_selected(config)         ? "no host memory for the pool"
                                                     : "STREAMPOOL_ONLY names other programs");
        }
        sp_life_settle(on);
        return on;
}

/* Early, so that it is the last of its kind to run: see exit.c. */
__attribute__((constructor)) static void load(void)
{
        on_exit(sp_exit_status, NULL);
}
