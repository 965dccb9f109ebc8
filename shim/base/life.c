/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life -- may the shim act now?
 *
 * fork() is seen by a handler of pthread_atfork(). A raw clone() runs no
 * handler: for it the state lies on a page that the kernel clears in the child
 * (MADV_WIPEONFORK, Linux 4.14), which makes it NEW there, while `has_been_on`
 * beside the page still says that this cannot be. Where the kernel or a page
 * size above ours does not allow it, such a child is not recognised. Threads
 * and vfork() share the page and are not children.
 */

#include "base/life.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/log.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

union sp_life_page sp_life_page __attribute__((aligned(sizeof(union sp_life_page))));

__thread const void *sp_caller __attribute__((tls_model("initial-exec")));

/* Atomic: set once, before the state becomes ON. */
static atomic_bool has_been_on;
static atomic_bool is_child;

static bool change(enum sp_life from, enum sp_life to)
{
        unsigned int expected = from;

        return atomic_compare_exchange_strong(&sp_life_page.state, &expected, to);
}

bool sp_life_is_child(void)
{
        return atomic_load(&is_child) ||
               (atomic_load(&has_been_on) && sp_life_state() == SP_LIFE_NEW);
}

bool sp_life_begin(void)
{
        if (sp_life_is_child())
                sp_life_child();
        return change(SP_LIFE_NEW, SP_LIFE_STARTING);
}

void sp_life_settle(bool on)
{
        if (!on) {
                change(SP_LIFE_STARTING, SP_LIFE_IDLE);
                return;
        }
        if (sysconf(_SC_PAGESIZE) <= (long)sizeof(sp_life_page))
                (void)madvise(&sp_life_page, sizeof(sp_life_page), MADV_WIPEONFORK);
        atomic_store(&has_been_on, true);
        change(SP_LIFE_STARTING, SP_LIFE_ON);
}

void sp_life_off(const char *reason)
{
        if (change(SP_LIFE_ON, SP_LIFE_OFF))
                sp_log(SP_LOG_ERROR, "%s; new memory comes from the driver from now on", reason);
}

void sp_life_leaving(void)
{
        if (!change(SP_LIFE_ON, SP_LIFE_LEAVING))
                change(SP_LIFE_OFF, SP_LIFE_LEAVING);
}

void sp_life_child(void)
{
        atomic_store(&is_child, true);
        atomic_store(&sp_life_page.state, SP_LIFE_IDLE);
        sp_lock_all_reset();
}
