/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Arguments -- which addresses that a kernel is given are told, and which are not
 *
 * On the simulated driver, whose kernels say what they take; where the driver has to be odd, with
 * one of the test's own.
 */

#include "route/arguments.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "route/uses.h"
#include "tests/shim/begin.h"
#include "tests/shim/findings.h"
#include "track/signature.h"

enum { LARGE = 4 << 20 };

static CUmodule module;

static CUfunction kernel(const char *name)
{
        CUfunction function;

        cr_assert_eq(cuModuleGetFunction(&function, module, name), CUDA_SUCCESS);
        return function;
}

static void start(void)
{
        begin_on(0);
        cr_assert_eq(cuModuleLoadData(&module, "any"), CUDA_SUCCESS);
}

TestSuite(arguments, .init = start);

static CUdeviceptr block_of(size_t bytes)
{
        CUdeviceptr block;

        cr_assert_eq(sp_on_cuMemAlloc_v2(&block, bytes), CUDA_SUCCESS);
        return block;
}

static CUdeviceptr freed_of(size_t bytes)
{
        CUdeviceptr block = block_of(bytes);

        cr_assert_eq(sp_on_cuMemFree_v2(block), CUDA_SUCCESS);
        return block;
}

static void look(CUfunction function, void **params)
{
        sp_argument_look("cuLaunchKernel", function, CU_STREAM_LEGACY, params, NULL);
}

static void look_at_fill(CUdeviceptr p, uint64_t count)
{
        uint32_t value = 1;

        look(kernel("fill"), (void *[]){&p, &count, &value});
}

static void look_at_copy(CUdeviceptr to, CUdeviceptr from)
{
        uint64_t count = 1;

        look(kernel("copy"), (void *[]){&to, &from, &count});
}

/* what is told */

Test(arguments, of_a_freed_block_everything_is_told)
{
        CUdeviceptr block = freed_of(1000);

        look_at_fill(block + 500, 1);
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].kind, SP_FINDING_ARGUMENT_AFTER_FREE);
        cr_expect_eq(found[0].address, block + 500);
        cr_expect_eq(found[0].argument, 1);
        cr_expect_str_eq(found[0].kernel, "fill");
        cr_expect_str_eq(found[0].function, "cuLaunchKernel");
        cr_assert(found[0].has_block);
        cr_expect_eq(found[0].block.address, block);
        cr_expect_eq(found[0].block.bytes, 1000);
        cr_expect_str_eq(found[0].freed_by, "cuMemFree");
}

Test(arguments, the_number_is_that_among_all_parameters)
{
        CUdeviceptr lives = block_of(1000), block = freed_of(1000);
        uint64_t count = 1;
        uint32_t expected = 1;

        look(kernel("check"), (void *[]){&lives, &count, &expected, &block});
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].argument, 4);
}

Test(arguments, each_argument_of_each_kernel_is_one_finding)
{
        CUdeviceptr block = freed_of(1000);

        for (int i = 0; i < 3; i++)
                look_at_copy(block, block + 8);
        look_at_fill(block, 1);
        cr_assert_eq(findings(), 3);
        cr_expect_eq(found[0].times, 3);
        cr_expect_eq(found[1].times, 3);
        cr_expect_eq(found[2].times, 1);
}

Test(arguments, what_a_stream_freed_is_told)
{
        CUdeviceptr block;

        cr_assert_eq(sp_on_cuMemAllocAsync(&block, 1000, CU_STREAM_LEGACY), CUDA_SUCCESS);
        look_at_fill(block, 1);
        cr_expect_eq(findings(), 0);
        cr_assert_eq(sp_on_cuMemFreeAsync(block, CU_STREAM_LEGACY), CUDA_SUCCESS);
        look_at_fill(block, 1);
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].block.kind, SP_KIND_ASYNC);
        cr_expect_str_eq(found[0].freed_by, "cuMemFreeAsync");
}

Test(arguments, what_the_driver_freed_is_told_while_nothing_is_there)
{
        CUcontext context;
        CUdeviceptr block;
        size_t pitch;

        cr_assert_eq(cuCtxGetCurrent(&context), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemAllocPitch_v2(&block, &pitch, 100, 10, 4), CUDA_SUCCESS);
        look_at_fill(block, 1);
        cr_expect_eq(findings(), 0);
        cr_assert_eq(sp_on_cuMemFree_v2(block), CUDA_SUCCESS);
        cr_assert_eq(cuCtxSetCurrent(NULL), CUDA_SUCCESS);
        look_at_fill(block, 1);
        cr_expect_eq(findings(), 0, "without a context it is not known what is there");
        cr_assert_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
        look_at_fill(block, 1);
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].block.kind, SP_KIND_PITCH);
}

/* what is not */

Test(arguments, nothing_is_said_of_what_lives_nor_of_numbers)
{
        CUdeviceptr block, again;
        void *pages;

        get_at_hand(1000);
        block = freed_of(1000);
        again = block_of(1000);
        cr_assert_eq(again, block);
        cr_assert_eq(sp_on_cuMemHostAlloc(&pages, 1000, 0), CUDA_SUCCESS);
        look_at_fill(again, 1000);
        look_at_fill((uintptr_t)pages, 1u << 31);
        look_at_fill((uintptr_t)&block, UINT64_MAX);
        look_at_fill(0, (uint64_t)1 << 63);
        look_at_fill(1, again + (1 << 20));
        cr_expect_eq(findings(), 0);
}

Test(arguments, behind_a_freed_block_nothing_is_said)
{
        CUdeviceptr keeper = block_of(1000), block = freed_of(LARGE);

        look_at_fill(block + LARGE, 1);
        look_at_fill(keeper + 1000, 1);
        cr_expect_eq(findings(), 0);
        look_at_fill(block + LARGE - 1, 1);
        cr_expect_eq(findings(), 1);
}

/* Neighbours, of which the second one is freed. */
static CUdeviceptr before_freed(void)
{
        CUdeviceptr block = block_of(LARGE), next = block_of(LARGE);

        while (next != block + LARGE) {
                block = next;
                next = block_of(LARGE);
        }
        cr_assert_eq(sp_on_cuMemFree_v2(next), CUDA_SUCCESS);
        return block;
}

Test(arguments, the_end_of_a_live_block_that_is_given_too_is_its_end)
{
        CUdeviceptr block = before_freed();

        look_at_copy(block + 100, block + LARGE);
        cr_expect_eq(findings(), 0);
        look_at_copy(block + 100, block + LARGE + 4);
        cr_expect_eq(findings(), 1, "inside of the freed one");
}

Test(arguments, alone_it_is_the_begin_of_the_freed_one)
{
        CUdeviceptr block = before_freed();

        look_at_fill(block + LARGE, 1);
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].block.address, block + LARGE);
}

Test(arguments, the_end_of_a_freed_block_is_the_begin_of_the_live_one_behind_it)
{
        CUdeviceptr block = block_of(LARGE), next = block_of(LARGE);

        while (next != block + LARGE) {
                block = next;
                next = block_of(LARGE);
        }
        cr_assert_eq(sp_on_cuMemFree_v2(block), CUDA_SUCCESS);
        look_at_fill(next, 1);
        cr_expect_eq(findings(), 0);
}

Test(arguments, words_inside_of_a_structure_are_not_looked_at)
{
        CUdeviceptr lives = block_of(1000), block = freed_of(LARGE);
        CUdeviceptr at[] = {lives, block}, swapped[] = {block, lives};
        uint32_t value = 1;

        look(kernel("second"), (void *[]){at, &value});
        look(kernel("second"), (void *[]){swapped, &value});
        cr_expect_eq(findings(), 0);
}

Test(arguments, nothing_is_said_while_a_stream_captures)
{
        CUdeviceptr block = freed_of(1000);

        atomic_fetch_add(&sp_captures, 1);
        look_at_fill(block, 1);
        cr_expect_eq(findings(), 0);
        atomic_fetch_sub(&sp_captures, 1);
        look_at_fill(block, 1);
        cr_expect_eq(findings(), 1);
}

/* how they are given */

struct fill {
        CUdeviceptr p;
        uint64_t count;
        uint32_t value;
};

static void look_in_buffer(const struct fill *fill, size_t bytes)
{
        void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)fill, CU_LAUNCH_PARAM_BUFFER_SIZE,
                         &bytes, CU_LAUNCH_PARAM_END};

        sp_argument_look("cuLaunchKernel", kernel("fill"), CU_STREAM_LEGACY, NULL, extra);
}

Test(arguments, may_come_in_one_buffer)
{
        struct fill first = {.p = freed_of(1000)}, second = {.count = first.p};

        look_in_buffer(&first, sizeof(first));
        look_in_buffer(&second, sizeof(second));
        cr_assert_eq(findings(), 2);
        cr_expect_eq(found[0].argument, 1);
        cr_expect_eq(found[1].argument, 2);
}

Test(arguments, behind_the_end_of_the_buffer_nothing_is_read)
{
        struct fill fill = {.p = freed_of(1000), .count = fill.p};

        look_in_buffer(&fill, 7);
        cr_expect_eq(findings(), 0);
        look_in_buffer(&fill, 15);
        cr_expect_eq(findings(), 1);
}

Test(arguments, that_the_driver_would_refuse_are_not_looked_at)
{
        CUdeviceptr block = freed_of(1000);
        uint64_t count = 1;
        uint32_t value = 1;
        size_t bytes = sizeof(struct fill);
        struct fill fill = {.p = block};
        void *params[] = {&block, &count, &value};
        void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &fill, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                         CU_LAUNCH_PARAM_END};
        void *odd[] = {(void *)17, &fill, CU_LAUNCH_PARAM_BUFFER_POINTER, &fill,
                       CU_LAUNCH_PARAM_END};
        CUfunction function = kernel("fill");

        sp_argument_look("cuLaunchKernel", function, CU_STREAM_LEGACY, params, extra);
        sp_argument_look("cuLaunchKernel", function, CU_STREAM_LEGACY, NULL, NULL);
        sp_argument_look("cuLaunchKernel", function, CU_STREAM_LEGACY, NULL, odd);
        sp_argument_look("cuLaunchKernel", NULL, CU_STREAM_LEGACY, params, NULL);
        look(function, (void *[]){NULL, NULL, NULL});
        cr_expect_eq(findings(), 0);
}

#if CUDA_VERSION >= 12040
Test(arguments, of_a_kernel_of_a_library_are_looked_at)
{
        CUdeviceptr block = freed_of(1000);
        uint64_t count = 1;
        uint32_t value = 1;
        void *params[] = {&block, &count, &value};
        CUlibrary library;
        CUkernel handle;

        cr_assert_eq(cuLibraryLoadData(&library, "any", NULL, NULL, 0, NULL, NULL, 0),
                     CUDA_SUCCESS);
        cr_assert_eq(cuLibraryGetKernel(&handle, library, "add"), CUDA_SUCCESS);
        look((CUfunction)handle, params);
        cr_assert_eq(findings(), 1);
        cr_expect_str_eq(found[0].kernel, "add");
}
#endif

Test(arguments, of_a_launch_by_structure_are_looked_at_where_asked_for)
{
        CUdeviceptr block = freed_of(1000);
        uint64_t count = 1;
        uint32_t value = 1;
        void *params[] = {&block, &count, &value};
        CUlaunchConfig config = {.hStream = CU_STREAM_LEGACY};
        CUDA_LAUNCH_PARAMS list[] = {{.function = kernel("fill"), .kernelParams = params}};

        /* Neither has blocks, and the driver refuses both. */
        (void)sp_on_cuLaunchKernelEx(&config, kernel("fill"), params, NULL);
        (void)sp_on_cuLaunchCooperativeKernelMultiDevice(list, 1, 0);
        cr_expect_eq(findings(), 0);
        sp_arguments_are_looked_at = sp_launches_are_looked_at = true;
        (void)sp_on_cuLaunchKernelEx(&config, kernel("fill"), params, NULL);
        (void)sp_on_cuLaunchKernelEx(NULL, kernel("fill"), params, NULL);
        (void)sp_on_cuLaunchCooperativeKernelMultiDevice(list, 1, 0);
        (void)sp_on_cuLaunchCooperativeKernelMultiDevice(NULL, 1, 0);
        cr_assert_eq(findings(), 2);
        cr_expect_str_eq(found[0].function, "cuLaunchKernelEx");
        cr_expect_str_eq(found[1].function, "cuLaunchCooperativeKernelMultiDevice");
}

/* a driver of the test's own */

#if CUDA_VERSION >= 12040
static unsigned int questions;
static CUresult answer;
static size_t parameters = 1;

static CUresult CUDAAPI describe(CUfunction function, size_t index, size_t *offset, size_t *size)
{
        (void)function;
        questions++;
        if (answer)
                return answer;
        if (index >= parameters)
                return CUDA_ERROR_INVALID_VALUE;
        *offset = 8 * index;
        *size = 8;
        return CUDA_SUCCESS;
}

static CUfunction number(uintptr_t value)
{
        return (CUfunction)value; // NOLINT
}

static unsigned int asked(CUfunction function)
{
        struct sp_signature signature;
        unsigned int before = questions;

        cr_expect(sp_signature_of(function, &signature));
        cr_expect_eq(signature.count,
                     parameters < SP_SIGNATURE_WORDS ? parameters : SP_SIGNATURE_WORDS);
        return questions - before;
}

Test(arguments, the_driver_is_asked_once_until_functions_end)
{
        CUlibrary library;
        CUmodule other;

        sp_driver.cuFuncGetParamInfo = describe;
        cr_expect_eq(asked(number(1)), 2);
        cr_expect_eq(asked(number(1)), 0);
        cr_expect_eq(asked(number(2)), 2);
        cr_assert_eq(cuModuleLoadData(&other, "any"), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuModuleUnload(other), CUDA_SUCCESS);
        parameters = 3;
        cr_expect_eq(asked(number(1)), 4, "it may be another one by now");
        cr_expect_eq(asked(number(1)), 0);
        (void)sp_on_cuCtxDestroy_v2(NULL);
        cr_expect_eq(asked(number(1)), 4);
        cr_assert_eq(sp_driver.cuLibraryLoadData(&library, "any", NULL, NULL, 0, NULL, NULL, 0),
                     CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuLibraryUnload(library), CUDA_SUCCESS);
        cr_expect_eq(asked(number(1)), 4);
        cr_expect_eq(asked(number(1)), 0);
}

Test(arguments, of_very_many_only_the_first_are_looked_at)
{
        parameters = 2 * SP_SIGNATURE_WORDS;
        sp_driver.cuFuncGetParamInfo = describe;
        (void)asked(number(1));
        cr_expect_eq(asked(number(1)), 0);
}

Test(arguments, of_very_many_functions_the_last_are_remembered)
{
        sp_driver.cuFuncGetParamInfo = describe;
        for (uintptr_t i = 1; i <= 10000; i++)
                (void)asked(number(i));
        cr_expect_eq(asked(number(10000)), 0);
        cr_expect_eq(asked(number(1)), 2, "there is no end to the table");
}

Test(arguments, what_is_no_answer_is_not_remembered)
{
        struct sp_signature signature;

        sp_driver.cuFuncGetParamInfo = describe;
        sp_driver.cuKernelGetParamInfo = NULL;
        answer = CUDA_ERROR_ILLEGAL_ADDRESS;
        cr_expect_not(sp_signature_of(number(1), &signature));
        answer = CUDA_ERROR_INVALID_HANDLE;
        cr_expect_not(sp_signature_of(number(1), &signature));
        answer = CUDA_SUCCESS;
        cr_expect_eq(asked(number(1)), 2);
}

static const char *named;

static CUresult CUDAAPI tell_name(const char **name, CUfunction function)
{
        (void)function;
        *name = named;
        return CUDA_SUCCESS;
}

Test(arguments, equal_names_are_kept_once_and_not_without_end)
{
        char name[16];
        const char *first;

        sp_driver.cuFuncGetName = tell_name;
        named = "first";
        first = sp_signature_name(number(1));
        cr_assert_str_eq(first, "first");
        cr_expect_neq(first, named, "the driver's own may end with its module");
        named = name;
        for (int i = 0; i < 1000; i++) {
                snprintf(name, sizeof(name), "name%d", i);
                (void)sp_signature_name(number(1));
        }
        cr_expect_null(sp_signature_name(number(1)));
        snprintf(name, sizeof(name), "first");
        cr_expect_eq(sp_signature_name(number(2)), first);
}
#endif

/* where the driver says nothing */

static const char *start_with(unsigned int check)
{
        static char said[1024];
        int ends[2];
        ssize_t got;

        cr_assert_eq(pipe(ends), 0);
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
        dup2(ends[1], STDERR_FILENO);
        sp_config_loaded.check = check;
        sp_arguments_start();
        got = read(ends[0], said, sizeof(said) - 1);
        said[got > 0 ? got : 0] = '\0';
        return said;
}

Test(arguments, are_looked_at_if_asked_for_and_described)
{
        cr_expect_str_empty(start_with(SP_CHECK_USES));
        cr_expect_not(sp_arguments_are_looked_at);
#if CUDA_VERSION >= 12040
        cr_expect_str_empty(start_with(SP_CHECK_ARGUMENTS));
        cr_expect(sp_arguments_are_looked_at);
        sp_driver.cuFuncGetParamInfo = NULL;
        look_at_fill(freed_of(1000), 1);
        cr_expect_eq(findings(), 0);
#endif
        cr_expect(strstr(start_with(SP_CHECK_ARGUMENTS), "cannot describe the parameters"));
        cr_expect_not(sp_arguments_are_looked_at);
}
