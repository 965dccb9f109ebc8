/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Witness, memory -- allocations and their uses
 *
 * Of each allocation the last read, write and argument by each of a few streams are known: who is
 * behind the last one of a stream is behind all before it. Where there are more streams, or more
 * allocations, the oldest are forgotten.
 *
 * The place of an allocation follows from its address: one of a few, so that nothing is ever moved.
 */

#include "witness.h"

#include <string.h>

static const struct spm_verdict NONE;

/* places */

static struct spm_witnessed *ways_of(const struct spm_witness *witness, uint64_t address)
{
        /* Addresses of allocations end in zeros. */
        uint64_t hash = (address >> 8) * UINT64_C(0x9e3779b97f4a7c15);
        uint64_t sets = witness->config.blocks / SPM_WITNESS_WAYS;

        return &witness->block[(hash >> 32) % sets * SPM_WITNESS_WAYS];
}

static struct spm_witnessed *find(const struct spm_witness *witness, struct spm_seen_life life)
{
        struct spm_witnessed *ways = ways_of(witness, life.address);

        for (unsigned int i = 0; i < SPM_WITNESS_WAYS; i++)
                if (ways[i].age && ways[i].life.address == life.address &&
                    ways[i].life.number == life.number)
                        return &ways[i];
        return NULL;
}

/* Where nothing is to be blamed, nothing is found. */
static const struct spm_witnessed *find_heard(const struct spm_witness *witness,
                                              struct spm_seen_life life)
{
        return spm_witness_is_silent(witness) ? NULL : find(witness, life);
}

/* An earlier allocation at the same address is the first to go. */
static struct spm_witnessed *make(struct spm_witness *witness, struct spm_seen_life life)
{
        struct spm_witnessed *ways = ways_of(witness, life.address), *block = ways;

        for (unsigned int i = 0; i < SPM_WITNESS_WAYS; i++) {
                if (ways[i].age && ways[i].life.address == life.address) {
                        block = &ways[i];
                        break;
                }
                if (ways[i].age < block->age)
                        block = &ways[i];
        }
        memset(block, 0, sizeof(*block));
        block->life = life;
        return block;
}

static struct spm_user *user_of(struct spm_witnessed *block, uint32_t seat)
{
        struct spm_user *oldest = block->user;

        for (unsigned int i = 0; i < SPM_WITNESS_USERS; i++) {
                struct spm_user *user = &block->user[i];

                if (user->age && user->seat == seat)
                        return user;
                if (user->age < oldest->age)
                        oldest = user;
        }
        memset(oldest, 0, sizeof(*oldest));
        oldest->seat = seat;
        return oldest;
}

/* what is told */

void spm_witness_alloc(struct spm_witness *witness, struct spm_actor actor,
                       struct spm_seen_life life, struct spm_spot spot)
{
        const struct spm_seat *seat = spm_witness_seat(witness, actor.stream);
        struct spm_witnessed *block;

        if (!seat)
                return;
        block = make(witness, life);
        block->age = ++witness->age;
        block->seat = (uint32_t)(seat - witness->seat);
        block->position = seat->position;
        block->spot = spot;
}

void spm_witness_touch(struct spm_witness *witness, struct spm_actor actor,
                       struct spm_seen_life life, const struct spm_touch *touch)
{
        const struct spm_seat *seat = spm_witness_seat(witness, actor.stream);
        struct spm_witnessed *block = find(witness, life);
        struct spm_user *user;

        if (!seat)
                return;
        if (!block)
                block = make(witness, life);
        block->age = ++witness->age;
        user = user_of(block, (uint32_t)(seat - witness->seat));
        user->age = witness->age;
        user->last[touch->kind] = (struct spm_last){
                .position = seat->position,
                .from = touch->from,
                .to = touch->to,
                .spot = touch->spot,
        };
}

/* what is asked */

/* What the one who asks is behind. */
struct reach {
        const struct spm_witness *witness;
        const struct spm_seat *seat; /* a stream; NULL: the host */
        uint32_t context;            /* of the host: it waits for that one; 0 is none */
};

/* Is it behind (@seat, @position)? */
static bool is_reached(const struct reach *reach, uint32_t seat, uint64_t position)
{
        const struct spm_witness *witness = reach->witness;
        const uint64_t *base;

        if (witness->host[seat] >= position)
                return true;
        if (reach->seat)
                return reach->seat->next[seat] >= position;
        for (uint32_t i = 0; reach->context && i < witness->seats; i++)
                if (witness->seat[i].context == reach->context &&
                    witness->seat[i].next[seat] >= position)
                        return true;
        base = reach->context ? spm_witness_base(witness, reach->context) : NULL;
        return base && base[seat] >= position;
}

static struct spm_verdict about_alloc(const struct reach *reach, const struct spm_witnessed *block,
                                      enum spm_hazard hazard)
{
        if (!block->position || is_reached(reach, block->seat, block->position))
                return NONE;
        return (struct spm_verdict){
                .hazard = hazard,
                .stream = reach->witness->seat[block->seat].stream,
                .is_alloc = true,
                .spot = block->spot,
        };
}

static bool overlaps(const struct spm_touch *touch, const struct spm_last *last)
{
        return touch->from < last->to && last->from < touch->to;
}

/* Can the order of the two matter? @touch is NULL for a free, which is in conflict with all. */
static bool conflicts(const struct spm_touch *touch, enum spm_touch_kind kind,
                      const struct spm_last *last)
{
        if (!touch)
                return true;
        if (touch->kind == SPM_TOUCH_ARGUMENT || kind == SPM_TOUCH_ARGUMENT)
                return false;
        return (touch->kind == SPM_TOUCH_WRITE || kind == SPM_TOUCH_WRITE) && overlaps(touch, last);
}

/* What is proven comes first. */
static const enum spm_touch_kind by_weight[] = {SPM_TOUCH_WRITE, SPM_TOUCH_READ,
                                                SPM_TOUCH_ARGUMENT};

static struct spm_verdict about_uses(const struct reach *reach, const struct spm_witnessed *block,
                                     const struct spm_touch *touch, enum spm_hazard hazard)
{
        for (unsigned int k = 0; k < SPM_TOUCH_KINDS; k++)
                for (unsigned int i = 0; i < SPM_WITNESS_USERS; i++) {
                        enum spm_touch_kind kind = by_weight[k];
                        const struct spm_user *user = &block->user[i];
                        const struct spm_last *last = &user->last[kind];

                        if (!last->position || !conflicts(touch, kind, last) ||
                            is_reached(reach, user->seat, last->position))
                                continue;
                        return (struct spm_verdict){
                                .hazard = hazard,
                                .stream = reach->witness->seat[user->seat].stream,
                                .kind = kind,
                                .spot = last->spot,
                        };
                }
        return NONE;
}

static struct spm_verdict look(const struct spm_witness *witness, struct spm_actor actor,
                               struct spm_seen_life life, const struct spm_touch *touch)
{
        const struct spm_witnessed *block = find_heard(witness, life);
        struct reach reach = {.witness = witness, .seat = spm_witness_seat(witness, actor.stream)};
        struct spm_verdict verdict;

        if (!block || !reach.seat)
                return NONE;
        verdict = about_alloc(&reach, block,
                              touch ? SPM_HAZARD_USE_BEFORE_ALLOC : SPM_HAZARD_FREE_BEFORE_ALLOC);
        if (verdict.hazard)
                return verdict;
        return about_uses(&reach, block, touch,
                          touch ? SPM_HAZARD_RACE : SPM_HAZARD_FREE_BEFORE_USE);
}

struct spm_verdict spm_witness_look(const struct spm_witness *witness, struct spm_actor actor,
                                    struct spm_seen_life life, const struct spm_touch *touch)
{
        return look(witness, actor, life, touch);
}

struct spm_verdict spm_witness_look_free(const struct spm_witness *witness, struct spm_actor actor,
                                         struct spm_seen_life life)
{
        return look(witness, actor, life, NULL);
}

struct spm_verdict spm_witness_look_sync_free(const struct spm_witness *witness, uint32_t context,
                                              struct spm_seen_life life)
{
        const struct spm_witnessed *block = find_heard(witness, life);
        struct reach reach = {.witness = witness, .context = context};

        return block ? about_uses(&reach, block, NULL, SPM_HAZARD_SYNC_FREE) : NONE;
}
