/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steady -- what is recorded, waited for and asked again costs no host memory
 *
 * The model here has an allocator that counts, and that can refuse. Each test
 * makes the same round of calls until all has been there once, and counts in
 * those that follow.
 */

#include <criterion/criterion.h>
#include <stdlib.h>
#include <streampool/model.h>

#define STREAMS 32
#define ROUNDS  100
#define SIZE    ((size_t)1 << 12)
#define GROWN   ((size_t)64 << 20)

struct host {
        size_t asked;
        size_t held;
        size_t refused; /* this request is refused; 0: none */
};

struct steady {
        struct host host;
        struct spm_model *model;
        spm_context context;
        spm_stream streams[STREAMS + 1]; /* the last one is the legacy stream */
        spm_event events[STREAMS + 1];
        spm_pool async;
        spm_pool sync;
        uint64_t next_base;
};

static struct steady steady;

static void *ask(size_t count, size_t size, void *user)
{
        struct host *host = user;

        if (++host->asked == host->refused)
                return NULL;
        host->held++;
        return calloc(count, size);
}

static void give(void *memory, void *user)
{
        struct host *host = user;

        host->held--;
        free(memory);
}

/* Return: false if the host refused. */
static bool set_up(size_t refused)
{
        struct spm_config config = {.alloc = ask, .free = give, .user = &steady.host};
        struct spm_pool_config async = {.kind = SPM_POOL_ASYNC};
        struct spm_pool_config sync = {.kind = SPM_POOL_SYNC};
        bool ok;
        int i;

        steady = (struct steady){.host.refused = refused, .next_base = (uint64_t)1 << 40};
        if (spm_model_new(&config, &steady.model))
                return false;
        ok = !spm_context_add(steady.model, 0, &steady.context);
        sync.context = steady.context;
        for (i = 0; ok && i <= STREAMS; i++) {
                enum spm_stream_kind kind = i % 2 ? SPM_STREAM_BLOCKING : SPM_STREAM_NON_BLOCKING;

                if (i == STREAMS)
                        kind = SPM_STREAM_LEGACY;
                ok = !spm_stream_add(steady.model, steady.context, kind, &steady.streams[i]) &&
                     !spm_event_add(steady.model, &steady.events[i]);
        }
        return ok && !spm_pool_create(steady.model, &async, &steady.async) &&
               !spm_pool_create(steady.model, &sync, &steady.sync);
}

static void act(const struct spm_actions *actions, struct spm_request *request)
{
        unsigned int i;

        for (i = 0; i < actions->count; i++) {
                const struct spm_action *action = &actions->item[i];
                struct spm_actions more;
                spm_segment segment;

                if (action->kind == SPM_ACT_RECORD)
                        spm_stamp_recorded(steady.model, action->stamp, true, &more);
                if (action->kind != SPM_ACT_GROW)
                        continue;
                if (spm_segment_add(steady.model, action->pool, steady.next_base, GROWN, NULL,
                                    &segment))
                        spm_grow_failed(steady.model, request);
                steady.next_base += 2 * GROWN;
        }
}

static struct spm_scope on(int i)
{
        return (struct spm_scope){SPM_SCOPE_STREAM, steady.streams[i]};
}

static struct spm_scope whole(void)
{
        return (struct spm_scope){SPM_SCOPE_CONTEXT, steady.context};
}

static void record(int event, struct spm_scope where)
{
        struct spm_ticket ticket;
        struct spm_actions actions;

        if (spm_record_begin(steady.model, steady.events[event], where, &ticket, &actions))
                return;
        act(&actions, NULL);
        spm_record_end(steady.model, &ticket, true);
}

static void wait(struct spm_scope waiter, int event)
{
        struct spm_ticket ticket;

        if (!spm_wait_begin(steady.model, waiter, steady.events[event], &ticket))
                spm_wait_end(steady.model, &ticket, true);
}

static void observe(struct spm_scope what, enum spm_sync how)
{
        struct spm_ticket ticket;
        struct spm_actions actions;

        if (spm_sync_begin(steady.model, what, &ticket))
                return;
        spm_sync_end(steady.model, &ticket, how, true, &actions);
        act(&actions, NULL);
}

static void observe_event(int event, enum spm_sync how)
{
        observe((struct spm_scope){SPM_SCOPE_EVENT, steady.events[event]}, how);
}

/* A block comes and goes, so that something waits for a stamp. */
static void use(spm_pool pool, int i)
{
        spm_stream stream = pool == steady.sync ? 0 : steady.streams[i];
        struct spm_request request = {.pool = pool, .stream = stream, .size = SIZE};
        struct spm_allocation allocation;
        struct spm_actions actions;
        enum spm_status status;
        int steps = 0;

        do {
                status = spm_alloc(steady.model, &request, &allocation, &actions);
                act(&actions, &request);
        } while (status == SPM_AGAIN && steps++ < 20);
        if (status)
                return;
        spm_free(steady.model, allocation.address, 0, stream ? SPM_FREE_ASYNC : SPM_FREE_SYNC,
                 stream, NULL, &actions);
        act(&actions, NULL);
}

/* rounds */

static void one_stream(void)
{
        record(0, on(0));
        wait(on(1), 0);
        observe_event(0, SPM_SYNC_QUERY);
        observe(on(0), SPM_SYNC_WAIT);
}

static void fork_and_join(void)
{
        int i;

        record(0, on(0));
        for (i = 1; i < STREAMS; i++) {
                wait(on(i), 0);
                record(i, on(i));
        }
        for (i = 1; i < STREAMS; i++)
                wait(on(0), i);
}

static void fork_and_join_with_an_end(void)
{
        fork_and_join();
        record(1, on(0));
        observe_event(1, SPM_SYNC_WAIT);
}

static void whole_context(void)
{
        record(0, on(STREAMS));
        record(1, whole());
        wait(whole(), 1);
        observe_event(0, SPM_SYNC_QUERY);
        observe(whole(), SPM_SYNC_WAIT);
}

static void stamps(void)
{
        int i;

        for (i = 0; i < 4; i++) {
                use(steady.async, i);
                use(steady.sync, i);
                record(i, on(i));
        }
        record(i, whole());
        observe_event(i, SPM_SYNC_QUERY);
}

static void expect_nothing_asked(void (*round)(void))
{
        size_t before;
        int i;

        cr_assert(set_up(0));
        for (i = 0; i < ROUNDS; i++)
                round();
        before = steady.host.asked;
        for (i = 0; i < ROUNDS; i++)
                round();
        cr_expect_eq(steady.host.asked - before, 0, "%zu requests in %d rounds",
                     steady.host.asked - before, ROUNDS);
        spm_model_free(steady.model);
        cr_expect_eq(steady.host.held, 0, "and all of it is given back");
}

Test(steady, a_record_a_wait_a_query_and_a_synchronisation)
{
        expect_nothing_asked(one_stream);
}

Test(steady, a_fork_and_join_of_many_streams)
{
        expect_nothing_asked(fork_and_join);
        expect_nothing_asked(fork_and_join_with_an_end);
}

Test(steady, what_concerns_a_whole_context)
{
        expect_nothing_asked(whole_context);
}

Test(steady, stamps)
{
        expect_nothing_asked(stamps);
}

/* Every request in turn is refused once. What was refused is not known, which harms nobody. */
static void expect_refusals_survived(void (*round)(void))
{
        size_t asked = 1;
        size_t at;

        for (at = 1; at <= asked; at++) {
                char text[160] = "";

                if (set_up(at)) {
                        round();
                        round();
                        cr_assert(spm_check(steady.model, text, sizeof(text)), "request %zu: %s",
                                  at, text);
                        asked = steady.host.asked;
                } else {
                        asked = at + 1;
                }
                spm_model_free(steady.model);
                cr_assert_eq(steady.host.held, 0, "request %zu", at);
        }
        cr_expect_gt(at, 50u, "there is something to refuse");
}

Test(steady, a_host_that_refuses_once)
{
        expect_refusals_survived(fork_and_join_with_an_end);
        expect_refusals_survived(whole_context);
        expect_refusals_survived(stamps);
}
