/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roll -- which streams of a context are worth a look
 *
 * Places of streams that are gone are used again only when all places are
 * taken: then everybody moves up, which keeps the order, or the roll grows if
 * that would not make enough room to be worth it.
 */

#include "roll.h"

#include <string.h>

#include "bits.h"
#include "host.h"
#include "subject.h"

#define PLACES_MIN 64

static bool is_awake(const struct spm_roll *roll, uint32_t place)
{
        return roll->awake[place / 64] >> place % 64 & 1;
}

/* Those that are left, in their order, from the first place on; @to may be @from. */
static void move_up(const struct spm_roll *from, struct spm_roll *to)
{
        uint32_t old_count = from->count;
        uint32_t count = 0;
        uint32_t place;

        for (place = 0; place < old_count; place++) {
                struct spm_stream_state *stream = from->streams[place];
                bool awake = is_awake(from, place);

                if (!stream)
                        continue;
                stream->place = count;
                to->streams[count] = stream;
                spm_roll_rest(to, count);
                if (awake)
                        spm_roll_wake(to, count);
                count++;
        }
        to->count = count;
        /* Bits behind the last one are those of nobody. */
        for (place = count; place < old_count; place++)
                spm_roll_rest(to, place);
}

static uint32_t count_present(const struct spm_roll *roll)
{
        uint32_t present = 0;
        uint32_t place;

        for (place = 0; place < roll->count; place++)
                present += roll->streams[place] != NULL;
        return present;
}

static bool make_room(struct spm_model *model, struct spm_roll *roll)
{
        struct spm_roll larger = {.room = roll->room ? 2 * roll->room : PLACES_MIN};

        if (roll->room && count_present(roll) <= roll->room / 2) {
                move_up(roll, roll);
                return true;
        }
        larger.streams = spm_host_new(model, larger.room * sizeof(*larger.streams) +
                                                     larger.room / 64 * sizeof(*larger.awake));
        if (!larger.streams)
                return false;
        larger.awake = (uint64_t *)(larger.streams + larger.room);
        move_up(roll, &larger);
        spm_host_free(model, roll->streams);
        *roll = larger;
        return true;
}

bool spm_roll_add(struct spm_model *model, struct spm_roll *roll, struct spm_stream_state *stream)
{
        if (roll->count == roll->room && !make_room(model, roll))
                return false;
        stream->place = roll->count;
        roll->streams[roll->count++] = stream;
        return true;
}

void spm_roll_remove(struct spm_roll *roll, const struct spm_stream_state *stream)
{
        spm_roll_rest(roll, stream->place);
        roll->streams[stream->place] = NULL;
}

void spm_roll_clear(struct spm_model *model, struct spm_roll *roll)
{
        spm_host_free(model, roll->streams);
        *roll = (struct spm_roll){0};
}

struct spm_stream_state *spm_roll_next(const struct spm_roll *roll, uint32_t *place)
{
        uint32_t word;

        for (word = *place / 64; word * 64 < roll->count; word++) {
                uint64_t bits = roll->awake[word];

                if (word == *place / 64)
                        bits &= ~(uint64_t)0 << *place % 64;
                if (!bits)
                        continue;
                *place = word * 64 + spm_lowest_bit(bits);
                return roll->streams[*place];
        }
        return NULL;
}
