/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Witness -- was this use, or this free, in the order of the program's streams?
 *
 * Order: vector clocks, over all seats. A call on a stream first takes in what orders every call on
 * it (arrive()): what its context waits for, and the barrier of the legacy stream. What the host
 * has seen is in a clock of its own, which counts for everybody who asks.
 *
 * All clocks may say too much. The end of what a muted stream waits for is therefore believed only
 * where the host has waited for that stream itself, or its whole context.
 */

#include "witness.h"

#include <stdlib.h>
#include <string.h>

#define STREAMS 128
#define EVENTS  2048
#define BLOCKS  8192

/* life */

static void *take(const struct spm_witness_config *config, size_t size)
{
        return config->alloc ? config->alloc(1, size, config->user) : calloc(1, size);
}

static void give(const struct spm_witness_config *config, void *memory)
{
        if (config->free)
                config->free(memory, config->user);
        else
                free(memory);
}

static struct spm_witness_config with_defaults(const struct spm_witness_config *wish)
{
        struct spm_witness_config config = wish ? *wish : (struct spm_witness_config){0};

        config.streams = config.streams ? config.streams : STREAMS;
        config.events = config.events ? config.events : EVENTS;
        config.blocks = config.blocks ? config.blocks : BLOCKS;
        config.blocks += (SPM_WITNESS_WAYS - config.blocks % SPM_WITNESS_WAYS) % SPM_WITNESS_WAYS;
        return config;
}

/* Every array is of words, or of structures that begin on one. */
static void place_clocks(struct spm_witness *witness, uint64_t *clocks)
{
        size_t length = witness->config.streams;

        witness->host = clocks;
        clocks += length;
        for (unsigned int i = 0; i < SPM_WITNESS_BASES; i++, clocks += length)
                witness->base[i].clock = clocks;
        for (unsigned int i = 0; i < witness->config.streams; i++, clocks += length)
                witness->seat[i].next = clocks;
        for (unsigned int i = 0; i < witness->config.events; i++, clocks += 2 * length) {
                witness->mark[i].clock = clocks;
                witness->mark[i].ever = clocks + length;
        }
}

struct spm_witness *spm_witness_new(const struct spm_witness_config *wish)
{
        struct spm_witness_config config = with_defaults(wish);
        size_t clocks = config.streams + 2 * (size_t)config.events + SPM_WITNESS_BASES + 1;
        size_t seats = config.streams * sizeof(struct spm_seat);
        size_t marks = config.events * sizeof(struct spm_mark);
        size_t blocks = config.blocks * sizeof(struct spm_witnessed);
        struct spm_witness *witness = take(&config, sizeof(*witness));
        char *room =
                take(&config, seats + marks + blocks + clocks * config.streams * sizeof(uint64_t));

        if (!witness || !room) {
                if (witness)
                        give(&config, witness);
                if (room)
                        give(&config, room);
                return NULL;
        }
        witness->config = config;
        witness->room = room;
        witness->seat = (struct spm_seat *)(void *)room;
        witness->mark = (struct spm_mark *)(void *)(room + seats);
        witness->block = (struct spm_witnessed *)(void *)(room + seats + marks);
        place_clocks(witness, (uint64_t *)(void *)(room + seats + marks + blocks));
        return witness;
}

void spm_witness_free(struct spm_witness *witness)
{
        struct spm_witness_config config;

        if (!witness)
                return;
        config = witness->config;
        give(&config, witness->room);
        give(&config, witness);
}

/* clocks */

static void join(const struct spm_witness *witness, uint64_t *clock, const uint64_t *other)
{
        for (uint32_t i = 0; i < witness->seats; i++)
                if (clock[i] < other[i])
                        clock[i] = other[i];
}

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

/* The host has seen the end of what @seat was given up to @position. Once nothing is left that can
 * wait for anything, whatever it waited for is complete, too. */
static void end_mute(struct spm_witness *witness, struct spm_seat *seat, uint64_t position)
{
        if (!seat->muted || seat->muted > position)
                return;
        seat->muted = 0;
        for (uint32_t i = 0; i < witness->seats; i++)
                if (witness->seat[i].muted)
                        return;
        witness->is_muted = false;
        spm_witness_blur(witness);
}

/* seats */

const struct spm_seat *spm_witness_seat(const struct spm_witness *witness, uint32_t stream)
{
        for (uint32_t i = 0; i < witness->seats; i++)
                if (witness->seat[i].stream == stream)
                        return &witness->seat[i];
        return NULL;
}

/* One that nobody ever had, or of the stream that was of no use for longest. */
static struct spm_seat *free_seat(struct spm_witness *witness)
{
        struct spm_seat *oldest = NULL;

        if (witness->seats < witness->config.streams)
                return &witness->seat[witness->seats++];
        for (uint32_t i = 0; i < witness->seats; i++) {
                struct spm_seat *seat = &witness->seat[i];

                if (!seat->muted && (!oldest || seat->age < oldest->age))
                        oldest = seat;
        }
        if (oldest)
                join(witness, witness->host, oldest->next);
        return oldest;
}

struct spm_seat *spm_witness_sit(struct spm_witness *witness, struct spm_actor actor)
{
        struct spm_seat *seat = (struct spm_seat *)spm_witness_seat(witness, actor.stream);

        if (!seat)
                seat = free_seat(witness);
        if (!seat) {
                spm_witness_give_up(witness);
                return NULL;
        }
        if (seat->stream != actor.stream) {
                seat->stream = actor.stream;
                seat->context = actor.context;
                seat->kind = actor.kind;
        }
        seat->age = ++witness->age;
        return seat;
}

const uint64_t *spm_witness_base(const struct spm_witness *witness, uint32_t context)
{
        for (unsigned int i = 0; i < SPM_WITNESS_BASES; i++)
                if (witness->base[i].context == context)
                        return witness->base[i].clock;
        return NULL;
}

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
                        join(witness, clock, witness->seat[i].next);
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
                join(witness, seat->next, base);
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
                join(witness, witness->host, seat->next);
}

void spm_witness_mute(struct spm_witness *witness, struct spm_actor actor)
{
        struct spm_seat *seat = arrive(witness, actor);

        if (!seat)
                return;
        advance(witness, seat);
        seat->muted = seat->position;
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
                join(witness, witness->host, seat->next);
        mark->seat = (uint32_t)(seat - witness->seat);
        mark->position = seat->position;
        memcpy(mark->clock, seat->next, witness->config.streams * sizeof(*mark->clock));
        join(witness, mark->ever, seat->next);
}

/* What all streams of a context were given, and are behind. */
static void join_context(const struct spm_witness *witness, uint64_t *clock, uint32_t context)
{
        const uint64_t *base = spm_witness_base(witness, context);

        for (uint32_t i = 0; i < witness->seats; i++)
                if (witness->seat[i].context == context)
                        join(witness, clock, witness->seat[i].next);
        if (base)
                join(witness, clock, base);
}

void spm_witness_record_context(struct spm_witness *witness, uint32_t event, uint32_t context)
{
        struct spm_mark *mark = make_mark(witness, event);

        mark->is_known = !mark->is_shared;
        mark->position = 0;
        memset(mark->clock, 0, witness->config.streams * sizeof(*mark->clock));
        join_context(witness, mark->clock, context);
        join(witness, mark->ever, mark->clock);
        if (mark->is_shared)
                join(witness, witness->host, mark->clock);
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
                join(witness, seat->next, mark->clock);
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
                join(witness, base->clock, mark->clock);
        else
                spm_witness_give_up(witness);
}

/* what the host has seen */

void spm_witness_saw_stream(struct spm_witness *witness, struct spm_actor actor)
{
        struct spm_seat *seat = (struct spm_seat *)spm_witness_seat(witness, actor.stream);

        /* One that has no seat was given nothing, or all of it counts as complete. */
        if (!seat && actor.kind == SPM_STREAM_LEGACY)
                seat = spm_witness_sit(witness, actor);
        if (!seat)
                return;
        join(witness, witness->host, seat->next);
        /* The legacy stream answers for the blocking ones, and those for themselves. */
        if (seat->kind == SPM_STREAM_LEGACY)
                join_barrier(witness, witness->host, seat);
        end_mute(witness, seat, seat->position);
}

void spm_witness_saw_context(struct spm_witness *witness, uint32_t context)
{
        join_context(witness, witness->host, context);
        for (uint32_t i = 0; i < witness->seats; i++)
                if (witness->seat[i].context == context)
                        end_mute(witness, &witness->seat[i], witness->seat[i].position);
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
                join(witness, witness->host, mark->ever);
                return;
        }
        join(witness, witness->host, mark->clock);
        /* A stream that is muted keeps its seat, and positions there only grow. */
        end_mute(witness, &witness->seat[mark->seat], mark->position);
}
