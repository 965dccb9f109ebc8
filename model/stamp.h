/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_STAMP_H
#define SPM_STAMP_H

/*
 * Stamp -- events that the caller records for the model
 *
 * A stamp of a stream stands for everything submitted to that stream, and for
 * what that ran after. A stamp of a context stands for everything submitted
 * in the context, streams of other threads and destroyed ones included, so
 * one of them completes a whole batch of synchronous blocks.
 *
 * Stamps of one scope become done in the order in which they were asked for.
 */

#include <stdbool.h>
#include <stdint.h>
#include <streampool/model.h>

#include "order.h"
#include "subject.h"
#include "table.h"

enum spm_stamp_status { SPM_STAMP_ASKED, SPM_STAMP_RECORDED };

struct spm_stamp_state {
        struct spm_object object;
        struct spm_stamp_list *list; /* that it is in; NULL once nobody needs it */
        struct spm_stamp_state *previous;
        struct spm_stamp_state *next;    /* also of dropped ones, and of unused records */
        struct spm_stream_state *stream; /* it is recorded on; the line, for a whole context */
        uint64_t position;               /* in that stream */
        struct spm_clock clock;
        enum spm_stamp_status status;
        bool bounded; /* may cover work submitted after the free it stands for */
        bool is_trap; /* asked for by the legacy stream for itself; nobody follows it */
        bool is_owed; /* if it cannot be recorded, the host waits instead */
        bool lent;    /* a stream was told to wait for it */
        bool guards;  /* whoever comes may be, or was, told to be behind it (work_sole.c) */
        bool waited;  /* the host was told to wait for it */
};

/**
 * spm_stamp_ask() - ask for a stamp of @stream, or of the whole context if it is a line
 * @bounded: not asked for by a free that the driver would have made wait
 *
 * Return: NULL if there is no room or memory, or if the context or stream may not be named now.
 */
struct spm_stamp_state *spm_stamp_ask(struct spm_model *model, struct spm_stream_state *stream,
                                      bool bounded, struct spm_actions *actions);

/**
 * spm_stamp_trap() - what makes an allocation or a free on @stream, a legacy one, an operation of
 * it
 * @frees: it is a free, which cannot be undone: if the stamp cannot be recorded the host waits
 *
 * The legacy trap (H6): the driver would have made every blocking stream wait for such an
 * operation, and that stream for them. One that the driver does not see does not, so something that
 * it does see is submitted, where a blocking stream may have work (spm_work_is_trapped()). A mere
 * record is enough: on an H200 with driver 580, a kernel on an idle blocking stream waits for one,
 * and so for what another such stream had been given before it (U2).
 *
 * Return: false if there is no room or memory, or if the stream may not be named now: it is going
 * away, or a stream that waits for it captures.
 */
bool spm_stamp_trap(struct spm_model *model, struct spm_stream_state *stream, bool frees,
                    struct spm_actions *actions);

/** spm_stamp_do_without() - the host waits for the context of @stream, where it may. */
void spm_stamp_do_without(const struct spm_stream_state *stream, struct spm_actions *actions);

/* The answers; see the public header. */
enum spm_status spm_stamp_answer(struct spm_model *model, spm_stamp id, bool ok);
enum spm_status spm_stamp_passed(struct spm_model *model, spm_stamp id);

/** spm_stamp_find() - the oldest recorded stamp of @stream itself at or after @position, or NULL.
 */
struct spm_stamp_state *spm_stamp_find(const struct spm_stream_state *stream, uint64_t position);

/** spm_stamp_find_any() - that, or else a recorded stamp of its context that covers the point. */
struct spm_stamp_state *spm_stamp_find_any(const struct spm_stream_state *stream,
                                           uint64_t position);

/** spm_stamp_pending() - the stamp if it is known and nobody has seen it done; or NULL. */
const struct spm_stamp_state *spm_stamp_pending(const struct spm_model *model, spm_stamp id);

/** spm_stamp_between() - is there a stamp of @stream itself, at or after @from and before @to? */
bool spm_stamp_between(const struct spm_stream_state *stream, uint64_t from, uint64_t to);

/** spm_stamp_is_due() - does a block wait for a point of @stream that no stamp was asked for? */
bool spm_stamp_is_due(const struct spm_stream_state *stream);

/** spm_stamp_settle() - drop the stamps of @stream (of its context, if it is a line) that say
 * nothing new. */
void spm_stamp_settle(struct spm_model *model, struct spm_stream_state *stream);

/** spm_stamp_drop_all() - of a stream whose context is gone. */
void spm_stamp_drop_all(struct spm_model *model, struct spm_stream_state *stream);

/** spm_stamp_flush() - DROP for as many dropped stamps as there is room for. */
void spm_stamp_report_dropped(struct spm_model *model, struct spm_actions *actions);
static inline void spm_stamp_flush(struct spm_model *model, struct spm_actions *actions)
{
        if (model->dropped)
                spm_stamp_report_dropped(model, actions);
}

/** spm_stamp_forget() - all of them, and what is kept for new ones: the model ends. */
void spm_stamp_forget(struct spm_model *model);

#endif
