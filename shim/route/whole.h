/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_ROUTE_WHOLE_H
#define SP_ROUTE_WHOLE_H

/*
 * Whole -- driver calls of our own on a whole context
 *
 * A capture of the program is invalidated by them, and a context that was
 * destroyed crashes them. Both can begin on another thread at any moment, so
 * asking first is not enough: while somebody is between enter and leave they
 * do not begin.
 */

#include "stamp/stamp.h"
#include "track/context.h"

/** sp_whole_enter() - false while something captures, and when @context is NULL, ending or gone. */
bool sp_whole_enter(struct sp_context *context);
void sp_whole_leave(struct sp_context *context);

/** sp_whole_record() - a stamp behind all work of a context that was entered. */
CUresult sp_whole_record(struct sp_context *context, struct sp_stamp *stamp);

#endif
