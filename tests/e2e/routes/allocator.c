/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A preloaded allocator that looks for the next one when it is first called
 *
 * As jemalloc and others do. If the look-up allocates, the real ones deadlock or
 * overflow the stack; this one says so and ends the process.
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static void *(*next_malloc)(size_t);
static int is_looking;

void *malloc(size_t size)
{
        static const char complaint[] = "allocator: dlsym() allocates\n";

        if (!next_malloc) {
                if (is_looking) {
                        (void)!write(STDERR_FILENO, complaint, sizeof(complaint) - 1);
                        _exit(66);
                }
                is_looking = 1;
                next_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
                is_looking = 0;
        }
        return next_malloc(size);
}
