/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exhaustive -- every short program of three streams
 *
 * All sequences of six calls out of a small alphabet, on a model that starts
 * with one block in the hands of the program. After each the address may be
 * served again only where an order or an observation allows it. The rules are
 * written down here a second time, as sets of streams, so small that they can
 * be checked by eye.
 */

#include <criterion/criterion.h>
#include <stdint.h>
#include <streampool/model.h>

#define STREAMS 3
#define LENGTH  6
#define SIZE    ((size_t)32 << 20)

enum call { FREE, RECORD_0, RECORD_1, WAIT_1, WAIT_2, DONE_0, DONE_1, CALLS };

struct small {
        struct spm_model *model;
        spm_stream streams[STREAMS];
        spm_event event;
        spm_pool pool;
        uint64_t address;
};

/* What the rules say. The block is freed on stream 0. */
struct rules {
        bool freed;
        bool follows[STREAMS]; /* runs after the free */
        bool event;            /* so does what waits for the event */
        bool seen;             /* the host knows it */
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
        for (i = 0; i < STREAMS; i++)
                spm_stream_add(small->model, context, SPM_STREAM_NON_BLOCKING, &small->streams[i]);
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

static void record(struct small *small, int stream)
{
        struct spm_scope scope = {SPM_SCOPE_STREAM, small->streams[stream]};
        struct spm_ticket ticket;
        struct spm_actions actions;

        spm_record_begin(small->model, small->event, scope, &ticket, &actions);
        answer(small, &actions);
        spm_record_end(small->model, &ticket, true);
}

static void wait(struct small *small, int stream)
{
        struct spm_scope scope = {SPM_SCOPE_STREAM, small->streams[stream]};
        struct spm_ticket ticket;

        spm_wait_begin(small->model, scope, small->event, &ticket);
        spm_wait_end(small->model, &ticket, true);
}

static void done(struct small *small, int stream)
{
        struct spm_scope scope = {SPM_SCOPE_STREAM, small->streams[stream]};
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
                rules->follows[0] = true;
                break;
        case RECORD_0:
        case RECORD_1:
                record(small, call - RECORD_0);
                rules->event = rules->follows[call - RECORD_0];
                break;
        case WAIT_1:
        case WAIT_2:
                wait(small, call - WAIT_1 + 1);
                rules->follows[call - WAIT_1 + 1] |= rules->event;
                break;
        case DONE_0:
        case DONE_1:
                done(small, call - DONE_0);
                rules->seen |= rules->follows[call - DONE_0];
                break;
        case CALLS:
                break;
        }
}

/* Is the block served to @stream without a question or growth? */
static bool is_served(struct small *small, int stream)
{
        struct spm_request request = {
                .pool = small->pool,
                .stream = small->streams[stream],
                .size = SIZE,
        };
        struct spm_allocation allocation;
        struct spm_actions actions;

        return spm_alloc(small->model, &request, &allocation, &actions) == SPM_OK;
}

static void run(unsigned int code, int stream)
{
        struct small small = {0};
        struct rules rules = {0};
        unsigned int rest = code;
        char text[160];
        int i;

        set_up(&small);
        for (i = 0; i < LENGTH; i++, rest /= CALLS)
                make_call(&small, &rules, (enum call)(rest % CALLS));
        cr_assert(spm_check(small.model, text, sizeof(text)), "program %u: %s", code, text);
        cr_assert_eq(is_served(&small, stream),
                     rules.freed && (rules.seen || rules.follows[stream]), "program %u, stream %d",
                     code, stream);
        spm_model_free(small.model);
}

Test(exhaustive, a_block_is_served_exactly_where_order_or_observation_allows_it)
{
        unsigned int count = 1;
        unsigned int code;
        int i;

        for (i = 0; i < LENGTH; i++)
                count *= CALLS;
        for (code = 0; code < count; code++)
                run(code, (int)(code % STREAMS));
}
