/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Alone -- the same calls with magazines and without must give the same figures
 *
 *   alone [steps] [seed]
 *
 * One thread, two models. Both are told the same; one of them has magazines,
 * which come and go. After every step, what does not depend on where blocks are
 * has to be equal. What does depend on it is compared with what is known of the
 * addresses: what was served before is reused, and every byte is counted once. Frees are of all
 * kinds, also such that name no stream or another one, and come before a magazine has told what it
 * has served.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "side.h"

static struct side sides[2] = {{.has_magazines = false}, {.has_magazines = true}};
static uint64_t random_state = 1;
static uint64_t step;
static uint64_t now;
static bool is_capturing;

static uint32_t choose(uint32_t count)
{
        random_state ^= random_state << 13;
        random_state ^= random_state >> 7;
        random_state ^= random_state << 17;
        return (uint32_t)(random_state >> 32) % count;
}

static void fail(const char *what, uint64_t a, uint64_t b)
{
        fprintf(stderr, "alone: at step %" PRIu64 "\n", step);
        side_fail(what, a, b);
}

/* a step */

static size_t choose_size(void)
{
        static const size_t sizes[] = {1, 512, 700, 4 * KIB, 5000, 24 * KIB, 64 * KIB, 300 * KIB};
        uint32_t kind = choose(32);

        if (kind < 24)
                return sizes[kind % 8];
        if (kind < 30)
                return 1 + choose(40 * KIB);
        /* What is a little smaller takes a MiB where it lies among large blocks. */
        return MIB + choose(5 * MIB);
}

static void act_rarely(struct side *side, uint32_t kind, unsigned int a, unsigned int b)
{
        if (kind < 6)
                side_trim(side);
        else if (kind < 40)
                side_tick(side, now);
        else if (kind < 44)
                side_must(spm_reset_peaks(side->model, side->pool), "a reset");
        else if (kind < 46)
                side_must(
                        spm_pool_set_attribute(side->model, side->pool, SPM_ATTR_USED_MEM_HIGH, 0),
                        "a reset");
        else if (kind < 100)
                side_observe(side, (struct spm_scope){SPM_SCOPE_STREAM, side->streams[a]},
                             kind % 2 ? SPM_SYNC_WAIT : SPM_SYNC_QUERY);
        else if (kind < 104)
                side_observe(side, (struct spm_scope){SPM_SCOPE_CONTEXT, side->context},
                             SPM_SYNC_WAIT);
        else if (kind < 150)
                side_order(side, a, b);
        else if (kind < 154)
                side_replace(side, a ? a : 1);
        else if (kind < 160)
                side_capture(side, 2, is_capturing);
        else if (kind < 200)
                side_magazine(side, 1 + a % (SIDE_STREAMS - 1), kind % 4 != 0);
}

/* For both sides the same. */
static void take_step(void)
{
        uint32_t kind = choose(1024);
        unsigned int place = choose(SIDE_LIVE);
        unsigned int a = choose(SIDE_STREAMS), b = choose(SIDE_STREAMS);
        uint32_t how = choose(32);
        size_t size = choose_size();
        unsigned int i;

        /* Mostly by whoever can; the others are about as frequent. */
        how = how < 26 ? SIDE_FREE : 1 + how % SIDE_UNDO;
        now += kind >= 6 && kind < 40 ? SIDE_DECAY / 20 : 0;
        if (kind >= 154 && kind < 160)
                is_capturing = !is_capturing;
        if (is_capturing && kind >= 150 && kind < 154)
                return;
        for (i = 0; i < 2; i++) {
                struct side *side = &sides[i];

                if (kind < 200)
                        act_rarely(side, kind, a, b);
                else if (side->live[place].address)
                        side_end(side, place, a, (enum side_end)how);
                else
                        side_alloc(side, place, a, size);
        }
}

/* comparison */

static void compare(void)
{
        struct spm_stats stats[2];
        unsigned int i;

        for (i = 0; i < 2; i++) {
                const struct spm_stats *s = &stats[i];

                side_must(spm_stats(sides[i].model, sides[i].pool, &stats[i]), "figures");
                if (s->rounded_current + s->pending_bytes + s->ready_bytes + s->sealed_bytes !=
                    s->reserved_current)
                        fail("a byte is not counted once", i, s->reserved_current);
                if (s->reserved_current != sides[i].reserved)
                        fail("reserved", s->reserved_current, sides[i].reserved);
                if (s->hits != sides[i].reused)
                        fail("hits", s->hits, sides[i].reused);
        }
#define EQUAL(figure)                                                                              \
        if (stats[0].figure != stats[1].figure)                                                    \
        fail(#figure, stats[0].figure, stats[1].figure)
        EQUAL(used_current);
        EQUAL(used_high);
        EQUAL(live_blocks);
        EQUAL(live_blocks_high);
        EQUAL(rounded_current);
        EQUAL(allocs);
        EQUAL(frees);
        EQUAL(undone);
#undef EQUAL
}

static void check(void)
{
        unsigned int i;

        for (i = 0; i < 2; i++) {
                char text[160] = "";

                if (!spm_check(sides[i].model, text, sizeof(text)))
                        fail(text, i, 0);
        }
}

int main(int count, char **arguments)
{
        uint64_t steps = count > 1 ? strtoull(arguments[1], NULL, 10) : 1000000;
        unsigned int i;

        if (count > 2)
                random_state = strtoull(arguments[2], NULL, 10);
        for (i = 0; i < 2; i++)
                side_begin(&sides[i]);
        for (step = 0; step < steps; step++) {
                take_step();
                compare();
                if (step % 256 == 0)
                        check();
        }
        printf("%" PRIu64 " steps, %" PRIu64 " of them by a magazine alone\n", steps,
               sides[1].quick);
        for (i = 0; i < 2; i++)
                spm_model_free(sides[i].model);
        return sides[1].quick < steps / 10;
}
