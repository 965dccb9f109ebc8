/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_ROLL_H
#define SPM_ROLL_H

/*
 * Roll -- which streams of a context are worth a look
 *
 * Every stream has a place for life, and a bit that says whether it is awake.
 * Walking those that are awake costs a step each, and one for every 64 places.
 * Places ascend with the handles of the streams.
 */

#include <stdbool.h>
#include <stdint.h>
#include <streampool/model.h>

struct spm_stream_state;

struct spm_roll {
        struct spm_stream_state **streams; /* by place; NULL: it is gone */
        uint64_t *awake;                   /* a bit a place, behind the pointers */
        uint32_t count;                    /* places given away */
        uint32_t room;                     /* a multiple of 64 */
};

/** spm_roll_add() - gives the newest stream of a context its place; it sleeps.
 * Return: false if there is no memory; nothing has changed. */
bool spm_roll_add(struct spm_model *model, struct spm_roll *roll, struct spm_stream_state *stream);

void spm_roll_remove(struct spm_roll *roll, const struct spm_stream_state *stream);

/** spm_roll_clear() - no places and no memory. */
void spm_roll_clear(struct spm_model *model, struct spm_roll *roll);

/** spm_roll_next() - the first stream at or after *@place that is awake, or NULL.
 * @place: receives where it is */
struct spm_stream_state *spm_roll_next(const struct spm_roll *roll, uint32_t *place);

static inline void spm_roll_wake(struct spm_roll *roll, uint32_t place)
{
        roll->awake[place / 64] |= (uint64_t)1 << place % 64;
}

static inline void spm_roll_rest(struct spm_roll *roll, uint32_t place)
{
        roll->awake[place / 64] &= ~((uint64_t)1 << place % 64);
}

#endif
