/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exhaustive -- every short program of three streams
 *
 * All sequences of six calls out of a small alphabet, on a model that starts
 * with one block in the hands of the program. After each the address is served
 * again exactly where an order or an observation allows it: no more, and no
 * less either. The rules are written down here a second time, as sets of
 * streams, so small that they can be checked by eye. interleaved.c has more
 * programs, with a device, and looks for more only.
 */

#include <criterion/criterion.h>
#include <stdint.h>
#include <streampool/model.h>

#define STREAMS 3
#define LENGTH  6
#define SIZE    ((size_t)32 << 20)

enum call { FREE, RECORD_0, RECORD_1, WAIT_1, WAIT_2, DONE_0, DONE_1, RECORD_ALL, WAIT_ALL };

/* Programs are made of these. "All" are the streams of the second context, 1 and 2. */
static const enum call alphabets[][7] = {
        {FREE, RECORD_0, RECORD_1, WAIT_1, WAIT_2, DONE_0, DONE_1},
        {FREE, RECORD_0, RECORD_ALL, WAIT_1, WAIT_2, WAIT_ALL, DONE_1},
};

#define CALLS 7

struct small {
        struct spm_model *model;
        spm_context second;
        spm_stream streams[STREAMS];
        spm_event event;
        spm_pool pool;
        uint64_t address;
};

/* What the rules say. The block is freed on stream 0. */
struct rules {
        bool freed;
        bool waited[STREAMS]; /* its operations run after the free */
        bool all;             /* what all will submit does */
        bool event;           /* so does what waits for the event */
        bool seen;            /* the host knows it */
};

static void set_up(struct small *small)
{
        struct spm_pool_config config = {.kind = SPM_POOL_ASYNC};
        struct spm_request request = {.size = SIZE};
        struct spm_allocation allocation;
        struct spm_actions actions;
        spm_context context;
        spm_segment segment;
        int i;

        cr_assert_eq(spm_model_new(NULL, &small->model), SPM_OK);
        spm_context_add(small->model, 0, &context);
        spm_context_add(small->model, 0, &small->second);
        for (i = 0; i < STREAMS; i++)
                spm_stream_add(small->model, i ? small->second : context, SPM_STREAM_NON_BLOCKING,
                               &small->streams[i]);
        spm_event_add(small->model, &small->event);
        spm_pool_create(small->model, &config, &small->pool);
        spm_segment_add(small->model, small->pool, (uint64_t)1 << 40, SIZE, NULL, &segment);
        request.pool = small->pool;
        request.stream = small->streams[0];
        cr_assert_eq(spm_alloc(small->model, &request, &allocation, &actions), SPM_OK);
        small->address = allocation.address;
}

static void answer(struct small *small, const struct spm_actions *actions)
{
        struct spm_actions more;
        unsigned int i;

        for (i = 0; i < actions->count; i++)
                if (actions->item[i].kind == SPM_ACT_RECORD)
                        spm_stamp_recorded(small->model, actions->item[i].stamp, true, &more);
}

static struct spm_scope scope_of(const struct small *small, int stream)
{
        return (struct spm_scope){SPM_SCOPE_STREAM, small->streams[stream]};
}

static struct spm_scope all_of(const struct small *small)
{
        return (struct spm_scope){SPM_SCOPE_CONTEXT, small->second};
}

static void record(struct small *small, struct spm_scope scope)
{
        struct spm_ticket ticket;
        struct spm_actions actions;

        spm_record_begin(small->model, small->event, scope, &ticket, &actions);
        answer(small, &actions);
        spm_record_end(small->model, &ticket, true);
}

static void wait(struct small *small, struct spm_scope scope)
{
        struct spm_ticket ticket;

        spm_wait_begin(small->model, scope, small->event, &ticket);
        spm_wait_end(small->model, &ticket, true);
}

static void done(struct small *small, struct spm_scope scope)
{
        struct spm_ticket ticket;
        struct spm_actions actions;

        spm_sync_begin(small->model, scope, &ticket);
        spm_sync_end(small->model, &ticket, SPM_SYNC_QUERY, true, &actions);
}

static void make_call(struct small *small, struct rules *rules, enum call call)
{
        struct spm_actions actions;

        switch (call) {
        case FREE:
                if (!rules->freed)
                        spm_free(small->model, small->address, 0, SPM_FREE_ASYNC, small->streams[0],
                                 NULL, &actions);
                rules->freed = true;
                rules->waited[0] = true;
                break;
        case RECORD_0:
        case RECORD_1:
                record(small, scope_of(small, call - RECORD_0));
                rules->event = rules->waited[call - RECORD_0];
                break;
        case WAIT_1:
        case WAIT_2:
                wait(small, scope_of(small, call - WAIT_1 + 1));
                rules->waited[call - WAIT_1 + 1] |= rules->event;
                break;
        case DONE_0:
        case DONE_1:
                done(small, scope_of(small, call - DONE_0));
                rules->seen |= rules->waited[call - DONE_0];
                break;
        case RECORD_ALL:
                record(small, all_of(small));
                rules->event = rules->waited[1] || rules->waited[2];
                break;
        case WAIT_ALL:
                wait(small, all_of(small));
                rules->all |= rules->event;
                break;
        }
}

/* Is the block served to @stream without a question or growth? With @belted, by a wait? */
static bool is_served(struct small *small, int stream, bool *belted)
{
        struct spm_request request = {
                .pool = small->pool,
                .stream = small->streams[stream],
                .size = SIZE,
        };
        struct spm_allocation allocation;
        struct spm_actions actions;

        if (spm_alloc(small->model, &request, &allocation, &actions) != SPM_OK)
                return false;
        *belted = actions.count == 1 && actions.item[0].kind == SPM_ACT_WAIT_STREAM &&
                  actions.item[0].stream == request.stream;
        return *belted || !actions.count;
}

static void run(const enum call *alphabet, unsigned int code, int stream)
{
        struct small small = {0};
        struct rules rules = {0};
        unsigned int rest = code;
        bool belted = false;
        char text[160];
        bool follows;
        int i;

        set_up(&small);
        for (i = 0; i < LENGTH; i++, rest /= CALLS)
                make_call(&small, &rules, alphabet[rest % CALLS]);
        follows = rules.waited[stream] || (stream && rules.all);
        cr_assert(spm_check(small.model, text, sizeof(text)), "program %u: %s", code, text);
        cr_assert_eq(is_served(&small, stream, &belted), rules.freed && (rules.seen || follows),
                     "program %u, stream %d", code, stream);
        /* G3: what another stream freed, and nobody has seen, comes with a belt. */
        cr_assert_eq(belted, rules.freed && !rules.seen && stream && follows,
                     "program %u, stream %d: the belt", code, stream);
        spm_model_free(small.model);
}

static void run_all(const enum call *alphabet)
{
        unsigned int count = 1;
        unsigned int code;
        int i;

        for (i = 0; i < LENGTH; i++)
                count *= CALLS;
        for (code = 0; code < count; code++)
                run(alphabet, code, (int)(code % STREAMS));
}

Test(exhaustive, a_block_is_served_exactly_where_order_or_observation_allows_it)
{
        run_all(alphabets[0]);
}

Test(exhaustive, an_event_and_a_wait_of_a_whole_context_are_no_different)
{
        run_all(alphabets[1]);
}
