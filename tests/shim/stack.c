/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stack -- the frames that are kept are those that glibc's backtrace() sees
 *
 * hook() stands for one of ours: it is called by the program, and takes the place
 * of its caller.
 */

#define _GNU_SOURCE

#include "track/stack.h"

#include <alloca.h>
#include <criterion/criterion.h>
#include <execinfo.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "report/counters.h"

#define DEEP     12

#define NOINLINE __attribute__((noinline))
/* After a call, so that it is none in the place of this one. */
#define STAY() __asm__ volatile("")

static void *seen[SP_FRAMES_MAX + 8];
static int seen_count;
static bool looks = true;
static bool compares; /* at once, before anything else is on the stack */

static void expect_same(const void *place);

static NOINLINE const void *hook(void)
{
        const void *place = sp_stack_take(__builtin_return_address(0));

        if (looks)
                seen_count = backtrace(seen, SP_FRAMES_MAX + 8);
        if (compares)
                expect_same(place);
        return place;
}

static void start(const char *text)
{
        struct sp_frames frames;

        cr_assert(sp_parse_frames(text, "", &frames));
        cr_assert(sp_stack_start(&frames));
        cr_assert(sp_stack_is_kept(start));
}

/* backtrace() begins in hook(), or in what a sanitizer has put in front of itself. */
static void expect_same(const void *place)
{
        const struct sp_stack *stack = sp_stack_of(place);
        int first = 1;

        cr_assert_not_null(stack);
        while (first < 4 && seen[first] != stack->caller)
                first++;
        cr_assert_eq(stack->caller, seen[first]);
        cr_assert_geq(stack->natives, 2);
        for (int i = 0; i < stack->natives && i + first + 1 < seen_count; i++)
                cr_assert_eq(stack->native[i], seen[i + first + 1], "frame %d is %p and not %p", i,
                             stack->native[i], seen[i + first + 1]);
}

/* Two functions of one shape, called through a table by one instruction. */
typedef const void *(*step)(unsigned int path, int left);
static const void *left(unsigned int path, int left_over);
static const void *right(unsigned int path, int left_over);
static step const steps[] = {left, right};

static NOINLINE const void *left(unsigned int path, int left_over)
{
        const void *place = left_over ? steps[path & 1](path >> 1, left_over - 1) : hook();

        STAY();
        return place;
}

static NOINLINE const void *right(unsigned int path, int left_over)
{
        const void *place = left_over ? steps[path & 1](path >> 1, left_over - 1) : hook();

        STAY();
        return place;
}

Test(stack, frames_are_those_of_backtrace)
{
        start("native,32");
        expect_same(left(0x2ad, 5));
        expect_same(right(0x2ad, 9));
}

Test(stack, the_same_calls_are_the_same_place)
{
        const void *place[2];
        volatile int twice = 2; /* one instruction that calls */

        start("native");
        for (int i = 0; i < twice; i++)
                place[i] = left(5, 5);
        cr_expect_eq(place[0], place[1]);
        cr_expect_neq(right(5, 5), place[0]);
}

/* What a thread remembers of one path must not be taken for another. */
Test(stack, any_path_is_told_from_any_other)
{
        start("native,32");
        srand(1);
        for (int i = 0; i < 200000; i++) {
                const void *place = left((unsigned int)rand(), rand() % DEEP);

                if (i % 16 == 0)
                        expect_same(place);
        }
        for (int i = 0; i < 20000; i++)
                expect_same(left((unsigned int)rand(), 3 + rand() % 3));
}

/* A frame that is aligned, and one of a size that is not known before. */
static NOINLINE const void *aligned(void)
{
        _Alignas(64) volatile char line[64];
        const void *place;

        line[0] = 0;
        place = hook();
        line[1] = line[0];
        return place;
}

static size_t left_out;

static NOINLINE const void *sized(void)
{
        volatile char *room = alloca(16 + 16 * left_out);
        const void *place;

        room[0] = 0;
        place = hook();
        room[1] = 0;
        return place;
}

/* Callers whose frames have different sizes. */
static NOINLINE const void *from_small(const void *(*function)(void))
{
        const void *place = function();

        STAY();
        return place;
}

static NOINLINE const void *from_large(const void *(*function)(void))
{
        volatile char room[40];
        const void *place;

        room[39] = 0;
        place = function();
        return room[39] ? NULL : place;
}

/* What one caller left on the stack lies where it lay, beside the frame that the other has called.
 */
Test(stack, frames_of_more_than_one_size_are_not_mixed_up)
{
        const void *(*const callers[])(const void *(*)(void)) = {from_small, from_large};
        const void *(*const functions[])(void) = {aligned, sized};

        start("native");
        compares = true;
        for (unsigned int i = 0; i < 4096; i++) {
                if (i % 64 == 0) {
                        volatile char *shift = alloca(16);

                        shift[0] = 0;
                }
                left_out = i / 4 % 8;
                callers[i & 1](functions[i / 32 & 1]);
        }
}

Test(stack, no_more_frames_than_asked_for)
{
        start("native,3");
        cr_expect_eq(sp_stack_of(left(0, 9))->natives, 3);
        expect_same(left(0, 9));
}

static void *in_thread(void *unused)
{
        (void)unused;
        expect_same(left(3, 4));
        expect_same(left(3, 4));
        return NULL;
}

Test(stack, threads_have_their_own)
{
        start("both");
        expect_same(left(3, 4));
        for (int i = 0; i < 4; i++) {
                pthread_t thread;

                pthread_create(&thread, NULL, in_thread, NULL);
                pthread_join(thread, NULL);
        }
}

static ucontext_t outside, inside;
static const void *from_inside;

/* clang has one in a function that asks for its frame. */
#ifdef __clang__
#define WITH_FRAME_POINTER
#else
#define WITH_FRAME_POINTER __attribute__((optimize("no-omit-frame-pointer")))
#endif

/* Where nothing is mapped. */
static const void *wild_address(void)
{
        void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        return page;
}

/* What the unwinder would follow after this function leads nowhere. */
static NOINLINE WITH_FRAME_POINTER void in_coroutine(void)
{
        const void **frame = __builtin_frame_address(0);

        frame[0] = frame[1] = wild_address();
        from_inside = left(1, 3);
        swapcontext(&inside, &outside);
}

/* Its stack is none that the thread was given, and ends in what is no frame. */
Test(stack, a_stack_that_the_program_made_has_no_frames)
{
        size_t size = 256 << 10;
        char *stack = malloc(size);

        start("native");
        looks = false;
        for (int i = 0; i < 3; i++) {
                getcontext(&inside);
                inside.uc_stack.ss_sp = stack;
                inside.uc_stack.ss_size = size;
                inside.uc_link = &outside;
                makecontext(&inside, in_coroutine, 0);
                swapcontext(&outside, &inside);
                cr_expect_not_null(from_inside);
                cr_expect_null(sp_stack_of(from_inside));
        }
        free(stack);
}

static void *allocates_at_end(void *key)
{
        looks = false;
        cr_expect_not_null(sp_stack_of(left(3, 4)));
        pthread_setspecific(*(pthread_key_t *)key, &looks);
        return NULL;
}

static void late(void *unused)
{
        (void)unused;
        cr_expect_not_null(sp_stack_of(left(3, 4)));
}

/* Else the heap would grow with every thread that ends. */
Test(stack, what_is_late_in_a_thread_is_not_remembered)
{
        pthread_key_t key;
        size_t before = 0;

        start("native");
        pthread_key_create(&key, late);
        for (int i = 0; i < 40; i++) {
                pthread_t thread;

                if (i == 20)
                        before = mallinfo2().uordblks;
                pthread_create(&thread, NULL, allocates_at_end, &key);
                pthread_join(thread, NULL);
        }
        cr_expect_lt(mallinfo2().uordblks, before + (64 << 10));
}

Test(stack, without_room_the_caller_is_all)
{
        unsigned int kept = 0, alone = 0;

        start("native,32");
        looks = false;
        for (unsigned int path = 0; path < 1u << 17; path++) {
                const void *place = left(path, 17);
                bool is_stack = sp_stack_of(place);

                kept += is_stack;
                alone += !is_stack;
                cr_assert_not_null(sp_stack_address(place));
        }
        cr_expect_gt(kept, 1000);
        cr_expect_gt(alone, 1000);
        cr_expect_eq(sp_counter_sum(SP_COUNTER_stacks_unkept), alone);
}

Test(stack, an_address_is_no_stack)
{
        int here = 0;

        cr_expect_null(sp_stack_of(&here));
        start("native");
        cr_expect_null(sp_stack_of(&here));
        cr_expect_null(sp_stack_of(NULL));
        cr_expect_eq(sp_stack_address(&here), &here);
}

Test(stack, off_is_off)
{
        struct sp_frames frames;

        cr_assert(sp_parse_frames("off", "", &frames));
        cr_expect(sp_stack_start(&frames));
        cr_expect_not(sp_stack_is_kept(start));
}
