/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Witness, room -- where everything is, and who has a seat
 *
 * All memory is taken at once, zeroed; pages of it that are never used cost nothing.
 */

#include "witness.h"

#include <stdlib.h>

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

void spm_witness_join(const struct spm_witness *witness, uint64_t *clock, const uint64_t *other)
{
        for (uint32_t i = 0; i < witness->seats; i++)
                if (clock[i] < other[i])
                        clock[i] = other[i];
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
                spm_witness_join(witness, witness->host, oldest->next);
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
