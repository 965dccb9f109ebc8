/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_POLL_H
#define SPM_POLL_H

/*
 * Poll -- which completion to ask about
 *
 * Each function that asks adds actions for one step of a request and says
 * whether it did. The request's cursor (batch) is the last stamp, or for
 * asynchronous pools the last stream, that was dealt with.
 */

#include <stdbool.h>
#include <streampool/model.h>

#include "fit.h"

/** spm_poll_ask() - questions that cost nobody a wait. At most one a stream; a batch after the
 * oldest only when that one turned out to be done. */
bool spm_poll_ask(struct spm_model *model, const struct spm_want *want, struct spm_request *request,
                  struct spm_actions *actions);

/** spm_poll_ask_all() - before a pool grows that is served in the order of streams: has anything of
 * what is pending become ready, whoever freed it and however small it is? */
bool spm_poll_ask_all(struct spm_model *model, const struct spm_want *want,
                      struct spm_request *request, struct spm_actions *actions);

/* what waits (wait.h) choose and ask by, too */

/** spm_poll_left() - of a synchronous pool: the stamp that completes what was freed to a sole
 * stream that is none any more, or still waits for it; NULL if there is none, or it was waited for.
 */
struct spm_stamp_state *spm_poll_left(const struct spm_pool_state *pool);

/** spm_poll_owner() - the context whose stamps say most about what the request could have; NULL if
 * it may not be named. */
struct spm_context_state *spm_poll_owner(const struct spm_want *want);

/** spm_poll_next() - the oldest stamp of the context after the cursor that is recorded, or NULL. */
struct spm_stamp_state *spm_poll_next(const struct spm_context_state *context,
                                      const struct spm_request *request);

/** spm_poll_action() - an action about @stamp. */
void spm_poll_action(struct spm_actions *actions, enum spm_action_kind kind,
                     const struct spm_stamp_state *stamp);

#endif
