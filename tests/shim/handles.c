/* SPDX-License-Identifier: Apache-2.0 */

/* Handles -- the set against a list of what is there */

#include "track/handles.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HANDLES 3000
#define STEPS   200000

void *__real_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset);

static bool is_host_full;

void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
        return is_host_full ? MAP_FAILED : __real_mmap64(at, size, protection, flags, fd, offset);
}

/* As those of streams are: apart by the same distance, and some of another kind. */
static uint64_t handle_of(unsigned int i)
{
        return i % 3 ? 0x55d0c0001000 + (uint64_t)i * 0x210 : UINT64_C(1) << 63 | i;
}

Test(handles, an_empty_set_has_none)
{
        struct sp_handles set = {0};

        cr_expect_not(sp_handles_has(&set, 1));
        cr_expect_not(sp_handles_remove(&set, 1));
}

Test(handles, has_what_was_added_and_not_removed)
{
        static bool there[HANDLES];
        struct sp_handles set = {0};
        unsigned int seed = 1;

        for (unsigned int step = 0; step < STEPS; step++) {
                /* It grows at first, and is small at last. */
                unsigned int i = (unsigned int)rand_r(&seed) % HANDLES;
                bool adds = (unsigned int)rand_r(&seed) % STEPS > step;

                if (adds)
                        cr_assert(sp_handles_add(&set, handle_of(i)));
                else
                        cr_assert_eq(sp_handles_remove(&set, handle_of(i)), there[i], "step %u",
                                     step);
                there[i] = adds;
                i = (unsigned int)rand_r(&seed) % HANDLES;
                cr_assert_eq(sp_handles_has(&set, handle_of(i)), there[i], "step %u", step);
        }
        for (unsigned int i = 0; i < HANDLES; i++)
                cr_assert_eq(sp_handles_remove(&set, handle_of(i)), there[i], "%u", i);
        cr_expect_eq(set.count, 0);
}

Test(handles, stays_as_it_is_if_there_is_no_memory)
{
        struct sp_handles set = {0};
        unsigned int added = 1;

        cr_assert(sp_handles_add(&set, handle_of(0)));
        is_host_full = true;
        while (sp_handles_add(&set, handle_of(added)))
                added++;
        for (unsigned int i = 0; i < added; i++)
                cr_expect(sp_handles_has(&set, handle_of(i)), "%u", i);
        cr_expect_not(sp_handles_has(&set, handle_of(added)));
        is_host_full = false;
        cr_expect(sp_handles_add(&set, handle_of(added)));
}
