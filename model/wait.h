/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_WAIT_H
#define SPM_WAIT_H

/*
 * Wait -- which completion to wait for
 *
 * As questions are asked (poll.h): one step of a request at a time, from its
 * cursor on.
 */

#include <stdbool.h>
#include <streampool/model.h>

#include "fit.h"

/** spm_wait_ask_pressure() - wait for the oldest batch while too much is pending (O3). */
bool spm_wait_ask_pressure(const struct spm_want *want, struct spm_request *request,
                           struct spm_actions *actions);

/** spm_wait_ask_freed() - for a pool of which one stream has all work, unless the device is far
 * behind: wait briefly for what cuMemFree() would have waited for, the oldest first. */
bool spm_wait_ask_freed(const struct spm_want *want, struct spm_request *request,
                        struct spm_actions *actions);

/** spm_wait_ask_host() - memory is short: wait for whatever is pending, one after the other. */
bool spm_wait_ask_host(struct spm_model *model, const struct spm_want *want,
                       struct spm_request *request, struct spm_actions *actions);

#endif
