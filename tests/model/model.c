/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Model -- life, contexts and streams
 */

#include "bench.h"

#include <stdlib.h>
#include <string.h>

TestSuite(model, .init = bench_set_up, .fini = bench_tear_down);

static void *half(size_t count, size_t size, void *user)
{
        (void)user;
        return calloc(count, size);
}

Test(model, takes_both_halves_of_an_allocator_or_none)
{
        struct spm_config config = {.alloc = half};
        struct spm_model *model = NULL;

        cr_expect_eq(spm_model_new(&config, &model), SPM_E_INVALID_VALUE);
        cr_expect_null(model);
        spm_model_free(NULL);
}

Test(model, a_context_has_a_device_and_one_legacy_stream)
{
        spm_context context = 0;
        spm_stream stream = 0;

        cr_expect_eq(spm_context_add(bench.model, -1, &context), SPM_E_INVALID_DEVICE);
        cr_expect_eq(spm_stream_add(bench.model, bench.context, SPM_STREAM_LEGACY, &stream),
                     SPM_E_INVALID_VALUE);
        cr_expect_eq(spm_stream_add(bench.model, bench.context, (enum spm_stream_kind)9, &stream),
                     SPM_E_INVALID_VALUE);
        cr_expect_eq(spm_stream_add(bench.model, 99, SPM_STREAM_BLOCKING, &stream), SPM_E_UNKNOWN);
        cr_expect_eq(stream, 0);
}

static void append(const char *line, void *user)
{
        strncat(user, line, 4095 - strlen(user));
}

static void dump(char text[4096])
{
        text[0] = 0;
        spm_dump(bench.model, append, text);
}

/* spm_stream_retire() would ask for a stamp of the legacy stream. */
Test(model, a_stream_that_was_added_in_vain_is_as_if_it_had_never_been)
{
        static char before[4096], with[4096], after[4096];
        enum spm_stream_kind kind;
        spm_stream stream;

        bench_free(bench_alloc(bench.async, bench.legacy, 512), bench.legacy);
        dump(before);
        for (kind = SPM_STREAM_BLOCKING; kind <= SPM_STREAM_PER_THREAD; kind++) {
                cr_assert_eq(spm_stream_add(bench.model, bench.context, kind, &stream), SPM_OK);
                dump(with);
                cr_expect_str_neq(with, before);
                cr_expect_eq(spm_stream_undo(bench.model, stream), SPM_OK);
                dump(after);
                cr_expect_str_eq(after, before);
                cr_expect_eq(spm_stream_undo(bench.model, stream), SPM_E_UNKNOWN);
        }
}

Test(model, a_context_takes_its_synchronous_memory_with_it)
{
        struct spm_allocation allocation;
        struct spm_actions actions;
        uint64_t live = bench_alloc(bench.sync, 0, 512);
        uint64_t kept = bench_alloc(bench.async, bench.s, 512);

        bench_free(bench_alloc(bench.async, bench.s, 4096), bench.s);
        cr_assert_eq(spm_context_remove(bench.model, bench.context, &actions), SPM_OK);
        cr_expect_eq(actions.count, 1);
        cr_expect_eq(actions.item[0].kind, SPM_ACT_RELEASE, "L2");
        cr_expect_eq(spm_find(bench.model, live, &allocation), SPM_E_FOREIGN);
        cr_expect_eq(spm_find(bench.model, kept, &allocation), SPM_OK, "A20");
        cr_expect_eq(bench_stats(bench.async).pending_bytes, 0, "its work is over");
        cr_expect_eq(spm_context_remove(bench.model, bench.context, &actions), SPM_E_UNKNOWN);
        cr_expect_eq(spm_stream_retire(bench.model, bench.s, &actions), SPM_E_UNKNOWN);
}

Test(model, a_context_with_many_segments_goes_in_steps)
{
        struct spm_actions actions;
        spm_segment segment;
        unsigned int released = 0;
        enum spm_status status;
        uint64_t i;

        for (i = 1; i <= 60; i++)
                spm_segment_add(bench.model, bench.sync, i << 32, 2 * MIB, NULL, &segment);
        do {
                status = spm_context_remove(bench.model, bench.context, &actions);
                released += actions.count;
        } while (status == SPM_AGAIN);
        cr_expect_eq(status, SPM_OK);
        cr_expect_eq(released, 60);
}

/* Another thread may be in the middle of a request. */
Test(model, nothing_is_served_in_a_context_that_goes_in_steps)
{
        struct spm_request request = {.pool = bench.sync, .size = 512};
        struct spm_allocation allocation;
        struct spm_actions actions;
        spm_segment segment;
        enum spm_status status;
        uint64_t i;

        for (i = 1; i <= 60; i++)
                spm_segment_add(bench.model, bench.sync, i << 32, 2 * MIB, NULL, &segment);
        cr_assert_eq(spm_context_remove(bench.model, bench.context, &actions), SPM_AGAIN);
        cr_expect_eq(spm_alloc(bench.model, &request, &allocation, &actions), SPM_E_UNKNOWN);
        cr_expect_eq(spm_segment_add(bench.model, bench.sync, i << 32, 2 * MIB, NULL, &segment),
                     SPM_E_UNKNOWN);
        do
                status = spm_context_remove(bench.model, bench.context, &actions);
        while (status == SPM_AGAIN);
        cr_expect_eq(status, SPM_OK);
}

Test(model, the_last_moment_for_stamps_is_before_a_capture)
{
        struct spm_actions actions;

        bench_free(bench_alloc(bench.async, bench.s, 512), bench.s);
        bench_free(bench_alloc(bench.sync, 0, 512), 0);
        bench.log[0] = 0;
        spm_capture_begin(bench.model, bench.s, &actions);
        bench_do(&actions, NULL);
        cr_expect_str_eq(bench.log, "RR", "C5");
        spm_capture_end(bench.model, bench.s);
        cr_expect_eq(spm_capture_end(bench.model, bench.s), SPM_OK, "an end too many is ignored");
}

Test(model, a_retired_stream_ends_its_captures)
{
        struct spm_actions actions;

        spm_capture_begin(bench.model, bench.s, &actions);
        spm_stream_retire(bench.model, bench.s, &actions);
        bench_free(bench_alloc(bench.sync, 0, 32 * MIB), 0);
        cr_expect_str_eq(bench.log, "R");
}

Test(model, a_stream_handle_is_not_given_again)
{
        struct spm_actions actions;
        spm_stream stream;

        spm_stream_retire(bench.model, bench.t, &actions);
        spm_stream_add(bench.model, bench.context, SPM_STREAM_NON_BLOCKING, &stream);
        cr_expect_gt(stream, bench.t, "A11");
}

Test(model, every_status_has_a_name)
{
        int status;

        for (status = SPM_OK; status <= SPM_E_HOST_MEMORY; status++)
                cr_expect_eq(strncmp(spm_status_name((enum spm_status)status), "SPM_", 4), 0);
        cr_expect_str_eq(spm_status_name((enum spm_status)99), "unknown status");
}

/* B48 */
Test(model, there_are_no_more_streams_than_there_may_be)
{
        struct spm_config config = {.max_streams = 2};
        struct spm_model *model;
        struct spm_actions actions;
        spm_context contexts[2];
        spm_stream streams[3] = {0};

        cr_assert_eq(spm_model_new(&config, &model), SPM_OK);
        for (int i = 0; i < 2; i++) {
                cr_assert_eq(spm_context_add(model, 0, &contexts[i]), SPM_OK);
                cr_assert_eq(spm_stream_add(model, contexts[i], SPM_STREAM_BLOCKING, &streams[i]),
                             SPM_OK);
        }
        cr_expect_eq(spm_stream_add(model, contexts[0], SPM_STREAM_LEGACY, &streams[2]),
                     SPM_E_OUT_OF_BUDGET);
        cr_expect_eq(streams[2], 0u, "nor is another one named");
        cr_assert_eq(spm_stream_retire(model, streams[0], &actions), SPM_OK);
        cr_expect_eq(spm_stream_add(model, contexts[0], SPM_STREAM_LEGACY, &streams[2]), SPM_OK);
        cr_expect_eq(spm_context_remove(model, contexts[1], &actions), SPM_OK);
        cr_expect_eq(spm_stream_add(model, contexts[0], SPM_STREAM_BLOCKING, &streams[1]), SPM_OK);
        cr_assert_eq(spm_stream_undo(model, streams[1]), SPM_OK);
        cr_expect_eq(spm_stream_add(model, contexts[0], SPM_STREAM_BLOCKING, &streams[1]), SPM_OK);
        cr_expect_eq(spm_stream_add(model, contexts[0], SPM_STREAM_BLOCKING, &streams[0]),
                     SPM_E_OUT_OF_BUDGET);
        spm_model_free(model);
}
