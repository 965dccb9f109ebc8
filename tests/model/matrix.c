/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix -- whether another stream gets what a stream has freed
 *
 * A pool's three reuse policies, each on and off, against what is known of the
 * free. The table was measured on an H200 (driver 580.159): 64 MiB are freed on
 * one stream, and the next stream that asks for 64 MiB gets the same address or
 * another one. Here the test is the device: it answers the polls.
 *
 * The model answers as measured in all forty cells. Where the driver would fail
 * for want of memory and the request may wait, the model waits: there it differs
 * on purpose, see the_host_waits_rather_than_fail.
 */

#include "bench.h"

#include <string.h>

TestSuite(matrix, .init = bench_set_up, .fini = bench_tear_down);

#define SIZE (64 * MIB)

/* the table */

enum situation {
        PENDING, /* work before the free is running */
        DONE,    /* it is over, and nobody has looked */
        EDGE,    /* it is running; the asking stream waits for an event behind the free */
        QUERY,   /* it is over, and the program was told so by an event */
        SYNC,    /* it is over, and the program waited for the stream */
        SITUATIONS
};

static const char *const situations[] = {"pending", "done", "pending, edge", "done, query",
                                         "done, sync"};

enum cell { NEW, SAME };

/* F: follow event dependencies, O: allow opportunistic, I: allow internal dependencies. */
static const struct {
        char policies[4];
        enum cell cell[SITUATIONS];
} measured[] = {
        /*       pending done edge query sync */
        {"---", {NEW, NEW, NEW, NEW, SAME}},    /* the program itself waited */
        {"F--", {NEW, NEW, SAME, NEW, SAME}},   /* an edge, and nothing but an edge */
        {"-O-", {NEW, SAME, NEW, SAME, SAME}},  /* complete is enough, whoever looks */
        {"FO-", {NEW, SAME, SAME, SAME, SAME}}, /* each by its own */
        {"--I", {NEW, NEW, NEW, NEW, SAME}},    /* no more than without I: there was memory left */
        {"F-I", {NEW, NEW, SAME, NEW, SAME}},   /* likewise */
        {"-OI", {NEW, SAME, NEW, SAME, SAME}},  /* likewise */
        {"FOI", {NEW, SAME, SAME, SAME, SAME}}, /* likewise; the driver's default */
};

static void set_policies(const char *policies)
{
        static const enum spm_pool_attribute attribute[] = {
                SPM_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES,
                SPM_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
                SPM_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES,
        };
        int i;

        for (i = 0; i < 3; i++)
                cr_assert_eq(spm_pool_set_attribute(bench.model, bench.async, attribute[i],
                                                    policies[i] != '-'),
                             SPM_OK);
}

/* Pools of which the table has to hold. */
static const struct {
        char name[16];
        struct spm_pool_config config;
} pools[] = {
        {"caller's", {.kind = SPM_POOL_ASYNC}},
        {"made up", {.kind = SPM_POOL_ASYNC, .provider = SPM_PROVIDER_MODEL}},
        {"a range",
         {.kind = SPM_POOL_ASYNC, .range_base = (uint64_t)1 << 44, .range_size = (size_t)1 << 40}},
        {"speed",
         {.kind = SPM_POOL_ASYNC, .provider = SPM_PROVIDER_MODEL, .growth = SPM_GROWTH_SPEED}},
        {"tight",
         {.kind = SPM_POOL_ASYNC, .provider = SPM_PROVIDER_MODEL, .growth = SPM_GROWTH_TIGHT}},
};

/* A cell of the table, in one of the pools. */
struct spot {
        const char *pool;
        const char *policies;
        enum situation situation;
        bool same;     /* the address is the same, while memory is left */
        bool followed; /* likewise, or I is allowed */
        uint64_t freed;
};

#define SPOT       "%s, %s, %s"
#define NAME(spot) (spot)->pool, (spot)->policies, situations[(spot)->situation]

/* Frees a block on s, and brings about the situation. Return: the block's address. */
static uint64_t arrange(const char *policies, enum situation situation)
{
        uint64_t freed;

        set_policies(policies);
        /* Else the synchronisation would give the memory back. */
        spm_pool_set_attribute(bench.model, bench.async, SPM_ATTR_RELEASE_THRESHOLD, SIZE);
        freed = bench_alloc(bench.async, bench.s, SIZE);
        bench_free(freed, bench.s);
        bench.device_done = situation != PENDING && situation != EDGE;
        if (situation == EDGE)
                bench_wait(bench.t, bench_record(bench.s));
        if (situation == QUERY)
                bench_sync(SPM_SCOPE_EVENT, bench_record(bench.s), SPM_SYNC_QUERY);
        if (situation == SYNC)
                bench_sync(SPM_SCOPE_STREAM, bench.s, SPM_SYNC_WAIT);
        return freed;
}

static void look_at(unsigned int pool, unsigned int row, enum situation situation, size_t cap,
                    void (*look)(const struct spot *spot))
{
        struct spm_pool_config config = pools[pool].config;
        struct spot spot = {
                .pool = pools[pool].name,
                .policies = measured[row].policies,
                .situation = situation,
                .same = measured[row].cell[situation] == SAME,
        };

        bench_tear_down();
        bench_set_up();
        config.max_size = cap;
        bench.async = bench_pool(config);
        spot.followed = spot.same || spot.policies[2] == 'I';
        spot.freed = arrange(spot.policies, situation);
        look(&spot);
}

/* Every cell in every pool; @cap is the most a pool may reserve, 0 for no limit. */
static void look_everywhere(size_t cap, void (*look)(const struct spot *spot))
{
        unsigned int pool;
        unsigned int row;
        int i;

        for (pool = 0; pool < sizeof(pools) / sizeof(pools[0]); pool++)
                for (row = 0; row < sizeof(measured) / sizeof(measured[0]); row++)
                        for (i = 0; i < SITUATIONS; i++)
                                look_at(pool, row, (enum situation)i, cap, look);
}

static bool has_waited(void)
{
        return strpbrk(bench.log, "HhS") != NULL;
}

static void expect_measured(const struct spot *spot)
{
        uint64_t grows = bench_stats(bench.async).grows;
        bool same = bench_alloc(bench.async, bench.t, SIZE) == spot->freed;

        cr_expect_eq(same, spot->same, SPOT ": %s address", NAME(spot),
                     same ? "the same" : "a new");
        cr_expect_eq(bench_stats(bench.async).grows == grows, same, SPOT, NAME(spot));
        cr_expect_not(has_waited(), SPOT ": %s", NAME(spot), bench.log);
        if (spot->policies[1] != 'O')
                cr_expect_null(strpbrk(bench.log, "Pp"), SPOT ": %s asks", NAME(spot), bench.log);
}

Test(matrix, reuse_is_what_was_measured_in_every_cell)
{
        look_everywhere(0, expect_measured);
}

static void expect_dependency(const struct spot *spot)
{
        struct spm_allocation got = {0};
        enum spm_status status = bench_try(bench.async, bench.t, SIZE, false, &got);
        bool running = spot->situation == PENDING || spot->situation == EDGE;

        cr_expect_eq(status, spot->followed ? SPM_OK : SPM_E_OUT_OF_MEMORY, SPOT ": %s", NAME(spot),
                     spm_status_name(status));
        cr_expect_eq(got.address, spot->followed ? spot->freed : 0, SPOT, NAME(spot));
        cr_expect_not(has_waited(), SPOT ": %s", NAME(spot), bench.log);
        /* What is served while work is running is served behind a wait, whoever asked for it. */
        if (spot->followed && running)
                cr_expect_not_null(strchr(bench.log, 'W'), SPOT ": %s", NAME(spot), bench.log);
}

/*
 * cuda.h: with I, memory of another stream may be had by a dependency that the allocator inserts,
 * when no new memory is to be had. Not measured: the same table, with no room to grow.
 */
Test(matrix, an_internal_dependency_serves_every_cell_once_growth_has_failed)
{
        look_everywhere(SIZE, expect_dependency);
}

static void expect_wait(const struct spot *spot)
{
        cr_expect_eq(bench_alloc(bench.async, bench.t, SIZE), spot->freed, SPOT, NAME(spot));
        cr_expect_eq(has_waited(), !spot->followed, SPOT ": %s", NAME(spot), bench.log);
}

/* The driver says out of memory where no policy helps. The program would have to wait then, and a
 * program that was not written for that ends; so the model waits if the request says it may. */
Test(matrix, the_host_waits_rather_than_fail)
{
        look_everywhere(SIZE, expect_wait);
}

/* what an edge is, and what it is not */

static bool gets_it(spm_stream stream, uint64_t freed)
{
        return bench_alloc(bench.async, stream, SIZE) == freed;
}

Test(matrix, a_wait_enables_reuse_and_nothing_short_of_it_does)
{
        struct spm_scope waiter = {SPM_SCOPE_STREAM, bench.t};
        spm_event before;
        spm_event after;
        struct spm_ticket ticket;
        uint64_t freed;

        set_policies("F--");
        freed = bench_alloc(bench.async, bench.s, SIZE);
        before = bench_record(bench.s);
        bench_free(freed, bench.s);
        after = bench_record(bench.s);

        cr_expect_not(gets_it(bench.t, freed), "an event that nobody waits for");
        bench_wait(bench.t, before);
        cr_expect_not(gets_it(bench.t, freed), "an event from before the free");
        bench_wait(bench.blocking, after);
        cr_expect_not(gets_it(bench.t, freed), "another stream's wait");
        spm_wait_begin(bench.model, waiter, after, &ticket);
        cr_expect_not(gets_it(bench.t, freed), "a wait that is only begun");
        spm_wait_end(bench.model, &ticket, false);
        cr_expect_not(gets_it(bench.t, freed), "a wait that the driver refused");
        bench_wait(bench.t, after);
        cr_expect(gets_it(bench.t, freed), "a wait");
        cr_expect_str_eq(bench.log, "W", "by a wait for the stamp before the program's event");
}

/* An order is passed on by what is recorded after the wait, not by what was recorded before. */
Test(matrix, readiness_is_transitive_through_events)
{
        uint64_t a = bench_alloc(bench.async, bench.s, SIZE);
        spm_event first = bench_record(bench.s);
        spm_event early = bench_record(bench.t);
        spm_event second;
        spm_event third;
        spm_stream last;

        spm_stream_add(bench.model, bench.context, SPM_STREAM_NON_BLOCKING, &last);
        bench_wait(bench.t, first);
        second = bench_record(bench.t);
        bench_wait(bench.blocking, second);
        third = bench_record(bench.blocking);

        cr_expect_not(spm_is_ready_on(bench.model, a, last, 0));
        cr_expect_not(spm_is_ready_on(bench.model, a, last, early), "recorded before t waited");
        cr_expect(spm_is_ready_on(bench.model, a, last, first), "one event");
        cr_expect(spm_is_ready_on(bench.model, a, last, second), "two");
        cr_expect(spm_is_ready_on(bench.model, a, last, third), "three");
        cr_expect(spm_is_ready_on(bench.model, a, bench.blocking, 0), "it waits already");
        cr_expect_not(spm_is_ready(bench.model, a), "all of this is order; the host knows nothing");

        spm_event_taint(bench.model, second, false);
        cr_expect_not(spm_is_ready_on(bench.model, a, last, second), "it may say anything now");
        cr_expect(spm_is_ready_on(bench.model, a, last, third), "what was waited for before holds");
        spm_event_remove(bench.model, third);
        cr_expect_not(spm_is_ready_on(bench.model, a, last, third));
        cr_expect_not(spm_is_ready_on(bench.model, a, 99, first), "no such stream");
}

/* the driver gives handles out again (199 times of 199); the model's are never the same */

Test(matrix, a_recycled_stream_never_matches_old_blocks)
{
        struct spm_actions actions;
        spm_stream old;
        spm_stream heir;
        spm_stream later;
        uint64_t freed;
        uint64_t bytes = 1;

        spm_stream_add(bench.model, bench.context, SPM_STREAM_NON_BLOCKING, &old);
        freed = bench_alloc(bench.async, old, SIZE);
        bench_free(freed, old);
        spm_stream_retire(bench.model, old, &actions);
        bench_do(&actions, NULL);
        /* To the program this is the same handle. */
        spm_stream_add(bench.model, bench.context, SPM_STREAM_NON_BLOCKING, &heir);

        cr_expect_neq(heir, old);
        spm_pending_on(bench.model, heir, &bytes);
        cr_expect_eq(bytes, 0);
        cr_expect_not(gets_it(heir, freed), "it is not behind the old one");
        bench_sync(SPM_SCOPE_STREAM, heir, SPM_SYNC_WAIT);
        cr_expect_eq(bench_stats(bench.async).pending_bytes, SIZE, "and does not speak for it");
        cr_expect_eq(spm_free(bench.model, bench_alloc(bench.async, heir, 512), 0, SPM_FREE_ASYNC,
                              old, NULL, &actions),
                     SPM_E_UNKNOWN);
        bench.device_done = true;
        cr_expect(gets_it(heir, freed), "once it is complete, like anybody's");
        /* Nothing is left of the old one now. */
        spm_stream_add(bench.model, bench.context, SPM_STREAM_NON_BLOCKING, &later);
        cr_expect(later != old && later != heir);
}

Test(matrix, an_order_outlives_the_stream_it_came_from)
{
        struct spm_actions actions;
        spm_stream old;
        spm_event event;
        uint64_t freed;

        set_policies("F--");
        spm_stream_add(bench.model, bench.context, SPM_STREAM_NON_BLOCKING, &old);
        freed = bench_alloc(bench.async, old, SIZE);
        bench_free(freed, old);
        event = bench_record(old);
        spm_stream_retire(bench.model, old, &actions);
        bench_do(&actions, NULL);
        cr_expect_not(gets_it(bench.t, freed));
        bench_wait(bench.t, event);
        cr_expect(gets_it(bench.t, freed));
}
