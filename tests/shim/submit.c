/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Submit -- which streams are known to have work, and when nobody relies on it any more
 *
 * That every hook passes here is tested in submit_hooks.c.
 */

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>

#include "tests/shim/begin.h"
#include "track/context.h"
#include "track/submit.h"

#define STREAMS 64
#define THREADS 50

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, long first, long second);
void __real_sp_submit_slow(CUstream handle, enum sp_submit_class class);
void __wrap_sp_submit_slow(CUstream handle, enum sp_submit_class class);

static bool is_host_full, is_kernel_old;
static void (*at_barrier)(void);
static CUcontext context;

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
        return is_host_full ? NULL : __real_aligned_alloc(alignment, size);
}

long __wrap_syscall(long number, long first, long second)
{
        if (at_barrier && first == 8 /* MEMBARRIER_CMD_PRIVATE_EXPEDITED */)
                at_barrier();
        if (!is_kernel_old)
                return __real_syscall(number, first, second);
        errno = ENOSYS;
        return -1;
}

static atomic_uint told_count;
static bool is_unsure;

static bool count_told(CUstream handle)
{
        (void)handle;
        atomic_fetch_add(&told_count, 1);
        return !is_unsure;
}

static void start(void)
{
        context = begin_on(0);
        sp_submit_tell = count_told;
}

TestSuite(submit, .init = start);

static void submit(CUstream handle, enum sp_submit_class class)
{
        struct sp_submitter *self = sp_submit_enter();

        sp_submit_mark(handle, class);
        sp_submit_leave(self);
}

/* How often is somebody told when this is submitted? */
static unsigned int told(CUstream handle, enum sp_submit_class class)
{
        unsigned int before = atomic_load(&told_count);

        submit(handle, class);
        return atomic_load(&told_count) - before;
}

#define LAUNCHED(handle) told(handle, SP_SUBMIT_LAUNCH)
#define COPIED(handle)   told(handle, SP_SUBMIT_COPY)

static CUstream fake(unsigned int number)
{
        return (CUstream)(uintptr_t)(0x555500001000 + number * 0x2a0);
}

Test(submit, tells_of_a_stream_once)
{
        cr_expect_eq(LAUNCHED(fake(1)), 1);
        cr_expect_eq(LAUNCHED(fake(1)), 0);
        cr_expect_eq(COPIED(fake(1)), 0);
        cr_expect_eq(COPIED(fake(2)), 1);
        cr_expect_eq(LAUNCHED(fake(2)), 0);
        cr_expect_eq(LAUNCHED(CU_STREAM_LEGACY), 1);
        cr_expect_eq(LAUNCHED(CU_STREAM_LEGACY), 0);
}

Test(submit, keeps_many_streams_apart)
{
        unsigned int again = 0;

        for (unsigned int i = 0; i < STREAMS; i++)
                cr_expect_eq(LAUNCHED(fake(i)), 1, "stream %u", i);
        for (unsigned int i = 0; i < STREAMS; i++)
                again += LAUNCHED(fake(i));
        cr_expect_eq(again, 0, "%u were told again", again);
}

/* More than there is room for: each is told, some more than once. */
Test(submit, tells_of_every_stream_of_more_than_it_can_mark)
{
        for (unsigned int i = 0; i < 10 * SP_SUBMIT_MARKS; i++)
                cr_expect_eq(LAUNCHED(fake(i)), 1, "stream %u", i);
        cr_expect_eq(LAUNCHED(fake(10 * SP_SUBMIT_MARKS - 1)), 0);
}

Test(submit, tells_again_of_a_stream_that_was_forgotten)
{
        for (unsigned int i = 0; i < STREAMS; i++)
                submit(fake(i), SP_SUBMIT_LAUNCH);
        submit(CU_STREAM_PER_THREAD, SP_SUBMIT_LAUNCH);
        sp_submit_forget_stream(fake(3));
        cr_expect_eq(LAUNCHED(fake(2)), 0);
        cr_expect_eq(LAUNCHED(fake(3)), 1);
        sp_submit_forget();
        for (unsigned int i = 0; i < STREAMS; i++)
                cr_expect_eq(LAUNCHED(fake(i)), 1, "stream %u", i);
        cr_expect_eq(LAUNCHED(CU_STREAM_PER_THREAD), 1);
        cr_expect_eq(LAUNCHED(CU_STREAM_PER_THREAD), 0);
}

/* The driver gives out the handle of a destroyed stream again. */
Test(submit, tells_of_a_new_stream_with_an_old_handle)
{
        CUstream stream, again;

        cr_assert_eq(sp_on_cuStreamCreate(&stream, 0), CUDA_SUCCESS);
        cr_expect_eq(LAUNCHED(stream), 1);
        cr_assert_eq(sp_on_cuStreamDestroy_v2(stream), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuStreamCreate(&again, 0), CUDA_SUCCESS);
        cr_assert_eq(again, stream);
        cr_expect_eq(LAUNCHED(again), 1);
}

Test(submit, forgets_what_is_of_a_context_that_ends)
{
        submit(fake(1), SP_SUBMIT_LAUNCH);
        cr_assert_not_null(sp_context_of(context));
        cr_assert_eq(sp_on_cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
        cr_expect_eq(LAUNCHED(fake(1)), 1);
}

static void *in_thread(void *count)
{
        cuCtxSetCurrent(context);
        *(unsigned int *)count = LAUNCHED(CU_STREAM_PER_THREAD);
        *(unsigned int *)count += LAUNCHED(CU_STREAM_PER_THREAD);
        return NULL;
}

Test(submit, tells_of_the_stream_of_each_thread)
{
        cr_expect_eq(LAUNCHED(CU_STREAM_PER_THREAD), 1);
        cr_expect_eq(COPIED(CU_STREAM_PER_THREAD), 0);
        for (int i = 0; i < 3; i++) {
                unsigned int count = 0;
                pthread_t thread;

                pthread_create(&thread, NULL, in_thread, &count);
                pthread_join(thread, NULL);
                cr_expect_eq(count, 1, "%u in a new thread", count);
        }
        cr_expect_eq(LAUNCHED(CU_STREAM_PER_THREAD), 0);
}

/* contexts */

static CUcontext other_context(void)
{
        CUcontext other;

        cr_assert_eq(sp_driver.cuDevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);
        return other;
}

Test(submit, tells_of_every_copy_from_another_context)
{
        CUcontext other = other_context();

        submit(fake(1), SP_SUBMIT_COPY);
        sp_submit_watch(context);
        cr_expect_eq(COPIED(fake(1)), 0);
        cuCtxSetCurrent(other);
        cr_expect_eq(LAUNCHED(fake(1)), 0, "a kernel stays in the context of its stream");
        cr_expect_eq(COPIED(fake(1)), 1);
        cr_expect_eq(COPIED(fake(1)), 1);
        cuCtxSetCurrent(NULL);
        cr_expect_eq(COPIED(fake(1)), 1);
        cuCtxSetCurrent(context);
        cr_expect_eq(COPIED(fake(1)), 0);
}

/* A default stream is another one in each. */
Test(submit, tells_of_default_streams_in_each_of_several_contexts)
{
        CUstream handles[] = {CU_STREAM_LEGACY, CU_STREAM_PER_THREAD};
        CUcontext other = other_context();

        for (int i = 0; i < 2; i++)
                cr_expect_eq(LAUNCHED(handles[i]), 1);
        sp_submit_part();
        for (int i = 0; i < 2; i++) {
                cr_expect_eq(LAUNCHED(handles[i]), 1, "what it left before is of no context");
                cr_expect_eq(LAUNCHED(handles[i]), 0);
                cuCtxSetCurrent(other);
                cr_expect_eq(LAUNCHED(handles[i]), 1);
                cr_expect_eq(COPIED(handles[i]), 0);
                cuCtxSetCurrent(NULL);
                cr_expect_eq(LAUNCHED(handles[i]), 1);
                cr_expect_eq(LAUNCHED(handles[i]), 1, "of none, nobody can tell");
                cuCtxSetCurrent(context);
        }
        cr_expect_eq(LAUNCHED(CU_STREAM_LEGACY), 0);
}

static bool part_meanwhile(CUstream handle)
{
        sp_submit_part();
        return count_told(handle);
}

Test(submit, leaves_no_mark_of_no_context_if_a_second_one_came_while_it_was_told)
{
        sp_submit_tell = part_meanwhile;
        cr_expect_eq(LAUNCHED(CU_STREAM_LEGACY), 1);
        cuCtxSetCurrent(other_context());
        cr_expect_eq(LAUNCHED(CU_STREAM_LEGACY), 1);
}

Test(submit, tells_again_where_nobody_could_be_told)
{
        is_unsure = true;
        cr_expect_eq(LAUNCHED(fake(1)), 1);
        cr_expect_eq(LAUNCHED(CU_STREAM_PER_THREAD), 1);
        is_unsure = false;
        cr_expect_eq(LAUNCHED(fake(1)), 1);
        cr_expect_eq(LAUNCHED(CU_STREAM_PER_THREAD), 1);
        cr_expect_eq(LAUNCHED(fake(1)), 0);
}

/* again */

Test(submit, tells_again_of_a_few_and_of_many)
{
        for (unsigned int count = 0; count <= STREAMS; count += count < 10 ? 1 : 27) {
                submit(CU_STREAM_PER_THREAD, SP_SUBMIT_LAUNCH);
                for (unsigned int i = 0; i < count; i++)
                        submit(fake(i), SP_SUBMIT_LAUNCH);
                sp_submit_again();
                for (unsigned int i = 0; i < count; i++)
                        cr_expect_eq(LAUNCHED(fake(i)), 1, "stream %u of %u", i, count);
                cr_expect_eq(LAUNCHED(CU_STREAM_PER_THREAD), 1);
        }
}

static bool forget_meanwhile(CUstream handle)
{
        sp_submit_again();
        return count_told(handle);
}

Test(submit, leaves_no_mark_if_marks_were_forgotten_while_it_was_told)
{
        sp_submit_tell = forget_meanwhile;
        cr_expect_eq(LAUNCHED(fake(1)), 1);
        cr_expect_eq(LAUNCHED(CU_STREAM_PER_THREAD), 1);
        sp_submit_tell = count_told;
        cr_expect_eq(LAUNCHED(fake(1)), 1);
        cr_expect_eq(LAUNCHED(CU_STREAM_PER_THREAD), 1);
        cr_expect_eq(LAUNCHED(fake(1)), 0);
}

/* quiet */

Test(submit, is_quiet_when_nobody_is_inside)
{
        submit(fake(1), SP_SUBMIT_LAUNCH);
        cr_expect(sp_submit_quiesce());
        cr_expect_eq(LAUNCHED(fake(1)), 1);
}

static sem_t arrived, leave;

static void *stay_inside(void *argument)
{
        struct sp_submitter *self = sp_submit_enter();

        sp_submit_mark(fake(1), SP_SUBMIT_LAUNCH);
        sem_post(&arrived);
        sem_wait(&leave);
        /* A callback of the driver's that submits, too. */
        submit(fake(1), SP_SUBMIT_LAUNCH);
        sem_post(&arrived);
        sem_wait(&leave);
        sp_submit_leave(self);
        return argument;
}

Test(submit, is_not_quiet_while_a_thread_is_inside)
{
        pthread_t thread;

        sem_init(&arrived, 0, 0);
        sem_init(&leave, 0, 0);
        pthread_create(&thread, NULL, stay_inside, NULL);
        for (int i = 0; i < 2; i++) {
                sem_wait(&arrived);
                cr_expect_not(sp_submit_quiesce());
                cr_expect_not(sp_submit_quiesce());
                sem_post(&leave);
        }
        pthread_join(thread, NULL);
        cr_expect(sp_submit_quiesce());
}

Test(submit, is_not_quiet_inside_a_submission_of_its_own)
{
        struct sp_submitter *self = sp_submit_enter();

        cr_expect_not(sp_submit_quiesce());
        sp_submit_leave(self);
        cr_expect(sp_submit_quiesce());
}

static struct sp_submitter *seen_inside;
static unsigned int marks_left, barriers;

/* What a thread has done shows at the barrier only. */
static void show_up(void)
{
        barriers++;
        for (unsigned int i = 0; i < SP_SUBMIT_MARKS; i++)
                marks_left += atomic_load(&sp_submit_marks[i]) != 0;
        seen_inside = sp_submit_enter();
}

/* No race would show this in time: on most processors hardly anything is late. */
Test(submit, fences_after_forgetting_and_before_looking)
{
        submit(fake(1), SP_SUBMIT_LAUNCH);
        at_barrier = show_up;
        cr_expect_not(sp_submit_quiesce());
        cr_expect_eq(barriers, 1);
        cr_expect_eq(marks_left, 0);
        sp_submit_leave(seen_inside);
}

Test(submit, is_never_quiet_where_the_kernel_cannot_tell)
{
        is_kernel_old = true;
        errno = 0;
        cr_expect_not(sp_submit_quiesce());
        cr_expect_eq(errno, 0);
}

Test(submit, is_never_quiet_when_it_has_lost_a_thread)
{
        is_host_full = true;
        cr_expect_eq(LAUNCHED(fake(1)), 1);
        cr_expect_eq(LAUNCHED(fake(1)), 1, "no mark says which thread is leaving it");
        cr_expect_geq(LAUNCHED(CU_STREAM_PER_THREAD), 1);
        cr_expect_geq(LAUNCHED(CU_STREAM_PER_THREAD), 1);
        cr_expect_not(sp_submit_quiesce());
}

static void *note_record(void *record)
{
        submit(fake(1), SP_SUBMIT_LAUNCH);
        *(struct sp_submitter **)record = sp_submitter;
        return NULL;
}

Test(submit, a_thread_takes_over_the_record_of_one_that_has_ended)
{
        struct sp_submitter *first = NULL;

        for (int i = 0; i < THREADS; i++) {
                struct sp_submitter *record = NULL;
                pthread_t thread;

                pthread_create(&thread, NULL, note_record, &record);
                pthread_join(thread, NULL);
                cr_assert_not_null(record);
                first = first ? first : record;
                cr_expect_eq(record, first);
        }
}

/*
 * The race that all of this is about. If nobody told since before the quiet moment, then whatever
 * is submitted before somebody tells again is wrong.
 */

#define ROUNDS 20000

static atomic_uint tells = 1, quiet_since, wrong;
static atomic_bool is_over;
static _Thread_local bool has_told;

void __wrap_sp_submit_slow(CUstream handle, enum sp_submit_class class)
{
        has_told = true;
        atomic_fetch_add(&tells, 1);
        __real_sp_submit_slow(handle, class);
}

static void *keep_submitting(void *argument)
{
        unsigned int delay = 0;

        while (!atomic_load(&is_over)) {
                struct sp_submitter *self = sp_submit_enter();

                has_told = false;
                sp_submit_mark(fake(1), SP_SUBMIT_LAUNCH);
                if (++delay % 16 == 0)
                        sched_yield();
                if (!has_told && atomic_load(&tells) == atomic_load(&quiet_since))
                        atomic_fetch_add(&wrong, 1);
                sp_submit_leave(self);
        }
        return argument;
}

Test(submit, nobody_submits_untold_after_a_quiet_moment)
{
        unsigned int quiet = 0;
        pthread_t threads[3];

        for (int i = 0; i < 3; i++)
                pthread_create(&threads[i], NULL, keep_submitting, NULL);
        for (int i = 0; i < ROUNDS; i++) {
                unsigned int before = atomic_load(&tells);

                if (!sp_submit_quiesce())
                        continue;
                quiet++;
                if (atomic_load(&tells) == before)
                        atomic_store(&quiet_since, before);
        }
        atomic_store(&is_over, true);
        for (int i = 0; i < 3; i++)
                pthread_join(threads[i], NULL);
        cr_expect_eq(atomic_load(&wrong), 0, "%u, after %u quiet moments", atomic_load(&wrong),
                     quiet);
}
