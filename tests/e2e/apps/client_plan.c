/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client plan -- which block each launch of a recorded program touches (client.c)
 *
 * Twice through the trace. First to know what comes before each free: a visit is
 * allowed only if that will. Then to choose, in turn: what was allocated last and
 * never used, because a pool that serves a block too early is caught by its first
 * use; and what is freed next, because then its last use is the most likely to be
 * pending. If neither may be had, any block.
 */
#include "client_plan.h"

#include <stdlib.h>

#include "client_order.h"
#include "measure.h"

#define NOBODY UINT32_MAX
#define AHEAD  32 /* events to look for the next free */
#define TRIES  16 /* blocks to look at otherwise */

struct block {
        uint32_t home, born; /* the step before which nobody has it, if its home is a stream */
        uint32_t user, used; /* the last visit */
        uint32_t *view;      /* what comes before its free; NULL: everything */
        uint32_t at;         /* its place among those that are live */
        bool is_live;
};

struct planning {
        const struct trace *trace;
        struct plan *plan;
        struct order order;
        struct block *block;
        uint32_t *live, lives;
        uint32_t *fresh, freshes; /* allocated and not visited, newest last */
        struct chance chance;
        bool is_wrong;
};

/* what comes before the free of each block */

static void look_at(struct planning *planning, const struct trace_event *event)
{
        struct order *order = &planning->order;
        struct block *block;

        switch (event->kind) {
        case TRACE_ALLOC:
                block = &planning->block[event->a];
                block->home = event->b == PEER_ANYWHERE ? NOBODY : event->b;
                if (block->home != NOBODY)
                        order_step(order, block->home);
                break;
        case TRACE_FREE:
                block = &planning->block[event->a];
                /* cuMemFree() of what is of no stream waits for its whole context. */
                if (block->home != NOBODY || event->b != PEER_ANYWHERE)
                        block->view = order_view(order, event->b);
                break;
        case TRACE_ORDER:
        case TRACE_QUERY:
                if (event->order != PEER_LAUNCH) {
                        order_do(order, event);
                        break;
                }
                order_begin(order, event->a);
                for (uint32_t n = 0; n < event->b; n++)
                        order_step(order, event->a);
                planning->plan->launches += event->b;
                break;
        case TRACE_THREAD:
        case TRACE_REFUSED:
        case TRACE_FREE_NULL:
        case TRACE_PIN: /* what holds for cuMemFree() holds for cuMemFreeHost() */
        case TRACE_UNPIN:
                break;
        }
}

static void look_at_frees(struct planning *planning)
{
        const struct trace *trace = planning->trace;

        order_init(&planning->order, trace);
        for (size_t i = 0; i < trace->events; i++)
                look_at(planning, &trace->event[i]);
        order_fini(&planning->order);
}

/* choosing */

static bool may_visit(const struct planning *planning, uint32_t number, uint32_t stream)
{
        const struct block *block = &planning->block[number];
        const struct order *order = &planning->order;

        if (!block->is_live)
                return false;
        if (planning->is_wrong)
                return true;
        if (block->home != NOBODY && !order_is_before(order, block->home, block->born, stream))
                return false;
        if (block->user != NOBODY && !order_is_before(order, block->user, block->used, stream))
                return false;
        return !block->view || block->view[stream] >= order_next(order, stream);
}

static uint32_t find_fresh(struct planning *planning, uint32_t stream)
{
        for (uint32_t i = planning->freshes; i-- && planning->freshes - i <= TRIES;) {
                uint32_t number = planning->fresh[i];
                const struct block *block = &planning->block[number];
                bool may = may_visit(planning, number, stream);

                if (may || !block->is_live || block->user != NOBODY)
                        planning->fresh[i] = planning->fresh[--planning->freshes];
                if (may)
                        return number;
        }
        return PLAN_NOTHING;
}

static uint32_t find_freed_next(const struct planning *planning, uint32_t stream, size_t i)
{
        const struct trace *trace = planning->trace;
        size_t end = i + AHEAD < trace->events ? i + AHEAD : trace->events;

        for (; i < end; i++) {
                const struct trace_event *event = &trace->event[i];
                uint32_t number = event->a;

                if (event->kind == TRACE_UNPIN)
                        number += trace->blocks;
                else if (event->kind != TRACE_FREE)
                        continue;
                if (may_visit(planning, number, stream))
                        return number;
        }
        return PLAN_NOTHING;
}

static uint32_t find_any(struct planning *planning, uint32_t stream)
{
        for (unsigned int i = 0; planning->lives && i < TRIES; i++) {
                uint64_t which = chance_below(&planning->chance, planning->lives);

                if (may_visit(planning, planning->live[which], stream))
                        return planning->live[which];
        }
        return PLAN_NOTHING;
}

static uint32_t choose(struct planning *planning, uint32_t stream, size_t i, bool is_odd)
{
        uint32_t number = PLAN_NOTHING;

        if (is_odd)
                number = find_freed_next(planning, stream, i);
        if (number == PLAN_NOTHING)
                number = find_fresh(planning, stream);
        if (number == PLAN_NOTHING)
                number = find_any(planning, stream);
        return number;
}

static void launch(struct planning *planning, uint32_t stream, uint32_t count, size_t i)
{
        struct plan *plan = planning->plan;

        order_begin(&planning->order, stream);
        while (count--) {
                uint32_t number = choose(planning, stream, i, plan->launches % 2);

                plan->visit[plan->launches++] = number;
                if (number != PLAN_NOTHING) {
                        planning->block[number].user = stream;
                        planning->block[number].used = order_next(&planning->order, stream);
                }
                order_step(&planning->order, stream);
        }
}

/* what is live */

static void enter(struct planning *planning, uint32_t number)
{
        struct block *block = &planning->block[number];

        block->user = NOBODY;
        if (block->home != NOBODY)
                block->born = order_step(&planning->order, block->home);
        block->is_live = true;
        block->at = planning->lives;
        planning->live[planning->lives++] = number;
        planning->fresh[planning->freshes++] = number;
}

static void leave(struct planning *planning, uint32_t number)
{
        struct block *block = &planning->block[number];
        uint32_t last = planning->live[--planning->lives];

        block->is_live = false;
        planning->live[block->at] = last;
        planning->block[last].at = block->at;
}

static void step(struct planning *planning, const struct trace_event *event, size_t i)
{
        uint32_t pinned = planning->trace->blocks + event->a;

        switch (event->kind) {
        case TRACE_ALLOC:
                enter(planning, event->a);
                break;
        case TRACE_FREE:
                leave(planning, event->a);
                break;
        case TRACE_PIN:
                planning->block[pinned].home = NOBODY;
                enter(planning, pinned);
                break;
        case TRACE_UNPIN:
                leave(planning, pinned);
                break;
        case TRACE_ORDER:
        case TRACE_QUERY:
                if (event->order == PEER_LAUNCH)
                        launch(planning, event->a, event->b, i);
                else
                        order_do(&planning->order, event);
                break;
        case TRACE_THREAD:
        case TRACE_REFUSED:
        case TRACE_FREE_NULL:
                break;
        }
}

void plan_make(struct plan *plan, const struct trace *trace, bool is_wrong)
{
        uint32_t blocks = trace->blocks + trace->pinned;
        struct planning planning = {
                .trace = trace,
                .plan = plan,
                .block = must_calloc(blocks + 1, sizeof(*planning.block)),
                .live = must_calloc(blocks + 1, sizeof(*planning.live)),
                .fresh = must_calloc(blocks + 1, sizeof(*planning.fresh)),
                .chance = {1},
                .is_wrong = is_wrong,
        };

        *plan = (struct plan){0};
        look_at_frees(&planning);
        plan->visit = must_calloc(plan->launches + 1, sizeof(*plan->visit));
        plan->launches = 0;
        order_init(&planning.order, trace);
        for (size_t i = 0; i < trace->events; i++)
                step(&planning, &trace->event[i], i);
        order_fini(&planning.order);
        for (uint32_t i = 0; i < blocks; i++)
                free(planning.block[i].view);
        free(planning.fresh);
        free(planning.live);
        free(planning.block);
}

void plan_fini(struct plan *plan)
{
        free(plan->visit);
}
