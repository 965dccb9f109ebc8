/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_WAIT_H
#define SPM_WAIT_H

/*
 * Wait -- which completion to ask about, and which to wait for
 *
 * Each function adds actions for one step of a request and says whether it
 * did. The request's cursor (batch) is the last stamp, or for asynchronous
 * pools the last stream, that was dealt with.
 */

#include <stdbool.h>
#include <streampool/model.h>

#include "fit.h"

/** spm_wait_ask_poll() - questions that cost nobody a wait. At most one a stream; a batch after
 * the oldest only when that one turned out to be done. */
bool spm_wait_ask_poll(struct spm_model *model, const struct spm_want *want,
                       struct spm_request *request, struct spm_actions *actions);

/** spm_wait_ask_all() - before a pool grows that is served in the order of streams: has anything of
 * what is pending become ready, whoever freed it and however small it is? */
bool spm_wait_ask_all(struct spm_model *model, const struct spm_want *want,
                      struct spm_request *request, struct spm_actions *actions);

/** spm_wait_ask_pressure() - wait for the oldest batch while too much is pending (O3). */
bool spm_wait_ask_pressure(const struct spm_want *want, struct spm_request *request,
                           struct spm_actions *actions);

/** spm_wait_ask_host() - memory is short: wait for whatever is pending, one after the other. */
bool spm_wait_ask_host(struct spm_model *model, const struct spm_want *want,
                       struct spm_request *request, struct spm_actions *actions);

#endif
