/* SPDX-License-Identifier: Apache-2.0 */

/* Python sight -- reading memory that may be gone */

#define _GNU_SOURCE

#include "track/python_sight.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* The process is asked for each time: a forked child must not read its parent. */
static bool read_by_kernel(unsigned char *bytes, uintptr_t address, size_t size)
{
        struct iovec here = {bytes, size};
        struct iovec there = {(void *)address, size};

        return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)size;
}

/* The kernel reads a mask of signals before it sees that it is not asked to do anything with it. */
static bool is_readable(uintptr_t address)
{
        const uintptr_t mask = address & ~(uintptr_t)7;

        return syscall(SYS_rt_sigprocmask, ~0, mask, NULL, 8) < 0 && errno == EINVAL;
}

/* @size is less than a page. */
static bool read_if_readable(unsigned char *bytes, uintptr_t address, size_t size)
{
        if (!is_readable(address) || !is_readable(address + size - 1))
                return false;
        memcpy(bytes, (const void *)address, size);
        return true;
}

/* A filter of system calls may end a process for one that is rare, but not for one without which
 * no handler of a signal works. */
const unsigned char *sp_sight_look(struct sp_sight *sight, uintptr_t address, size_t size)
{
        int kept = errno;
        bool is_filtered = prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 0;
        bool is_read;

        if (size > sizeof(sight->bytes))
                return NULL;
        is_read = is_filtered ? read_if_readable(sight->bytes, address, size)
                              : read_by_kernel(sight->bytes, address, size);
        errno = kept;
        return is_read ? sight->bytes : NULL;
}
