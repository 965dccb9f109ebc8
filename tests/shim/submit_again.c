/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Submit again -- marks that are forgotten while other threads leave some
 *
 * Once a block was served before it was complete, the next submission has to be told, whatever
 * other threads that submit to the same stream have told before, and are about to leave a mark of.
 */

#include <criterion/criterion.h>
#include <pthread.h>

#include "track/submit.h"

#define ROUNDS  1000000
#define THREADS 3
#define STREAM  ((CUstream)(uintptr_t)0x555500001000)

static atomic_ulong begun, ended;
static atomic_bool is_over;
static _Thread_local bool has_told;

static bool tell(CUstream handle)
{
        (void)handle;
        atomic_fetch_add(&begun, 1);
        has_told = true;
        atomic_fetch_add(&ended, 1);
        return true;
}

static void submit(void)
{
        struct sp_submitter *self = sp_submit_enter();

        sp_submit_mark(STREAM, SP_SUBMIT_LAUNCH);
        sp_submit_leave(self);
}

static void *keep_submitting(void *argument)
{
        while (!atomic_load(&is_over))
                submit();
        return argument;
}

/* All that was told so far was told before marks were forgotten. */
static bool is_overlooked(void)
{
        unsigned long before = atomic_load(&ended);
        bool none_tells = atomic_load(&begun) == before;

        sp_submit_again();
        has_told = false;
        submit();
        return none_tells && !has_told && atomic_load(&begun) == before;
}

Test(submit_again, nobody_believes_a_mark_that_was_told_before)
{
        pthread_t threads[THREADS];
        unsigned int overlooked = 0;

        sp_submit_tell = tell;
        for (int i = 0; i < THREADS; i++)
                cr_assert_eq(pthread_create(&threads[i], NULL, keep_submitting, NULL), 0);
        for (int i = 0; i < ROUNDS; i++)
                overlooked += is_overlooked();
        atomic_store(&is_over, true);
        for (int i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
        cr_expect_eq(overlooked, 0, "%u of %d", overlooked, ROUNDS);
}
