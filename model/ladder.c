/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ladder -- from a request to a block, and what to try before giving up
 *
 * A rung that asks for something ends the step, and is stood on again after
 * the answers, with a look at what may be served first. Every rung counts its
 * tries or moves a cursor, so a request climbs in a bounded number of steps
 * whatever the caller answers.
 */

#include "ladder.h"

#include <assert.h>

#include "action.h"
#include "serve.h"
#include "state.h"
#include "trim.h"
#include "wait.h"

#define GROW_MAX   4
#define DONORS_MAX 2 /* streams that a request may have stamped for it */
#define MIB        ((size_t)1 << 20)

enum rung { START, POLLED, CROWDED, GROWING, INTERNAL, WAITING, RELEASING, REGROWING, TOP };

static void step_to(struct spm_request *request, enum rung rung)
{
        request->stage = rung;
        request->tries = 0;
        request->batch = 0;
}

bool spm_ladder_is_short(const struct spm_request *request)
{
        return request->stage >= INTERNAL;
}

/* serve */

/* A legacy stream may be unable to have a pending block now (a capture is open). */
static enum spm_status serve(struct spm_model *model, const struct spm_want *want,
                             struct spm_fit *fit, struct spm_block **block,
                             struct spm_actions *actions)
{
        enum spm_status status = spm_serve_fit(model, want, fit, block, actions);

        if (status == SPM_E_UNKNOWN && spm_fit_ready(want, fit))
                status = spm_serve_fit(model, want, fit, block, actions);
        return status;
}

static enum spm_status try_serve(struct spm_model *model, const struct spm_want *want,
                                 const struct spm_request *request, struct spm_block **block,
                                 struct spm_actions *actions)
{
        struct spm_fit fit;

        if (spm_fit_bare(model, want, &fit) || spm_fit_followed(model, want, &fit) ||
            spm_fit_stitched(model, want, &fit))
                return serve(model, want, &fit, block, actions);
        if (spm_ladder_is_short(request) && spm_fit_internal(model, want, &fit) && fit.belt)
                return serve(model, want, &fit, block, actions);
        return SPM_E_UNKNOWN;
}

/* grow */

static bool past_cap(const struct spm_pool_state *pool, uint64_t size)
{
        const struct spm_pool_config *config = &pool->config;

        return config->max_size && (pool->reserved_bytes > config->max_size ||
                                    size > config->max_size - pool->reserved_bytes);
}

enum spm_status spm_ladder_grow_model(struct spm_model *model, struct spm_pool_state *pool,
                                      size_t size)
{
        struct spm_segment_state *segment;
        uint64_t grain = pool->config.grain;
        uint64_t base = (model->next_base + grain - 1) & ~(grain - 1);
        enum spm_status status = spm_segment_new(model, pool, base, size, NULL, &segment);

        if (status == SPM_OK) {
                model->next_base = base + size;
                pool->grows++;
        }
        return status == SPM_E_INVALID_VALUE ? SPM_E_OUT_OF_MEMORY : status;
}

/* What to ask for: enough for the request, and what is usual. Return: false if no size will do. */
static bool growth(const struct spm_want *want, bool exact, size_t *size, size_t *preferred)
{
        const struct spm_pool_state *pool = want->pool;
        const struct spm_pool_config *config = &pool->config;
        size_t grain = config->grain;
        size_t need = want->size;
        size_t usual = config->segment_size;

        /* A segment starts at a multiple of the grain only. */
        if (want->align > grain)
                need += want->align;
        if (need < want->size || need + (grain - 1) < need)
                return false;
        need = (need + grain - 1) & ~(grain - 1);
        if (past_cap(pool, need))
                return false;

        if (want->size <= MIB && pool->reserved_bytes < config->segment_size)
                usual = 2 * MIB;
        if (!pool->reserved_bytes && usual < config->initial_size)
                usual = config->initial_size;
        usual = (usual + grain - 1) & ~(grain - 1);
        if (usual < need || exact || past_cap(pool, usual))
                usual = need;
        *size = need;
        *preferred = usual;
        return true;
}

static bool passes_mark(const struct spm_pool_state *pool, uint64_t size)
{
        return pool->reserved_bytes + size > pool->reserved_high;
}

/*
 * Segments that nobody uses are given back rather than kept beside a new one: what a pool reserves
 * passes its high mark only when none of it is idle. A program whose blocks vary in size would else
 * collect a segment for every size. Segments that cost a barrier are left alone (F10).
 */
static void make_way(struct spm_model *model, struct spm_pool_state *pool, uint64_t size,
                     struct spm_actions *actions)
{
        uint64_t released = 0;

        if (!passes_mark(pool, size) || pool->config.release_needs_idle)
                return;
        spm_trim_pool(model, pool, pool->reserved_high > size ? pool->reserved_high - size : 0, 0,
                      &released, actions);
}

/* Return: SPM_OK to look again at once, SPM_AGAIN, or SPM_E_OUT_OF_MEMORY to climb on. */
static enum spm_status grow(struct spm_model *model, const struct spm_want *want, bool exact,
                            struct spm_actions *actions)
{
        struct spm_pool_state *pool = want->pool;
        struct spm_action *action;
        size_t size;
        size_t preferred;

        if (!growth(want, exact, &size, &preferred))
                return SPM_E_OUT_OF_MEMORY;
        make_way(model, pool, preferred, actions);
        if (pool->config.provider == SPM_PROVIDER_MODEL)
                return spm_ladder_grow_model(model, pool, preferred);
        if (!spm_actions_room(actions))
                return SPM_AGAIN;
        action = spm_action_add(actions, SPM_ACT_GROW);
        action->context = pool->config.context;
        action->pool = pool->object.id;
        action->size = size;
        action->preferred = preferred;
        return SPM_AGAIN;
}

void spm_ladder_refused(struct spm_request *request)
{
        if (request->stage == GROWING)
                step_to(request, INTERNAL);
        else if (request->stage == REGROWING)
                step_to(request, TOP);
}

/* the other rungs: did they ask for anything? */

static bool ask_internal(struct spm_model *model, const struct spm_want *want,
                         struct spm_actions *actions)
{
        struct spm_fit fit;

        return spm_fit_internal(model, want, &fit) && fit.donor &&
               spm_stamp_ask(model, fit.donor->stream, true, actions);
}

static bool ask_release(struct spm_model *model, const struct spm_want *want,
                        struct spm_actions *actions)
{
        uint64_t released = 0;

        spm_trim_pool(model, want->pool, 0, 0, &released, actions);
        return released != 0;
}

/* One rung. Return: SPM_OK to look again at once. */
static enum spm_status climb(struct spm_model *model, const struct spm_want *want,
                             struct spm_request *request, struct spm_actions *actions)
{
        enum spm_status status;

        switch ((enum rung)request->stage) {
        case START:
                if (spm_wait_ask_poll(model, want, request, actions))
                        return SPM_AGAIN;
                step_to(request, POLLED);
                return SPM_OK;
        case POLLED:
                if (request->may_wait && spm_wait_ask_pressure(model, want, request, actions))
                        return SPM_AGAIN;
                step_to(request, CROWDED);
                return SPM_OK;
        case CROWDED:
                if (passes_mark(want->pool, want->size) &&
                    spm_wait_ask_own(model, want, request, actions))
                        return SPM_AGAIN;
                step_to(request, GROWING);
                return SPM_OK;
        case GROWING:
        case REGROWING:
                status = SPM_E_OUT_OF_MEMORY;
                if (request->tries++ < GROW_MAX)
                        status = grow(model, want, request->stage == REGROWING, actions);
                if (status != SPM_E_OUT_OF_MEMORY)
                        return status;
                spm_ladder_refused(request);
                return SPM_OK;
        case INTERNAL:
                if (request->tries++ < DONORS_MAX && ask_internal(model, want, actions))
                        return SPM_AGAIN;
                step_to(request, WAITING);
                return SPM_OK;
        case WAITING:
                if (request->may_wait && spm_wait_ask_host(model, want, request, actions))
                        return SPM_AGAIN;
                step_to(request, RELEASING);
                return SPM_OK;
        case RELEASING:
                if (ask_release(model, want, actions) && actions->count)
                        return SPM_AGAIN;
                step_to(request, REGROWING);
                return SPM_OK;
        case TOP:
                break;
        }
        return SPM_E_OUT_OF_MEMORY;
}

enum spm_status spm_ladder_climb(struct spm_model *model, const struct spm_want *want,
                                 struct spm_request *request, struct spm_block **block,
                                 struct spm_actions *actions)
{
        enum spm_status status;

        assert(request->stage <= TOP);
        do {
                status = try_serve(model, want, request, block, actions);
                if (status == SPM_OK && !(*block)->fresh) {
                        (*block)->hit = true;
                        want->pool->hits++;
                }
                if (status != SPM_E_UNKNOWN)
                        return status;
                status = climb(model, want, request, actions);
        } while (status == SPM_OK);
        return status;
}
