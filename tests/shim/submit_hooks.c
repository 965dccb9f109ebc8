/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Submit hooks -- every row of submissions.def notes its stream before it submits
 *
 * The hooks themselves, with a driver behind them that only looks. What a hook
 * is called with is the same number in every argument, which is the handle of the
 * stream wherever that is among them.
 */

#include "entry/hooks.c"

#include <criterion/criterion.h>
#include <string.h>

#include "base/config.h"

#define HANDLE 0x555500001000

bool __wrap_sp_relieve(void);

/* A hook with more arguments than it takes: they are ignored. */
typedef CUresult (*hook)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                         uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

struct row {
        const char *name;
        const char *suffix;
        const char *target;
        enum sp_submit_class class;
        void (*hook)(void);
};

static const struct row rows[] = {
#define SP_EACH_SUBMIT(api, symbol, since, suffix, kind, params, raw_args, target)                 \
        {#symbol #suffix, #suffix, #target, SP_SUBMIT_##kind, (void (*)(void))symbol##suffix},
#include "driver/entry_points.def"
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* the driver */

static CUstream expected;
static unsigned int calls, calls_noted, failures;
static CUcontext current = (CUcontext)0x1000;

static bool is_noted(void)
{
        if (!sp_submitter || !atomic_load(&sp_submitter->inside))
                return false;
        if (expected == CU_STREAM_PER_THREAD)
                return sp_submitter->told_epoch != 0;
        for (unsigned int i = 0; i < SP_SUBMIT_MARKS; i++)
                if (atomic_load(&sp_submit_marks[i]) == (uintptr_t)expected)
                        return true;
        return false;
}

static CUresult look_on(void)
{
        calls++;
        calls_noted += is_noted();
        if (!failures)
                return CUDA_SUCCESS;
        failures--;
        /* The next try has to note again. */
        sp_submit_forget();
        return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult CUDAAPI get_current(CUcontext *context)
{
        *context = current;
        return CUDA_SUCCESS;
}

bool __wrap_sp_relieve(void)
{
        return true;
}

/* Of the order: what was begun, before the driver, and how it ended, behind it. */
static CUstream begun;
static unsigned int begun_count, ended_count;
static CUresult ended;

void __wrap_sp_order_begin(struct sp_order_call *made, const char *function, CUstream target);
void __wrap_sp_order_begin(struct sp_order_call *made, const char *function, CUstream target)
{
        made->function = function;
        begun = target;
        begun_count += calls == 0;
}

void __wrap_sp_order_end(struct sp_order_call *made, CUresult result);
void __wrap_sp_order_end(struct sp_order_call *made, CUresult result)
{
        (void)made;
        ended = result;
        ended_count += calls != 0;
}

/* Of the recording: what was told last. */
static struct sp_record_call recorded;
static unsigned int recorded_count;
static CUresult recorded_result;

void __wrap_sp_record_end(const struct sp_record_call *made, CUresult result);
void __wrap_sp_record_end(const struct sp_record_call *made, CUresult result)
{
        recorded = *made;
        recorded_result = result;
        recorded_count++;
}

void __wrap_sp_record_work(CUstream stream, CUresult result);
void __wrap_sp_record_work(CUstream stream, CUresult result)
{
        __wrap_sp_record_end(&(struct sp_record_call){.kind = 'k', .stream = stream}, result);
}

static unsigned int told_count;

static bool count_told(CUstream handle)
{
        (void)handle;
        told_count++;
        return true;
}

static void start(void)
{
        sp_submit_tell = count_told;
#define SP_EACH_SUBMIT(api, symbol, since, suffix, kind, params, raw_args, target)                 \
        sp_driver.symbol##suffix = (SP_TYPE(api, since, suffix) *)(void (*)(void))look_on;
#include "driver/entry_points.def"
        sp_driver.cuLaunchKernelEx =
                (__typeof__(sp_driver.cuLaunchKernelEx))(void (*)(void))look_on;
        sp_driver.cuLaunchKernelEx_ptsz = sp_driver.cuLaunchKernelEx;
        sp_driver.cuLaunchCooperativeKernelMultiDevice =
                (__typeof__(sp_driver.cuLaunchCooperativeKernelMultiDevice))(void (*)(void))look_on;
        sp_driver.cuCtxGetCurrent = get_current;
        sp_config_load();
        cr_assert(sp_life_begin());
        sp_life_settle(true);
}

TestSuite(submit_hooks, .init = start);

/* the program */

static CUresult call(const struct row *row, uintptr_t argument)
{
        calls = 0;
        calls_noted = 0;
        return ((hook)row->hook)(argument, argument, argument, argument, argument, argument,
                                 argument, argument, argument, argument, argument);
}

static CUstream default_stream(const struct row *row)
{
        return row->suffix[0] ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

static bool has_stream(const struct row *row)
{
        return strstr(row->target, "(stream") != NULL;
}

static void forget(void)
{
        sp_submit_forget();
        if (sp_submitter)
                sp_submitter->told_epoch = 0;
}

Test(submit_hooks, there_are_all_that_the_headers_have)
{
        cr_expect_geq(ROWS, 150, "only %zu", ROWS);
}

Test(submit_hooks, note_the_default_stream)
{
        for (const struct row *row = rows; row < rows + ROWS; row++) {
                forget();
                expected = default_stream(row);
                cr_expect_eq(call(row, 0), CUDA_SUCCESS, "%s", row->name);
                cr_expect(calls == 1 && calls_noted == 1, "%s: %u calls, %u noted", row->name,
                          calls, calls_noted);
                cr_expect_eq(atomic_load(&sp_submitter->inside), 0, "%s", row->name);
        }
}

Test(submit_hooks, note_the_stream_that_is_named)
{
        unsigned int with_stream = 0;

        for (const struct row *row = rows; row < rows + ROWS; row++) {
                forget();
                expected = has_stream(row) ? (CUstream)HANDLE : default_stream(row);
                with_stream += has_stream(row);
                cr_expect_eq(call(row, HANDLE), CUDA_SUCCESS, "%s", row->name);
                cr_expect(calls == 1 && calls_noted == 1, "%s: %u calls, %u noted", row->name,
                          calls, calls_noted);
        }
        cr_expect_geq(with_stream, 80, "only %u", with_stream);
}

Test(submit_hooks, note_again_when_memory_was_short)
{
        for (const struct row *row = rows; row < rows + ROWS; row++) {
                forget();
                expected = default_stream(row);
                failures = 1;
                cr_expect_eq(call(row, 0), CUDA_SUCCESS, "%s", row->name);
                cr_expect(calls == 2 && calls_noted == 2, "%s: %u calls, %u noted", row->name,
                          calls, calls_noted);
                failures = 2;
                cr_expect_eq(call(row, 0), CUDA_ERROR_OUT_OF_MEMORY, "%s", row->name);
                cr_expect_eq(calls, 2, "%s: %u calls", row->name, calls);
        }
}

Test(submit_hooks, tell_of_the_order_around_all_tries_if_somebody_asks)
{
        sp_order_is_on = sp_launches_are_looked_at = true;
        sp_uses_are_looked_at = true;
        for (const struct row *row = rows; row < rows + ROWS; row++) {
                begun_count = 0;
                ended_count = 0;
                failures = 2;
                cr_expect_eq(call(row, 0), CUDA_ERROR_OUT_OF_MEMORY, "%s", row->name);
                cr_expect_eq(calls, 2, "%s: %u calls", row->name, calls);
                cr_expect(begun_count == 1 && ended_count == 1, "%s: begun %u, ended %u times",
                          row->name, begun_count, ended_count);
                cr_expect_eq(begun, default_stream(row), "%s", row->name);
                cr_expect_eq(ended, CUDA_ERROR_OUT_OF_MEMORY, "%s", row->name);
                failures = 0;
        }
}

Test(submit_hooks, tell_nothing_of_the_order_if_nobody_asks)
{
        for (const struct row *row = rows; row < rows + ROWS; row++) {
                call(row, 0);
                cr_expect_eq(begun_count, 0, "%s", row->name);
        }
}

static bool is_plain_copy(const struct row *row)
{
        return (strncmp(row->name, "cuMemcpyHtoD", strlen("cuMemcpyHtoD")) == 0 ||
                strncmp(row->name, "cuMemcpyDtoH", strlen("cuMemcpyDtoH")) == 0) &&
               !strstr(row->name, "Async");
}

Test(submit_hooks, are_recorded_behind_all_tries_if_somebody_asks)
{
        unsigned int copies = 0;

        sp_record_is_on = sp_launches_are_looked_at = sp_uses_are_looked_at = true;
        for (const struct row *row = rows; row < rows + ROWS; row++) {
                bool is_copy = is_plain_copy(row);

                copies += is_copy;
                recorded_count = 0;
                failures = 2;
                cr_expect_eq(call(row, 0), CUDA_ERROR_OUT_OF_MEMORY, "%s", row->name);
                cr_expect_eq(recorded_count, 1, "%s: %u lines", row->name, recorded_count);
                cr_expect_eq(recorded_result, CUDA_ERROR_OUT_OF_MEMORY, "%s", row->name);
                failures = 0;
                call(row, 0);
                cr_expect_eq(recorded_result, CUDA_SUCCESS, "%s", row->name);
                cr_expect_eq(recorded.kind, is_copy ? 'm' : 'k', "%s", row->name);
                if (!is_copy)
                        cr_expect_eq(recorded.stream, default_stream(row), "%s", row->name);
                cr_expect_eq(recorded.number, !is_copy, "%s", row->name);
        }
        cr_expect_eq(copies, 6, "%u", copies);
        sp_record_is_on = false;
}

Test(submit_hooks, are_not_recorded_if_nobody_asks)
{
        sp_launches_are_looked_at = sp_uses_are_looked_at = true;
        for (const struct row *row = rows; row < rows + ROWS; row++)
                call(row, 0);
        cr_expect_eq(recorded_count, 0);
}

Test(submit_hooks, are_recorded_with_the_stream_of_a_structure)
{
        CUDA_LAUNCH_PARAMS list[2] = {{.hStream = (CUstream)HANDLE},
                                      {.hStream = (CUstream)(HANDLE + 0x1000)}};
        CUlaunchConfig config = {0};

        sp_record_is_on = sp_launches_are_looked_at = true;
        cr_expect_eq(cuLaunchKernelEx_ptsz(&config, NULL, NULL, NULL), CUDA_SUCCESS);
        cr_expect(recorded_count == 1 && recorded.stream == CU_STREAM_PER_THREAD);
        config.hStream = (CUstream)HANDLE;
        cr_expect_eq(cuLaunchKernelEx(&config, NULL, NULL, NULL), CUDA_SUCCESS);
        cr_expect(recorded_count == 2 && recorded.stream == (CUstream)HANDLE);
        cr_expect_eq(cuLaunchKernelEx(NULL, NULL, NULL, NULL), CUDA_SUCCESS);
        cr_expect_eq(cuLaunchCooperativeKernelMultiDevice(list, 2, 0), CUDA_SUCCESS);
        cr_expect_eq(recorded_count, 4);
        cr_expect_eq(recorded.stream, list[1].hStream);
        sp_record_is_on = false;
}

/* From a context that is not the one, each copy is told, and kernels are not. */
Test(submit_hooks, only_kernels_are_of_their_streams_context)
{
        for (const struct row *row = rows; row < rows + ROWS; row++) {
                bool is_kernel = strncmp(row->name, "cuLaunch", strlen("cuLaunch")) == 0 &&
                                 !strstr(row->name, "HostFunc");
                unsigned int before;

                forget();
                sp_submit_watch((CUcontext)0x2000);
                call(row, HANDLE);
                before = told_count;
                call(row, HANDLE);
                cr_expect_eq(told_count - before, !is_kernel, "%s", row->name);
                cr_expect_eq(row->class, is_kernel ? SP_SUBMIT_LAUNCH : SP_SUBMIT_COPY, "%s",
                             row->name);
        }
}

/* those whose stream is in a structure */

static void expect_noted(CUresult result)
{
        cr_expect_eq(result, CUDA_SUCCESS);
        cr_expect(calls == 1 && calls_noted == 1, "%u calls, %u noted", calls, calls_noted);
        calls = 0;
        calls_noted = 0;
        forget();
}

Test(submit_hooks, note_the_stream_of_a_configuration)
{
        CUlaunchConfig config = {0};

        expected = CU_STREAM_LEGACY;
        expect_noted(cuLaunchKernelEx(&config, NULL, NULL, NULL));
        expected = CU_STREAM_PER_THREAD;
        expect_noted(cuLaunchKernelEx_ptsz(&config, NULL, NULL, NULL));
        config.hStream = expected = (CUstream)HANDLE;
        expect_noted(cuLaunchKernelEx(&config, NULL, NULL, NULL));
        expect_noted(cuLaunchKernelEx_ptsz(&config, NULL, NULL, NULL));
        cr_expect_eq(cuLaunchKernelEx(NULL, NULL, NULL, NULL), CUDA_SUCCESS, "the driver's word");
        cr_expect_eq(atomic_load(&sp_submitter->inside), 0);
}

Test(submit_hooks, note_all_streams_of_a_launch_on_many_devices)
{
        CUDA_LAUNCH_PARAMS list[2] = {{.hStream = (CUstream)HANDLE},
                                      {.hStream = (CUstream)(HANDLE + 0x1000)}};

        for (int i = 0; i < 2; i++) {
                expected = list[i].hStream;
                expect_noted(cuLaunchCooperativeKernelMultiDevice(list, 2, 0));
        }
        cr_expect_eq(cuLaunchCooperativeKernelMultiDevice(NULL, 2, 0), CUDA_SUCCESS);
        cr_expect_eq(atomic_load(&sp_submitter->inside), 0);
}
