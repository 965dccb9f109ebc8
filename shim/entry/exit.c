/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exit -- the last report, and the exit status
 *
 * The order in which a process ends, latest first registered first:
 *
 *   1. atexit() of the program, registered after cuInit       the driver works
 *   2. sp_life_leaving(), registered by our start
 *   3. the driver's own, registered inside cuInit             it answers 4 from here on
 *   4. atexit() and static destructors of the program that are older than cuInit
 *   5. destructors of libraries: ours, write_report() here    then the driver's
 *   6. on_exit() of our constructor: sp_exit_status()
 *   7. stdio is flushed, _exit()
 *
 * The report is written in 5, because static destructors of the program still
 * free memory in 4. It is made of what we know: nothing here calls the driver,
 * and locks are tried for a bounded time, since their holders may be threads
 * that the kernel will never run again.
 *
 * The exit status is only told to handlers of on_exit(). Ours is registered in
 * a constructor, before the loader hands over to the program, which makes it the
 * last one to run: it sees the status that everybody else has agreed on. To
 * change it, it calls exit() again; glibc then goes on where it was, with the
 * new status, and so stdio is flushed as ever. _exit() here, or in step 5, would
 * lose what the program had not written yet.
 *
 * If the library was opened by dlopen(), our handler is younger than the
 * destructor and runs first; it writes the report itself then. _exit(),
 * quick_exit(), abort() and signals skip all of this.
 */

#include "entry/exit.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/config.h"
#include "base/life.h"
#include "report/report.h"
#include "route/redzone.h"
#include "track/record.h"

/* Atomic. */
static atomic_bool is_written;

static void write_report(void)
{
        if (!sp_life_has_begun() || sp_life_is_child() || atomic_exchange(&is_written, true))
                return;
        sp_life_leaving();
        sp_record_finish();
        sp_redzone_end();
        if (sp_config()->report_on & SP_ON_EXIT)
                sp_report_write();
}

void sp_exit_status(int status, void *unused)
{
        (void)unused;
        write_report();
        if (status == 0 && atomic_load(&is_written) && sp_config()->exitcode &&
            sp_report_has_findings())
                exit((int)sp_config()->exitcode);
}

__attribute__((destructor)) static void unload(void)
{
        write_report();
}
