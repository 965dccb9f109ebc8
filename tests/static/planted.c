/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Planted -- a mistake that only a sanitizer sees
 *
 * Run in the sanitizer builds, where it must fail. If it passes, those builds
 * look for nothing, or their test runner hides what they find.
 */

#include <criterion/criterion.h>
#include <pthread.h>

static int shared;

static void *count(void *nothing)
{
        shared++;
        return nothing;
}

/* Two threads, no order between them: ThreadSanitizer. */
Test(planted, race)
{
        pthread_t thread;

        cr_assert_eq(pthread_create(&thread, NULL, count, NULL), 0);
        shared++;
        cr_assert_eq(pthread_join(thread, NULL), 0);
        cr_assert_eq(shared, 2);
}

/* Past the end of a block, inside its alignment: AddressSanitizer. */
Test(planted, overrun)
{
        volatile char *block = malloc(3);
        volatile size_t index = 3;

        cr_assert(block);
        block[index] = 1;
        free((void *)block);
}
