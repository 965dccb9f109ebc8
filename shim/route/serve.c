/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Serve -- a request climbs the model's ladder, and its actions are carried out
 *
 * Mostly the first step has the block, and asks for nothing.
 */

#include <assert.h>

#include "base/config.h"
#include "base/life.h"
#include "route/grow.h"
#include "route/perform.h"
#include "route/route.h"
#include "route/tick.h"
#include "route/work.h"
#include "track/held.h"
#include "track/state.h"

/* A request ends after a handful of steps, or after some dozens if it is large; one that does not
 * is a broken promise of the model, and the program must not pay for it: builds without assertions
 * do without the pool then. */
#define STEPS_MAX 20000

static enum spm_status take_step(struct spm_request *request, struct spm_allocation *block,
                                 struct spm_actions *actions)
{
        enum spm_status status = spm_alloc(sp_model_enter(), request, block, actions);

        if (status == SPM_OK)
                sp_work_note(block);
        sp_model_leave();
        return status;
}

/* The first step, which was answered with @status, has not been all. */
static SP_COLD bool climb(struct spm_request *request, enum spm_status status,
                          struct spm_allocation *block, struct spm_actions *actions)
{
        struct sp_room room = {.pool = request->pool, .size = request->size + request->extra};
        enum sp_verdict verdict;
        struct sp_spares spares;
        unsigned int steps = 0;
        bool kept;

        spares.count = 0;
        for (;;) {
                verdict = sp_room_judge(&room, actions, &spares);
                kept = sp_perform_step(actions, request, &spares, verdict);
                if (status != SPM_AGAIN || verdict == SP_VERDICT_GIVE_UP || ++steps == STEPS_MAX)
                        break;
                status = take_step(request, block, actions);
        }
        sp_spares_drop(&spares);
        assert(steps < STEPS_MAX);
        if (steps == STEPS_MAX)
                sp_life_off("an allocation from the pool never ends");
        if (steps)
                sp_tick();
        if (status != SPM_OK || kept || sp_config()->mode == SP_MODE_OBSERVE)
                return status == SPM_OK;

        spm_alloc_undo(sp_model_enter(), block->address, actions);
        sp_model_leave();
        sp_perform(actions, NULL);
        return false;
}

bool sp_serve(spm_pool pool, spm_stream stream, size_t size, size_t extra,
              struct spm_magazine *magazine, struct spm_allocation *block)
{
        struct spm_request request = {
                .pool = pool,
                .stream = stream,
                .size = size,
                .extra = extra,
                .may_wait = true,
                .magazine = magazine,
                .user = sp_held_user(),
        };
        struct spm_actions actions;
        enum spm_status status = take_step(&request, block, &actions);

        return (status == SPM_OK && !actions.count) || climb(&request, status, block, &actions);
}
