/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_ROUTE_WORK_H
#define SP_ROUTE_WORK_H

/*
 * Work -- what the model hears of submissions
 */

#include <stdbool.h>
#include <streampool/model.h>

#include "track/context.h"
#include "track/submit.h"

/** sp_work_start() - submissions are told from now on. */
void sp_work_start(void);

/** sp_work_watch() - before the first allocation from a context's pools. */
void sp_work_watch_first(struct sp_context *context);
static inline void sp_work_watch(struct sp_context *context)
{
        if (!atomic_load_explicit(&context->is_watched, memory_order_acquire))
                sp_work_watch_first(context);
}

/** sp_work_note() - a block was allocated or freed, and the model's lock is still held. */
static inline void sp_work_note(const struct spm_allocation *block)
{
        if (block->announce)
                sp_submit_again();
}

/** sp_work_blur() - which streams have work cannot be told until they are counted anew: a capture
 * is about to begin, or a whole context to wait. */
void sp_work_blur(void);

/** sp_work_share() - memory of contexts is about to be known outside of them; NULL: of all. */
void sp_work_share(struct sp_context *context);

/** sp_work_give_up() - the program can submit what we do not see, from now on. */
void sp_work_give_up(void);

/** sp_work_recount() - the program has waited, and several streams of the context may have work;
 * now and then it is looked whether that is still so. */
void sp_work_recount(struct sp_context *context);

#endif
