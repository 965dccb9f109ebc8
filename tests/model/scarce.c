/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scarce -- when the host's own memory runs out
 *
 * A program of some hundred steps uses pools of every kind: with a range, made
 * up, of segments by themselves; slabs, joins, moves, trims, exports. It is run
 * once for each request that the model makes of the host, and that request is
 * refused: alone, or with all that follow. A call that says so has changed
 * nothing that the program can see; a free does not say so; nothing leaks.
 */

#include <criterion/criterion.h>
#include <stddef.h>
#include <stdlib.h>
#include <streampool/model.h>

#include "state.h"

#define KIB   ((size_t)1 << 10)
#define MIB   ((size_t)1 << 20)
#define BASE  ((uint64_t)1 << 45)
#define POOLS 5
#define LIVE  64
#define STEPS 240

struct host {
        size_t asked;
        size_t held;
        size_t bytes;   /* that are held */
        size_t refused; /* this request is refused; 0: none */
        bool for_ever;  /* and all that follow */
};

union prefix {
        size_t size;
        max_align_t align;
};

struct scarce {
        struct host host;
        struct spm_model *model;
        spm_context context;
        spm_stream streams[3];
        spm_event event;
        spm_pool pools[POOLS];
        spm_pool sync; /* one of them */
        uint64_t live[LIVE];
        uint64_t next_base;
        uint64_t seed;
        unsigned int refusals; /* that the program was told of */
};

static struct scarce scarce;

static void *ask(size_t count, size_t size, void *user)
{
        struct host *host = user;
        union prefix *prefix;

        host->asked++;
        if (host->refused &&
            (host->asked == host->refused || (host->for_ever && host->asked > host->refused)))
                return NULL;
        prefix = calloc(1, sizeof(*prefix) + count * size);
        cr_assert_not_null(prefix);
        prefix->size = count * size;
        host->held++;
        host->bytes += prefix->size;
        return prefix + 1;
}

static void give(void *memory, void *user)
{
        union prefix *prefix = (union prefix *)memory - 1;
        struct host *host = user;

        host->held--;
        host->bytes -= prefix->size;
        free(prefix);
}

static uint64_t any(uint64_t below)
{
        scarce.seed ^= scarce.seed << 13;
        scarce.seed ^= scarce.seed >> 7;
        scarce.seed ^= scarce.seed << 17;
        return scarce.seed % below;
}

/* The world. Each returns false if the host refused. */

static bool make_pools(void)
{
        struct spm_pool_config configs[POOLS] = {
                {.kind = SPM_POOL_ASYNC, .range_base = BASE, .range_size = 1024 * MIB},
                {.kind = SPM_POOL_ASYNC,
                 .growth = SPM_GROWTH_TIGHT,
                 .range_base = BASE + 1024 * MIB,
                 .range_size = 1024 * MIB},
                {.kind = SPM_POOL_ASYNC, .provider = SPM_PROVIDER_MODEL},
                {.kind = SPM_POOL_ASYNC, .max_size = 32 * MIB},
                {.kind = SPM_POOL_SYNC, .context = scarce.context},
        };
        unsigned int i;

        for (i = 0; i < POOLS; i++)
                if (spm_pool_create(scarce.model, &configs[i], &scarce.pools[i]))
                        return false;
        scarce.sync = scarce.pools[POOLS - 1];
        return true;
}

static bool set_up(size_t refused, bool for_ever)
{
        struct spm_config config = {.alloc = ask, .free = give, .user = &scarce.host};
        unsigned int i;

        scarce = (struct scarce){
                .host = {.refused = refused, .for_ever = for_ever},
                .next_base = BASE << 1,
                .seed = 42,
        };
        if (spm_model_new(&config, &scarce.model) ||
            spm_context_add(scarce.model, 0, &scarce.context))
                return false;
        for (i = 0; i < 3; i++)
                if (spm_stream_add(scarce.model, scarce.context,
                                   i ? SPM_STREAM_NON_BLOCKING : SPM_STREAM_BLOCKING,
                                   &scarce.streams[i]))
                        return false;
        return !spm_event_add(scarce.model, &scarce.event) && make_pools();
}

static void grow(const struct spm_action *action, struct spm_request *request)
{
        uint64_t base = action->address ? action->address : scarce.next_base;
        size_t size = action->address ? action->size : action->preferred;
        spm_segment segment;

        scarce.next_base += action->address ? 0 : size;
        if (spm_segment_add(scarce.model, action->pool, base, size, NULL, &segment))
                spm_grow_failed(scarce.model, request);
}

static void act(const struct spm_actions *actions, struct spm_request *request)
{
        unsigned int i;

        for (i = 0; i < actions->count; i++) {
                struct spm_actions more;

                if (actions->item[i].kind == SPM_ACT_RECORD)
                        spm_stamp_recorded(scarce.model, actions->item[i].stamp, true, &more);
                else if (actions->item[i].kind == SPM_ACT_GROW)
                        grow(&actions->item[i], request);
        }
}

static struct spm_stats stats(spm_pool pool)
{
        struct spm_stats now;

        cr_assert_eq(spm_stats(scarce.model, pool, &now), SPM_OK);
        return now;
}

/* The program's steps. */

static size_t any_size(void)
{
        switch (any(4)) {
        case 0:
                return 1 + any(32 * KIB);
        case 1:
                return 1000;
        case 2:
                return 1 + any(MIB);
        default:
                return 1 + any(6 * MIB);
        }
}

static void allocate(unsigned int at)
{
        spm_pool pool = scarce.pools[any(POOLS)];
        struct spm_request request = {
                .pool = pool,
                .stream = pool == scarce.sync ? 0 : scarce.streams[any(3)],
                .size = any_size(),
                .may_wait = any(2),
        };
        struct spm_stats before = stats(pool);
        struct spm_allocation allocation;
        struct spm_actions actions;
        enum spm_status status;
        unsigned int steps = 0;

        do {
                status = spm_alloc(scarce.model, &request, &allocation, &actions);
                act(&actions, &request);
                cr_assert_lt(steps++, 300u);
        } while (status == SPM_AGAIN);
        if (status == SPM_OK) {
                scarce.live[at] = allocation.address;
                return;
        }
        cr_assert(status == SPM_E_HOST_MEMORY || status == SPM_E_OUT_OF_MEMORY, "%s",
                  spm_status_name(status));
        scarce.refusals += status == SPM_E_HOST_MEMORY;
        cr_assert_eq(stats(pool).used_current, before.used_current);
        cr_assert_eq(stats(pool).live_blocks, before.live_blocks);
        cr_assert_eq(stats(pool).allocs, before.allocs);
}

static void release(unsigned int at)
{
        spm_stream stream = any(3) ? scarce.streams[any(3)] : 0;
        struct spm_actions actions;

        if (!scarce.live[at])
                return;
        cr_assert_eq(spm_free(scarce.model, scarce.live[at], 0,
                              stream ? SPM_FREE_ASYNC : SPM_FREE_SYNC, stream, NULL, &actions),
                     SPM_OK, "a free cannot fail");
        act(&actions, NULL);
        scarce.live[at] = 0;
}

static void order(void)
{
        struct spm_scope from = {SPM_SCOPE_STREAM, scarce.streams[any(3)]};
        struct spm_scope to = {SPM_SCOPE_STREAM, scarce.streams[any(3)]};
        struct spm_ticket ticket;
        struct spm_actions actions;

        if (spm_record_begin(scarce.model, scarce.event, from, &ticket, &actions)) {
                scarce.refusals++;
                return;
        }
        act(&actions, NULL);
        spm_record_end(scarce.model, &ticket, true);
        if (!spm_wait_begin(scarce.model, to, scarce.event, &ticket))
                spm_wait_end(scarce.model, &ticket, true);
}

static void observe(struct spm_scope what, enum spm_sync how)
{
        struct spm_ticket ticket;
        struct spm_actions actions;

        if (spm_sync_begin(scarce.model, what, &ticket)) {
                scarce.refusals++;
                return;
        }
        spm_sync_end(scarce.model, &ticket, how, true, &actions);
        act(&actions, NULL);
}

static void trim(spm_pool pool, size_t keep)
{
        struct spm_actions actions;
        unsigned int steps = 0;

        /* A trim that cannot have a record says that there is more. */
        while (spm_trim(scarce.model, pool, keep, NULL, &actions) == SPM_AGAIN && steps++ < 20)
                act(&actions, NULL);
}

static void step(void)
{
        unsigned int at = (unsigned int)any(LIVE);

        switch (any(12)) {
        case 0:
                order();
                break;
        case 1:
                observe((struct spm_scope){SPM_SCOPE_STREAM, scarce.streams[any(3)]},
                        any(2) ? SPM_SYNC_WAIT : SPM_SYNC_QUERY);
                break;
        case 2:
                trim(scarce.pools[any(POOLS)], any(2) * 8 * MIB);
                break;
        case 3:
                if (scarce.live[at] && !any(4))
                        spm_export(scarce.model, scarce.live[at]);
                break;
        default:
                release(at);
                if (any(3))
                        allocate(at);
                break;
        }
}

static void expect_consistent(size_t refused)
{
        char text[160] = "";

        cr_assert(spm_check(scarce.model, text, sizeof(text)), "request %zu: %s", refused, text);
        /* The model itself is not a record. */
        cr_assert_leq(stats(scarce.sync).host_bytes, scarce.host.bytes);
        cr_assert_geq(stats(scarce.sync).host_bytes + sizeof(struct spm_model), scarce.host.bytes);
}

/* Everything goes back, whatever was refused before. */
static void wind_up(size_t refused)
{
        struct spm_scope whole = {SPM_SCOPE_CONTEXT, scarce.context};
        unsigned int i;

        for (i = 0; i < LIVE; i++)
                release(i);
        expect_consistent(refused);
        scarce.host.refused = 0;
        observe(whole, SPM_SYNC_WAIT);
        for (i = 0; i < POOLS; i++) {
                struct spm_stats now;

                trim(scarce.pools[i], 0);
                now = stats(scarce.pools[i]);
                cr_assert_eq(now.live_blocks, 0);
                cr_assert_eq(now.used_current, 0);
                cr_assert_eq(now.pending_bytes, 0, "request %zu", refused);
                /* Only a sealed block keeps its segment, if it is a slot. */
                if (!now.sealed_bytes)
                        cr_assert_eq(now.reserved_current, 0, "request %zu, pool %u", refused, i);
        }
        expect_consistent(refused);
}

/* Return: requests made of the host. */
static size_t run(size_t refused, bool for_ever)
{
        size_t asked;
        unsigned int i;

        if (set_up(refused, for_ever)) {
                for (i = 0; i < STEPS; i++) {
                        step();
                        if (i % 16 == 0)
                                expect_consistent(refused);
                }
                wind_up(refused);
        } else {
                scarce.refusals++;
        }
        asked = scarce.host.asked;
        spm_model_free(scarce.model);
        cr_assert_eq(scarce.host.held, 0, "request %zu", refused);
        return asked;
}

static void refuse_each(bool for_ever)
{
        size_t asked = run(0, false);
        unsigned int told = 0;
        size_t i;

        cr_expect_eq(scarce.refusals, 0u);
        cr_expect_gt(asked, 200u, "there is something to refuse");
        for (i = 1; i <= asked; i++) {
                run(i, for_ever);
                told += scarce.refusals != 0;
        }
        cr_expect_gt(told, asked / 4, "%u of %zu", told, asked);
}

Test(scarce, each_request_is_refused_once)
{
        refuse_each(false);
}

Test(scarce, each_request_and_all_that_follow_are_refused)
{
        refuse_each(true);
}
