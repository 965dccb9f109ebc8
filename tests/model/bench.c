/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bench -- a model with a context and a few streams, and a patient caller
 */

#include "bench.h"

#include <string.h>

struct bench bench;

static void note(char letter)
{
        size_t length = strlen(bench.log);

        if (length + 1 < sizeof(bench.log)) {
                bench.log[length] = letter;
                bench.log[length + 1] = '\0';
        }
}

void bench_check(void)
{
        char text[160] = "";

        cr_assert(spm_check(bench.model, text, sizeof(text)), "%s", text);
}

void bench_set_up(void)
{
        struct spm_pool_config async = {.kind = SPM_POOL_ASYNC, .small_size = 512};
        struct spm_pool_config sync = {.kind = SPM_POOL_SYNC, .small_size = 512};

        bench = (struct bench){.next_base = (uint64_t)1 << 40};
        cr_assert_eq(spm_model_new(NULL, &bench.model), SPM_OK);
        cr_assert_eq(spm_context_add(bench.model, 0, &bench.context), SPM_OK);
        cr_assert_eq(spm_stream_add(bench.model, bench.context, SPM_STREAM_LEGACY, &bench.legacy),
                     SPM_OK);
        cr_assert_eq(
                spm_stream_add(bench.model, bench.context, SPM_STREAM_BLOCKING, &bench.blocking),
                SPM_OK);
        cr_assert_eq(spm_stream_add(bench.model, bench.context, SPM_STREAM_NON_BLOCKING, &bench.s),
                     SPM_OK);
        cr_assert_eq(spm_stream_add(bench.model, bench.context, SPM_STREAM_NON_BLOCKING, &bench.t),
                     SPM_OK);
        bench.async = bench_pool(async);
        sync.context = bench.context;
        bench.sync = bench_pool(sync);
}

void bench_tear_down(void)
{
        bench_check();
        spm_model_free(bench.model);
}

spm_pool bench_pool(struct spm_pool_config config)
{
        spm_pool pool;

        cr_assert_eq(spm_pool_create(bench.model, &config, &pool), SPM_OK);
        return pool;
}

spm_stream bench_add_blocking(void)
{
        spm_stream stream;

        cr_assert_eq(spm_stream_add(bench.model, bench.context, SPM_STREAM_BLOCKING, &stream),
                     SPM_OK);
        return stream;
}

uint64_t bench_give(spm_pool pool, size_t size)
{
        uint64_t base = bench.next_base;
        spm_segment segment;

        cr_assert_eq(spm_segment_add(bench.model, pool, base, size, NULL, &segment), SPM_OK);
        bench.next_base += size + 64 * MIB;
        return base;
}

static void observe(enum spm_scope_kind kind, uint32_t id, enum spm_sync how, bool ok)
{
        struct spm_scope scope = {kind, id};
        struct spm_ticket ticket;
        struct spm_actions actions;

        cr_assert_eq(spm_sync_begin(bench.model, scope, &ticket), SPM_OK);
        spm_sync_end(bench.model, &ticket, how, ok, &actions);
        bench_do(&actions, NULL);
}

static void done(spm_stamp stamp)
{
        struct spm_actions actions;

        spm_stamp_done(bench.model, stamp, &actions);
        bench_do(&actions, NULL);
}

static void grow(const struct spm_action *action, struct spm_request *request)
{
        spm_segment segment;

        bench.grown_at = action->address;
        bench.grown = action->size;
        bench.preferred = action->preferred;
        if (bench.thrifty && !action->last) {
                spm_grow_failed(bench.model, request);
                return;
        }
        if (bench.no_memory || (bench.grants && !--bench.grants)) {
                bench.no_memory = true;
                spm_grow_failed(bench.model, request);
                return;
        }
        if (!action->address) {
                bench_give(action->pool, action->preferred);
                return;
        }
        cr_assert_eq(spm_segment_add(bench.model, action->pool, action->address, action->size, NULL,
                                     &segment),
                     SPM_OK);
}

static void record(const struct spm_action *action)
{
        struct spm_actions more;

        bench.stamp = action->stamp;
        bench.stamped = action->stream;
        cr_assert_eq(spm_stamp_recorded(bench.model, action->stamp, !bench.no_records, &more),
                     SPM_OK);
        bench_do(&more, NULL);
}

static char letter_of(const struct spm_action *action)
{
        static const char letters[] = "RWCPpHSGXD";

        if (action->kind == SPM_ACT_WAIT_HOST && action->brief)
                return 'b';
        if (action->kind == SPM_ACT_WAIT_HOST && action->bounded)
                return 'h';
        if (action->kind == SPM_ACT_RELEASE && action->moves)
                return 'M';
        return letters[action->kind];
}

static void see(const struct spm_action *action)
{
        if (action->kind == SPM_ACT_WAIT_HOST && bench.waited_count < 8)
                bench.waited[bench.waited_count++] = action->stamp;
        if (action->kind != SPM_ACT_GROW && action->kind != SPM_ACT_RELEASE)
                return;
        if (bench.seen_count < BENCH_SEEN)
                bench.seen[bench.seen_count++] = *action;
}

static void start_log(void)
{
        bench.log[0] = '\0';
        bench.seen_count = 0;
        bench.waited_count = 0;
}

void bench_do(const struct spm_actions *actions, struct spm_request *request)
{
        bool growing = false;
        unsigned int i;

        for (i = 0; i < actions->count; i++) {
                const struct spm_action *action = &actions->item[i];

                note(letter_of(action));
                see(action);
                if (action->kind == SPM_ACT_RELEASE && action->moves)
                        cr_assert_not(growing, "what makes way goes first");
                growing = growing || action->kind == SPM_ACT_GROW;
                if (action->kind == SPM_ACT_RECORD)
                        record(action);
                else if (action->kind == SPM_ACT_GROW)
                        grow(action, request);
                else if (action->kind == SPM_ACT_WAIT_HOST ||
                         (action->kind == SPM_ACT_POLL &&
                          (bench.device_done || action->stamp < bench.done_below)))
                        done(action->stamp);
                else if (action->kind == SPM_ACT_POLL_STREAM)
                        observe(SPM_SCOPE_STREAM, action->stream, SPM_SYNC_POLL, bench.device_done);
                else if (action->kind == SPM_ACT_SYNC_CONTEXT)
                        observe(SPM_SCOPE_CONTEXT, action->context, SPM_SYNC_POLL, true);
        }
        bench_check();
}

enum spm_status bench_try(spm_pool pool, spm_stream stream, size_t size, bool may_wait,
                          struct spm_allocation *allocation)
{
        struct spm_request request = {
                .pool = pool,
                .stream = stream,
                .size = size,
                .may_wait = may_wait,
        };
        struct spm_actions actions;
        enum spm_status status;
        unsigned int steps = 0;

        start_log();
        do {
                cr_assert_lt(steps++, 300u, "an allocation never ends");
                status = spm_alloc(bench.model, &request, allocation, &actions);
                bench_do(&actions, &request);
        } while (status == SPM_AGAIN);
        return status;
}

uint64_t bench_alloc(spm_pool pool, spm_stream stream, size_t size)
{
        struct spm_allocation allocation;
        enum spm_status status = bench_try(pool, stream, size, true, &allocation);

        cr_assert_eq(status, SPM_OK, "%s", spm_status_name(status));
        return allocation.address;
}

struct spm_allocation bench_alloc_filling(spm_pool pool, spm_stream stream, size_t size,
                                          struct spm_magazine *magazine)
{
        struct spm_request request = {
                .pool = pool, .stream = stream, .size = size, .magazine = magazine};
        struct spm_allocation allocation;
        struct spm_actions actions;
        enum spm_status status;

        do {
                status = spm_alloc(bench.model, &request, &allocation, &actions);
                bench_do(&actions, &request);
        } while (status == SPM_AGAIN);
        cr_assert_eq(status, SPM_OK);
        return allocation;
}

uint64_t bench_climb(spm_pool pool, size_t size)
{
        struct spm_allocation allocation;
        enum spm_status status = bench_try(pool, bench.s, size, true, &allocation);

        cr_assert(status == SPM_OK || status == SPM_E_OUT_OF_MEMORY, "%s", spm_status_name(status));
        return status ? 0 : allocation.address;
}

size_t bench_seen(enum spm_action_kind kind)
{
        size_t bytes = 0;
        unsigned int i;

        for (i = 0; i < bench.seen_count; i++)
                bytes += bench.seen[i].kind == kind ? bench.seen[i].size : 0;
        return bytes;
}

void bench_free(uint64_t address, spm_stream stream)
{
        enum spm_free_kind kind = stream ? SPM_FREE_ASYNC : SPM_FREE_SYNC;
        struct spm_allocation block;
        struct spm_actions actions;
        enum spm_status status;

        start_log();
        if (spm_find(bench.model, address, &block) == SPM_OK && block.kind == SPM_POOL_HOST)
                kind = SPM_FREE_HOST;
        status = spm_free(bench.model, address, 0, kind, stream, NULL, &actions);
        cr_assert_eq(status, SPM_OK, "%s", spm_status_name(status));
        bench_do(&actions, NULL);
}

void bench_watch(void)
{
        struct spm_actions actions;

        bench.device_done = true;
        cr_assert_eq(spm_context_watch(bench.model, bench.context, true, &actions), SPM_OK);
        bench_do(&actions, NULL);
        bench.device_done = false;
}

void bench_submit(spm_stream stream)
{
        struct spm_actions actions;

        start_log();
        cr_assert_eq(spm_submit(bench.model, stream, &actions), SPM_OK);
        bench_do(&actions, NULL);
}

spm_event bench_record(spm_stream stream)
{
        struct spm_scope where = {SPM_SCOPE_STREAM, stream};
        struct spm_actions actions;
        struct spm_ticket ticket;
        spm_event event;

        cr_assert_eq(spm_event_add(bench.model, &event), SPM_OK);
        start_log();
        cr_assert_eq(spm_record_begin(bench.model, event, where, &ticket, &actions), SPM_OK);
        bench_do(&actions, NULL);
        spm_record_end(bench.model, &ticket, true);
        return event;
}

void bench_wait(spm_stream stream, spm_event event)
{
        struct spm_scope waiter = {SPM_SCOPE_STREAM, stream};
        struct spm_ticket ticket;

        cr_assert_eq(spm_wait_begin(bench.model, waiter, event, &ticket), SPM_OK);
        spm_wait_end(bench.model, &ticket, true);
}

void bench_sync(enum spm_scope_kind kind, uint32_t id, enum spm_sync how)
{
        start_log();
        observe(kind, id, how, true);
}

struct spm_stats bench_stats(spm_pool pool)
{
        struct spm_stats stats;

        cr_assert_eq(spm_stats(bench.model, pool, &stats), SPM_OK);
        return stats;
}
