/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STREAMPOOL_SUBMIT_H
#define STREAMPOOL_SUBMIT_H

/*
 * Submit -- which streams of a context have work
 *
 * A caller that can announce everything that is submitted into a context gets more of its memory:
 * while one stream alone has work, a freed synchronous block can be served again at once (R1), and
 * an allocation or a free on the legacy stream needs no event where no blocking stream could miss
 * it (H6). For a context without spm_context_watch() nothing is announced, and nothing assumed.
 *
 * What is a submission: whatever makes the device touch memory, a launch, a copy, a set, a graph, a
 * host function; and a stream's wait for an event, since a stamp recorded after it is behind that
 * event's work, too. Records of events, queries and synchronisations are none. What a capture
 * records is none either; the launch of its graph is. Before a whole context waits for an event,
 * the caller blurs it.
 *
 * Why a synchronous block may be served before it is complete: all work that can touch it was given
 * to one stream, and so will all that the new owner submits, until a second stream is announced.
 * Before that one's work, SPM_ACT_WAIT_FENCE puts it behind the work that blocks
 * which were served early had still to wait for. That wait is for a stamp recorded before the first
 * submission after the block's free, so it never depends on a kernel that the program launched
 * later, and that may wait for the second stream itself.
 */

#include <stdbool.h>
#include <streampool/action.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/**
 * spm_context_watch() - submissions into the context are announced from now on
 * @alone:   its synchronous memory is touched by work of its own streams only, and by the host
 *           through such work
 * @actions: RECORD and POLL of a stamp: when it is done, what was submitted before has ended
 *
 * Return: SPM_OK, SPM_E_UNKNOWN.
 */
enum spm_status spm_context_watch(struct spm_model *model, spm_context context, bool alone,
                                  struct spm_actions *actions);

/**
 * spm_context_recount() - count anew which streams have work
 * @actions: RECORD of a stamp of the context; when that is done, streams that have not been
 *           announced since this call have no work
 *
 * Before the caller records the stamp it forgets which streams it announced, and sees that no
 * submission that relies on an earlier announcement is under way; if one is, it blurs. Worth its
 * price where several streams had work some time ago.
 *
 * Return: SPM_OK, SPM_E_UNKNOWN (also of a context that is not watched).
 */
enum spm_status spm_context_recount(struct spm_model *model, spm_context context,
                                    struct spm_actions *actions);

/**
 * spm_context_share() - its memory can be touched from outside, for ever
 * @actions: RECORD and WAIT_HOST for blocks that were served early, or SYNC_CONTEXT
 *
 * Another process or a network device, a peer, a second context. Announcements go on.
 *
 * Return: SPM_OK, SPM_E_UNKNOWN.
 */
enum spm_status spm_context_share(struct spm_model *model, spm_context context,
                                  struct spm_actions *actions);

/**
 * spm_submit() - the program is about to submit work to @stream
 * @actions: RECORD and WAIT_FENCE or WAIT_HOST, or SYNC_CONTEXT where no stamp is to be had: to be
 * carried out before it does
 *
 * Has to be called before the first submission to a stream since spm_context_watch() or
 * spm_context_recount(), and before the first one since spm_free() or spm_alloc() said `announce`;
 * more often does no harm.
 *
 * Return: SPM_OK, SPM_E_UNKNOWN.
 */
enum spm_status spm_submit(struct spm_model *model, spm_stream stream, struct spm_actions *actions);

/**
 * spm_context_blur() - submissions may go unannounced until the next spm_context_recount()
 * @actions: as of spm_submit()
 *
 * Before a capture begins anywhere: while it is open the caller asks the driver nothing of its own.
 *
 * Return: SPM_OK, SPM_E_UNKNOWN.
 */
enum spm_status spm_context_blur(struct spm_model *model, spm_context context,
                                 struct spm_actions *actions);

/** spm_context_is_crowded() - may several streams have work, so that spm_context_recount() could
 * help? False for one that is unknown or not watched; of one that is not alone only where the
 * legacy stream is allocated on, which costs an event then (H6). */
bool spm_context_is_crowded(const struct spm_model *model, spm_context context);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
