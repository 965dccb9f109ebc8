/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_RECALL_H
#define SPM_RECALL_H

/*
 * Recall -- what magazines have counted, and how their blocks come back
 *
 * Everything here is called with the caller's lock. A magazine is looked into
 * only while its flag is up and its owner outside; see magazine.h.
 *
 * An owner that is inside is waited for where its blocks are wanted, without a
 * bound. It takes no lock, calls nobody and waits for nobody, so it leaves after
 * some ten nanoseconds of its own time. What keeps its thread from that?
 *
 *   others that run           they end, or struct spm_config, pause, lets it run
 *   a stop, or a handler      of a signal: it goes on afterwards. A handler that
 *                             never returns, by longjmp(), pthread_exit() or the end
 *                             of the process, and an asynchronous cancellation,
 *                             leave the caller's lock behind as well, wherever they
 *                             meet its holder; no program may do that to a library
 *   pthread_exit(), cancel    happen between calls, so outside
 *   a fork by another thread  the owner is not in the child, and nobody is to use
 *                             the model there (the shim does not: base/life.h)
 *
 * A report is made in such places all the same, and does not wait so long.
 */

#include <stdbool.h>
#include <stdint.h>
#include <streampool/model.h>

#include "magazine.h"

/* What all magazines of a pool have counted. */
struct spm_magazine_sums {
        int64_t used;
        int64_t rounded;
        int64_t live;
        uint64_t allocs;
        uint64_t hits;
        uint64_t frees;
};

struct spm_magazine_sums spm_magazine_sum(const struct spm_pool_state *pool);

/** spm_magazine_settle_all() - move what the pool's magazines have counted to the pool, and what
 * they were granted back, but for owners that are inside. */
void spm_magazine_settle_all(struct spm_pool_state *pool);

/** spm_magazine_recall() - their blocks become pending. Return: were there any? */
bool spm_magazine_recall(struct spm_model *model, struct spm_pool_state *pool);

/** spm_magazine_recall_stream() - the same for one stream; with @ends, they serve nothing again. */
void spm_magazine_recall_stream(struct spm_model *model, struct spm_stream_state *stream,
                                bool ends);

/** spm_magazine_recall_legacy() - the same for the context's legacy stream, which has blocking ones
 * beside it from now on. */
void spm_magazine_recall_legacy(struct spm_model *model, struct spm_context_state *context);

/** spm_magazine_tell() - those of the context's own memory: what a free into it is now. */
void spm_magazine_tell(struct spm_model *model, const struct spm_context_state *context);

/** spm_magazine_abandon() - the pool is about to end, or to get a layout: its magazines are empty
 * and serve nothing. */
void spm_magazine_abandon(struct spm_model *model, struct spm_pool_state *pool);

/** spm_magazine_stop_all() - no owner is inside, and none gets in until spm_magazine_go_on(): for
 * whoever walks all blocks. @patient: however long that takes; else, for a report, one may still
 * be. */
void spm_magazine_stop_all(const struct spm_model *model, bool patient);
void spm_magazine_go_on(const struct spm_model *model);

/** spm_magazine_orphan() - the pool is gone; its magazines are their owners' still. */
void spm_magazine_orphan(struct spm_model *model, struct spm_pool_state *pool);

/** spm_magazine_forget() - at the end of the model. */
void spm_magazine_forget(struct spm_model *model);

/* One magazine, whose owner is here with the lock, or outside with the flag up. */

/** spm_magazine_settle() - what it has counted, and was granted, is the pool's. */
void spm_magazine_settle(struct spm_magazine *magazine);

/** spm_magazine_grant() - let it rise by a share of what is left below the marks. */
void spm_magazine_grant(struct spm_magazine *magazine);

/** spm_magazine_empty() - its blocks become pending. Return: were there any? */
bool spm_magazine_empty(struct spm_model *model, struct spm_magazine *magazine);

/** spm_magazine_spill() - those of them that still wait for something, alone (ripe.h); its figures
 * have been settled. */
void spm_magazine_spill(struct spm_model *model, struct spm_magazine *magazine);

/** spm_magazine_lay_down() - it is passed over just now, so what it has is the pool's. Return:
 * NULL.
 */
static inline struct spm_magazine *spm_magazine_lay_down(struct spm_model *model,
                                                         struct spm_magazine *magazine)
{
        if (magazine->held)
                spm_magazine_empty(model, magazine);
        return NULL;
}

/** spm_magazine_kill() - it is empty, and serves nothing again. */
void spm_magazine_kill(struct spm_magazine *magazine);

/** spm_magazine_is_barred() - must magazines of the stream be empty? While it captures; and those
 * of a legacy stream while there may be a blocking one in its context. Who makes it so recalls
 * them. */
bool spm_magazine_is_barred(const struct spm_stream_state *stream);

/** spm_magazine_is_empty() - of one that is ours for the moment */
bool spm_magazine_is_empty(const struct spm_magazine *magazine);

/** spm_magazine_let_go() - the flag goes down, unless it is dead or barred. */
void spm_magazine_let_go(struct spm_magazine *magazine);

#endif
