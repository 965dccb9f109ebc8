/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Ranges -- what NVTX tells becomes a part of the place
 *
 * The test is NVTX: it has the tables of pointers that a library of it hands out,
 * and calls what was put there, as its headers do.
 */

#include "track/ranges.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

#include "track/stack.h"

enum { CORE = 1, CORE2 = 5, SLOTS = 16 };

static void *function[2][SLOTS];
static void **table[2][SLOTS + 1];
static unsigned int sizes[2] = {SLOTS, SLOTS};

static int get_table(int module, void ****result, unsigned int *size)
{
        unsigned int which = module == CORE2;

        if (module != CORE && module != CORE2)
                return 0;
        for (unsigned int i = 1; i < SLOTS; i++)
                table[which][i] = (void **)&function[which][i];
        *result = (void ***)table[which];
        *size = sizes[which];
        return 1;
}

static struct {
        size_t size;
        int (*get_table)(int module, void ****table, unsigned int *size);
} callbacks = {sizeof(callbacks), get_table};

static const void *export_table(unsigned int number)
{
        return number == 1 ? &callbacks : NULL;
}

/* nvtxEventAttributes_v2 */
struct attributes {
        uint16_t version, size;
        uint32_t category;
        int32_t color_type;
        uint32_t color;
        int32_t payload_type, reserved;
        uint64_t payload;
        int32_t message_type, reserved_too;
        const void *message;
};

static void *given(int module, unsigned int index)
{
        cr_assert_not_null(function[module == CORE2][index], "%d, %u", module, index);
        return function[module == CORE2][index];
}

#define CALL(module, index, type, ...) ((type)(uintptr_t)given(module, index))(__VA_ARGS__)
#define PUSH(name)                     CALL(CORE, 9, int (*)(const char *), name)
#define POP()                          CALL(CORE, 11, int (*)(void))
#define PUSH_EX(of)                    CALL(CORE, 8, int (*)(const struct attributes *), of)

static void start(void)
{
        cr_assert_eq(InitializeInjectionNvtx2(export_table), 1);
}

TestSuite(ranges, .init = start);

static const char *range_here(void)
{
        const void *place = sp_stack_take(__builtin_return_address(0));
        const struct sp_stack *stack = sp_stack_of(place);

        return stack ? stack->range : NULL;
}

static void expect(const char *name)
{
        const char *range = range_here();

        if (name)
                cr_expect_str_eq(range, name);
        else
                cr_expect_null(range);
}

Test(ranges, the_innermost_counts)
{
        expect(NULL);
        cr_expect_eq(PUSH("outer"), 0);
        expect("outer");
        cr_expect_eq(PUSH("inner"), 1);
        expect("inner");
        cr_expect_eq(POP(), 1);
        expect("outer");
        cr_expect_eq(POP(), 0);
        expect(NULL);
        cr_expect_lt(POP(), 0);
        expect(NULL);
}

Test(ranges, all_ways_to_give_a_name)
{
        const void *registered =
                CALL(CORE2, 10, const void *(*)(const void *, const char *), NULL, "registered");
        const void *wide =
                CALL(CORE2, 11, const void *(*)(const void *, const wchar_t *), NULL, L"w\u00e9");
        struct attributes named = {.version = 3, .size = 48, .message_type = 1, .message = "ascii"};
        struct attributes spelled = {.size = 48, .message_type = 2, .message = L"wide"};
        struct attributes looked_up = {.size = 48, .message_type = 3, .message = registered};
        struct attributes nameless = {.size = 48};
        struct attributes small = {.size = 16, .message_type = 1, .message = "not read"};

        PUSH_EX(&named);
        expect("ascii");
        PUSH_EX(&spelled);
        expect("wide");
        CALL(CORE2, 4, int (*)(const void *, const struct attributes *), NULL, &looked_up);
        expect("registered");
        CALL(CORE, 10, int (*)(const wchar_t *), L"pushed");
        expect("pushed");
        looked_up.message = wide;
        PUSH_EX(&looked_up);
        expect("w?");
        PUSH_EX(&nameless);
        expect(NULL);
        PUSH_EX(&small);
        expect(NULL);
        PUSH(NULL);
        expect(NULL);
        for (int level = 7; level >= 0; level--)
                cr_expect_eq(level % 2 ? POP() : CALL(CORE2, 5, int (*)(const void *), NULL),
                             level);
        expect(NULL);
}

Test(ranges, a_name_is_kept_when_the_program_changes_it)
{
        char name[200];

        memset(name, 'x', sizeof(name));
        strcpy(name, "before");
        PUSH(name);
        strcpy(name, "after");
        expect("before");
}

Test(ranges, deeper_than_is_remembered)
{
        char name[16];

        for (int i = 0; i < 40; i++) {
                snprintf(name, sizeof(name), "%d", i);
                cr_expect_eq(PUSH(name), i);
        }
        expect("15");
        for (int i = 39; i >= 10; i--)
                cr_expect_eq(POP(), i);
        expect("9");
}

static void *in_thread(void *unused)
{
        (void)unused;
        expect(NULL);
        PUSH("theirs");
        expect("theirs");
        return NULL;
}

Test(ranges, threads_have_their_own)
{
        pthread_t thread;

        PUSH("ours");
        pthread_create(&thread, NULL, in_thread, NULL);
        pthread_join(thread, NULL);
        expect("ours");
}

Test(ranges, tables_that_are_too_small_are_left_alone)
{
        static const void *(*const nothing)(unsigned int) = NULL;

        memset(function, 0, sizeof(function));
        sizes[0] = 9;
        sizes[1] = 0;
        cr_expect_eq(InitializeInjectionNvtx2(export_table), 1);
        cr_expect_not_null(function[0][8]);
        cr_expect_null(function[0][9]);
        cr_expect_null(function[1][4]);
        callbacks.size = 8;
        cr_expect_eq(InitializeInjectionNvtx2(export_table), 0);
        cr_expect_eq(InitializeInjectionNvtx2(nothing), 0);
}

static atomic_bool is_over;

static void *push_on(void *unused)
{
        (void)unused;
        while (!atomic_load(&is_over)) {
                PUSH("another thread's");
                POP();
        }
        return NULL;
}

/* CUDA has not been started, so no other part of the shim knows of the child. */
Test(ranges, a_forked_child_does_not_wait_for_a_thread_that_it_has_not)
{
        pthread_t thread;

        pthread_create(&thread, NULL, push_on, NULL);
        for (int i = 0; i < 200; i++) {
                pid_t child = fork();
                int status;

                if (child == 0) {
                        alarm(5);
                        PUSH("the child's");
                        _exit(0);
                }
                waitpid(child, &status, 0);
                cr_assert_eq(status, 0);
        }
        atomic_store(&is_over, true);
        pthread_join(thread, NULL);
}
