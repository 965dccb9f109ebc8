/* SPDX-License-Identifier: Apache-2.0 */

/* Barrier -- one thread pays for a fence in all others */

#define _GNU_SOURCE

#include "base/barrier.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

/* linux/membarrier.h, which old systems lack. */
#define PRIVATE_EXPEDITED          8
#define REGISTER_PRIVATE_EXPEDITED 16

/* Atomic. */
static atomic_bool is_registered;

static bool call(int command)
{
        int before = errno;
        bool done = syscall(SYS_membarrier, command, 0) == 0;

        errno = before;
        return done;
}

bool sp_barrier_start(void)
{
        if (!atomic_load(&is_registered) && call(REGISTER_PRIVATE_EXPEDITED))
                atomic_store(&is_registered, true);
        return atomic_load(&is_registered);
}

bool sp_barrier(void)
{
        return sp_barrier_start() && call(PRIVATE_EXPEDITED);
}
