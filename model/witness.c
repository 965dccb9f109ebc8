/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Witness -- was this use, or this free, in the order of the program's streams?
 *
 * Order: vector clocks, over all seats. A call on a stream first takes in what orders every call on
 * it (arrive()): what its context waits for, and the barrier of the legacy stream. What the host
 * has seen is in a clock of its own, which counts for everybody who asks.
 *
 * All clocks may say too much. The end of what a muted stream waits for is therefore believed only
 * where the host has waited for that stream itself, for an event's last record on it, or for its
 * whole context.
 */

#include "witness.h"

#include <string.h>

/* clocks */

/* Everything that was submitted. */
static void join_all(const struct spm_witness *witness, uint64_t *clock)
{
        for (uint32_t i = 0; i < witness->seats; i++)
                clock[i] = witness->seat[i].position;
}

/* silence */

void spm_witness_blur(struct spm_witness *witness)
{
        join_all(witness, witness->host);
}

void spm_witness_give_up(struct spm_witness *witness)
{
        witness->is_lost = true;
}

/* The host has seen the end of what @seat was given up to @position, by @since. Once nothing is
 * left that can wait for anything, whatever it waited for is complete, too. */
static void end_mute(struct spm_witness *witness, struct spm_seat *seat, uint64_t position,
                     uint64_t since)
{
        if (!seat->muted || seat->muted > position || seat->muted_at > since)
                return;
        seat->muted = 0;
        for (uint32_t i = 0; i < witness->seats; i++)
                if (witness->seat[i].muted)
                        return;
        witness->is_muted = false;
        spm_witness_blur(witness);
}

/* what orders every call on a stream */

static bool is_blocking(const struct spm_seat *seat)
{
        return seat->kind == SPM_STREAM_BLOCKING || seat->kind == SPM_STREAM_PER_THREAD;
}

/* Does the barrier of the legacy stream put @seat behind @other? */
static bool is_behind(const struct spm_seat *seat, const struct spm_seat *other)
{
        if (seat->context != other->context)
                return false;
        return (seat->kind == SPM_STREAM_LEGACY && is_blocking(other)) ||
               (is_blocking(seat) && other->kind == SPM_STREAM_LEGACY);
}

static void join_barrier(const struct spm_witness *witness, uint64_t *clock,
                         const struct spm_seat *seat)
{
        for (uint32_t i = 0; i < witness->seats; i++)
                if (is_behind(seat, &witness->seat[i]))
                        spm_witness_join(witness, clock, witness->seat[i].next);
}

/* A call on a stream: NULL if it has no seat. */
static struct spm_seat *arrive(struct spm_witness *witness, struct spm_actor actor)
{
        struct spm_seat *seat = spm_witness_sit(witness, actor);
        const uint64_t *base;

        if (!seat)
                return NULL;
        base = spm_witness_base(witness, actor.context);
        if (base)
                spm_witness_join(witness, seat->next, base);
        join_barrier(witness, seat->next, seat);
        return seat;
}

/* order */

static void advance(struct spm_witness *witness, struct spm_seat *seat)
{
        seat->next[seat - witness->seat] = ++seat->position;
}

void spm_witness_submit(struct spm_witness *witness, struct spm_actor actor)
{
        struct spm_seat *seat = arrive(witness, actor);

        if (seat)
                advance(witness, seat);
}

void spm_witness_signal(struct spm_witness *witness, struct spm_actor actor)
{
        struct spm_seat *seat = arrive(witness, actor);

        if (seat)
                spm_witness_join(witness, witness->host, seat->next);
}

void spm_witness_mute(struct spm_witness *witness, struct spm_actor actor)
{
        struct spm_seat *seat = arrive(witness, actor);

        if (!seat)
                return;
        advance(witness, seat);
        seat->muted = seat->position;
        seat->muted_at = witness->age;
        witness->is_muted = true;
}

static struct spm_mark *mark_of(const struct spm_witness *witness, uint32_t event)
{
        struct spm_mark *mark = &witness->mark[event % witness->config.events];

        return mark->event == event ? mark : NULL;
}

/* The event that had the place before is not known any more. */
static struct spm_mark *make_mark(struct spm_witness *witness, uint32_t event)
{
        struct spm_mark *mark = &witness->mark[event % witness->config.events];

        if (mark->event != event) {
                /* Of one that is shared nobody may be told that it is not. */
                if (mark->is_shared)
                        spm_witness_give_up(witness);
                mark->is_shared = false;
                mark->event = event;
                mark->is_known = false;
                mark->first = mark->version + 1;
                memset(mark->ever, 0, witness->config.streams * sizeof(*mark->ever));
        }
        mark->version++;
        return mark;
}

void spm_witness_record(struct spm_witness *witness, uint32_t event, struct spm_actor actor)
{
        struct spm_seat *seat = arrive(witness, actor);
        struct spm_mark *mark = make_mark(witness, event);

        mark->is_known = seat && !mark->is_shared;
        if (!seat)
                return;
        /* Whoever waits for it elsewhere can tell the host. */
        if (mark->is_shared)
                spm_witness_join(witness, witness->host, seat->next);
        mark->seat = (uint32_t)(seat - witness->seat);
        mark->position = seat->position;
        memcpy(mark->clock, seat->next, witness->config.streams * sizeof(*mark->clock));
        spm_witness_join(witness, mark->ever, seat->next);
}

/* What all streams of a context were given, and are behind. */
static void join_context(const struct spm_witness *witness, uint64_t *clock, uint32_t context)
{
        const uint64_t *base = spm_witness_base(witness, context);

        for (uint32_t i = 0; i < witness->seats; i++)
                if (witness->seat[i].context == context)
                        spm_witness_join(witness, clock, witness->seat[i].next);
        if (base)
                spm_witness_join(witness, clock, base);
}

void spm_witness_record_context(struct spm_witness *witness, uint32_t event, uint32_t context)
{
        struct spm_mark *mark = make_mark(witness, event);

        mark->is_known = !mark->is_shared;
        mark->position = 0;
        memset(mark->clock, 0, witness->config.streams * sizeof(*mark->clock));
        join_context(witness, mark->clock, context);
        spm_witness_join(witness, mark->ever, mark->clock);
        if (mark->is_shared)
                spm_witness_join(witness, witness->host, mark->clock);
}

void spm_witness_taint(struct spm_witness *witness, uint32_t event, bool forever)
{
        struct spm_mark *mark = make_mark(witness, event);

        mark->is_known = false;
        if (!forever)
                return;
        mark->is_shared = true;
        /* Whoever has waited for it may be elsewhere, too. */
        spm_witness_blur(witness);
}

void spm_witness_wait(struct spm_witness *witness, struct spm_actor actor, uint32_t event)
{
        const struct spm_mark *mark = mark_of(witness, event);
        struct spm_seat *seat;

        if (!mark || !mark->is_known) {
                spm_witness_mute(witness, actor);
                return;
        }
        seat = arrive(witness, actor);
        if (seat)
                spm_witness_join(witness, seat->next, mark->clock);
}

static struct spm_base *make_base(struct spm_witness *witness, uint32_t context)
{
        struct spm_base *base = witness->base;

        while (base < witness->base + SPM_WITNESS_BASES && base->context &&
               base->context != context)
                base++;
        if (base == witness->base + SPM_WITNESS_BASES)
                return NULL;
        base->context = context;
        return base;
}

void spm_witness_wait_context(struct spm_witness *witness, uint32_t context, uint32_t event)
{
        const struct spm_mark *mark = mark_of(witness, event);
        struct spm_base *base = mark && mark->is_known ? make_base(witness, context) : NULL;

        if (base)
                spm_witness_join(witness, base->clock, mark->clock);
        else
                spm_witness_give_up(witness);
}

/* what the host has seen */

uint64_t spm_witness_now(const struct spm_witness *witness)
{
        return witness->age;
}

void spm_witness_saw_stream(struct spm_witness *witness, struct spm_actor actor, uint64_t since)
{
        struct spm_seat *seat = (struct spm_seat *)spm_witness_seat(witness, actor.stream);
        struct spm_seat nobody = {.context = actor.context, .kind = actor.kind};

        /* The legacy stream answers for the blocking ones. Whether they answer for it where they
         * were given nothing since is not known, and then they do. */
        join_barrier(witness, witness->host, seat ? seat : &nobody);
        /* One that has no seat was given nothing, or all of it counts as complete. */
        if (!seat)
                return;
        spm_witness_join(witness, witness->host, seat->next);
        end_mute(witness, seat, seat->position, since);
}

void spm_witness_saw_context(struct spm_witness *witness, uint32_t context, uint64_t since)
{
        join_context(witness, witness->host, context);
        for (uint32_t i = 0; i < witness->seats; i++)
                if (witness->seat[i].context == context)
                        end_mute(witness, &witness->seat[i], witness->seat[i].position, since);
}

uint64_t spm_witness_version(const struct spm_witness *witness, uint32_t event)
{
        const struct spm_mark *mark = mark_of(witness, event);

        return mark ? mark->version : 0;
}

void spm_witness_saw_event(struct spm_witness *witness, uint32_t event, uint64_t version)
{
        const struct spm_mark *mark = mark_of(witness, event);

        /* What it stood for is forgotten, or was never known. */
        if (!mark || !mark->is_known || version < mark->first) {
                spm_witness_blur(witness);
                return;
        }
        if (mark->version != version) {
                spm_witness_join(witness, witness->host, mark->ever);
                return;
        }
        spm_witness_join(witness, witness->host, mark->clock);
        /* A stream that is muted keeps its seat, and positions there only grow. */
        end_mute(witness, &witness->seat[mark->seat], mark->position, witness->age);
}
