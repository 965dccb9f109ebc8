/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_EVENT_H
#define SP_TRACK_EVENT_H

/*
 * Event -- which of the model's events does a handle mean?
 *
 * An event enters the table when the program first records it; an event that
 * was never recorded orders nothing (M28). Handles are used again after a
 * destroy call, which is hooked.
 */

#include <streampool/model.h>

#include "driver/driver.h"

/** sp_event_of() - the model's event, made if need be; 0 when the host has no memory. */
spm_event sp_event_of(CUevent handle);

/** sp_event_find() - the model's event, or 0 if the handle was never recorded in our sight. */
spm_event sp_event_find(CUevent handle);

/** sp_event_forget() - the handle is about to be destroyed. */
void sp_event_forget(CUevent handle);

#endif
