/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STREAMPOOL_ORDER_H
#define STREAMPOOL_ORDER_H

/*
 * Order -- what waits for what, and what is done
 *
 * The caller tells the model which contexts, streams and events there are, what the program makes
 * wait for what, and when the host has seen the end of something. Waits and ends that it is not
 * told of cost no more than reuse. Streams and records that it cannot be told of have to be
 * announced: spm_context_hide(), spm_event_taint().
 */

#include <stdbool.h>
#include <stdint.h>
#include <streampool/action.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* contexts */

/** spm_context_add() - a context on @device (>= 0); spm_context_remove() ends it.
 * Return: SPM_OK, SPM_E_INVALID_DEVICE, SPM_E_HOST_MEMORY. */
enum spm_status spm_context_add(struct spm_model *model, int device, spm_context *context);

/** spm_context_hide() - the context may have blocking streams that spm_stream_add() was not told
 * of. Then every allocation and every free on its legacy stream is an operation of it on the
 * device, too, by a RECORD (H6). Return: SPM_OK, SPM_E_UNKNOWN. */
enum spm_status spm_context_hide(struct spm_model *model, spm_context context);

/**
 * spm_context_remove() - the context is gone, and all its work with it (L2)
 * @actions: RELEASE for segments whose memory outlives a context, DROP for its stamps
 *
 * Its streams, the pools created in it and their blocks are forgotten, live ones too. Blocks of
 * other pools stay; work of the context's streams counts as complete.
 *
 * Return: SPM_OK when all is done, SPM_AGAIN when there is more to release: carry out and call
 * again, while nothing is served from its pools any more; SPM_E_UNKNOWN.
 */
enum spm_status spm_context_remove(struct spm_model *model, spm_context context,
                                   struct spm_actions *actions);

/* streams */

enum spm_stream_kind {
        SPM_STREAM_LEGACY, /* at most one a context; orders with every blocking stream */
        SPM_STREAM_BLOCKING,
        SPM_STREAM_NON_BLOCKING,
        SPM_STREAM_PER_THREAD, /* blocking; only its own thread can record on it or wait (F5) */
};

/** spm_stream_add() - call when the driver has created it; spm_stream_retire() or the end of its
 * context ends it. It waits for what its whole context waits for (H9, H10). Return: SPM_OK,
 * SPM_E_UNKNOWN (context), SPM_E_INVALID_VALUE (bad kind, or a second legacy stream),
 * SPM_E_OUT_OF_BUDGET (there are max_streams of them; no other stream stands in for it),
 * SPM_E_HOST_MEMORY. */
enum spm_status spm_stream_add(struct spm_model *model, spm_context context,
                               enum spm_stream_kind kind, spm_stream *stream);

/** spm_stream_undo() - spm_stream_add() was in vain: @stream was told of nothing, and is as if it
 * had never been. Return: SPM_OK, SPM_E_UNKNOWN. */
enum spm_status spm_stream_undo(struct spm_model *model, spm_stream stream);

/**
 * spm_stream_retire() - call before the driver destroys @stream (L1)
 *
 * May ask to RECORD on the stream for the last time, and as spm_submit() does. Afterwards no action
 * names it, every function says SPM_E_UNKNOWN of it, but for spm_pending_on() while blocks are
 * pending, and a capture on it has ended. Blocks freed on it become ready by that stamp, or by one
 * of the context.
 *
 * Return: SPM_OK, SPM_E_UNKNOWN.
 */
enum spm_status spm_stream_retire(struct spm_model *model, spm_stream stream,
                                  struct spm_actions *actions);

/**
 * spm_capture_begin(), spm_capture_end() - a capture is open on @stream
 *
 * No action names the stream, and no stamp of its context is asked for, until it ends (C5, C6).
 * _begin is called before the driver's call and may ask to RECORD, and as spm_submit() does; _end
 * is called after it. Both are counted, per stream and context; an end too many is ignored.
 *
 * Return: SPM_OK, SPM_E_UNKNOWN.
 */
enum spm_status spm_capture_begin(struct spm_model *model, spm_stream stream,
                                  struct spm_actions *actions);
enum spm_status spm_capture_end(struct spm_model *model, spm_stream stream);

/* events and order */

/** spm_event_add() - an event, never recorded; spm_event_remove() ends it. It belongs to no
 * context. Return: SPM_OK, SPM_E_HOST_MEMORY. */
enum spm_status spm_event_add(struct spm_model *model, spm_event *event);

/** spm_event_remove() - the event is destroyed; what has waited for it stays behind what it stood
 * for. Tickets that name it are still to be ended. Return: SPM_OK, SPM_E_UNKNOWN. */
enum spm_status spm_event_remove(struct spm_model *model, spm_event event);

/** spm_event_taint() - the event can be recorded where the model does not see it (H12): it says
 * nothing any more, for ever if @forever, else until its next record. Return: SPM_OK,
 * SPM_E_UNKNOWN. */
enum spm_status spm_event_taint(struct spm_model *model, spm_event event, bool forever);

enum spm_scope_kind { SPM_SCOPE_STREAM, SPM_SCOPE_EVENT, SPM_SCOPE_CONTEXT };

struct spm_scope {
        enum spm_scope_kind kind;
        uint32_t id; /* spm_stream, spm_event or spm_context */
};

/*
 * What was known when a driver call began. Every _begin that returns SPM_OK is matched by
 * exactly one _end, which releases the ticket, also when the call failed; until then it owns host
 * memory of the model. The driver's call is made between the two, without the caller's lock, and
 * other inputs may come in the meantime, the end of what the ticket is about among them. Fields are
 * the model's.
 */
struct spm_ticket {
        struct spm_scope scope;
        uint32_t id;
        uint64_t version;
        void *snapshot;
};

/**
 * spm_record_begin() - an event is about to be recorded on a stream or in a whole context
 * @where:   SPM_SCOPE_STREAM or SPM_SCOPE_CONTEXT
 * @actions: RECORD on that stream for frees that are not stamped yet, to be carried out before
 *           the driver's record (H3)
 *
 * Between _begin and _end the event says nothing: another thread's query may still see the record
 * before. _end with @ok false leaves it so.
 *
 * Return: SPM_OK, SPM_E_UNKNOWN, SPM_E_HOST_MEMORY (the event is tainted until its next record).
 */
enum spm_status spm_record_begin(struct spm_model *model, spm_event event, struct spm_scope where,
                                 struct spm_ticket *ticket, struct spm_actions *actions);
void spm_record_end(struct spm_model *model, struct spm_ticket *ticket, bool ok);

/**
 * spm_wait_begin() - a stream, or a whole context, is about to wait for an event on the device
 * @waiter: SPM_SCOPE_STREAM or SPM_SCOPE_CONTEXT (streams created later wait too, H9)
 *
 * The order is learnt in _end, if @ok and if the event was not recorded again in between.
 *
 * Return: SPM_OK, SPM_E_UNKNOWN.
 */
enum spm_status spm_wait_begin(struct spm_model *model, struct spm_scope waiter, spm_event event,
                               struct spm_ticket *ticket);
void spm_wait_end(struct spm_model *model, struct spm_ticket *ticket, bool ok);

enum spm_sync {
        SPM_SYNC_WAIT,  /* the program waited, e.g. cuStreamSynchronize */
        SPM_SYNC_QUERY, /* the program asked and was told "done", e.g. cuEventQuery */
        SPM_SYNC_POLL,  /* the caller asked on the model's behalf */
};

/**
 * spm_sync_begin() - the host is about to wait for, or ask about, a stream, event or context
 *
 * What completes is what was submitted at _begin (H4, H5, H7), if @ok: the driver said that it is
 * done. The legacy stream stands for all blocking streams of its context. @actions of _end: RELEASE
 * and DROP. With SPM_SYNC_WAIT, pools whose frees it completed give back what their threshold says,
 * and after a wait for a whole context all pools of it and of its device (A13).
 *
 * Return: SPM_OK, SPM_E_UNKNOWN, SPM_E_HOST_MEMORY.
 */
enum spm_status spm_sync_begin(struct spm_model *model, struct spm_scope what,
                               struct spm_ticket *ticket);
void spm_sync_end(struct spm_model *model, struct spm_ticket *ticket, enum spm_sync how, bool ok,
                  struct spm_actions *actions);

/* stamps */

/** spm_stamp_recorded() - the outcome of SPM_ACT_RECORD, always reported; if @ok is false the stamp
 * is forgotten (no DROP follows, and actions that name it are void) and the blocks it stood for are
 * unstamped again. Return: SPM_OK, SPM_E_UNKNOWN. */
enum spm_status spm_stamp_recorded(struct spm_model *model, spm_stamp stamp, bool ok,
                                   struct spm_actions *actions);

/** spm_stamp_done() - the device has passed the stamp; may be reported whenever it is known.
 * @actions: RELEASE, DROP. Return: SPM_OK, SPM_E_UNKNOWN (also when the stamp
 * was dropped meanwhile; harmless). */
enum spm_status spm_stamp_done(struct spm_model *model, spm_stamp stamp,
                               struct spm_actions *actions);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
