/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handshake -- can the owner of a magazine and whoever recalls it be inside together?
 *
 * The owner says that it is inside, then looks at the flag (enter() in
 * magazine.c); the other raises the flag, then looks whether the owner is
 * inside (seize()). Of the orders that their four steps can have,
 *
 *   inside, looks at the flag | flag, looks inside   the owner goes in, the other does not
 *   flag, looks inside | inside, looks at the flag   the other goes in, the owner does not
 *   all others                                       at least one sees the other, so at most
 *                                                    one goes in; if none does, the owner comes
 *                                                    with the lock, and the other lowers the flag
 *                                                    or looks again
 *
 * provided that what one thread writes is seen by the other before it looks.
 * It is not on hardware that keeps writes in a buffer (x86 does, and loads
 * overtake them): then both may look first, in effect, and both go in. So the
 * owner's write is an exchange, which empties its buffer; or it is a plain
 * store, and the other makes all buffers be emptied after raising the flag
 * (struct spm_config, fence).
 *
 * This program walks every order of two threads that do this a few times, on
 * memory without and with buffers (sequential consistency, and total store
 * order), with leaving, letting go and the lock; and so for the protocol with
 * each of its parts left out or turned round, which must be found broken. A
 * figure that both change stands for what the magazine holds: it has to be
 * right in the end, so going out and letting go are covered too.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum place { INSIDE, FLAG, LOCK, FIGURE, PLACES };

#define BUFFER 6
#define OPS    3 /* of each thread */

/* What is done in which order; a row of steps is a program. */
enum step {
        SAY_INSIDE,      /* a store */
        EXCHANGE_INSIDE, /* with an empty buffer after it */
        LOOK_AT_FLAG,    /* up: leave, and go round by the lock */
        READ_FIGURE,
        WRITE_FIGURE,
        LEAVE,
        TAKE_LOCK,
        RAISE_FLAG,  /* with an empty buffer after it, as a sequentially consistent store */
        FENCE,       /* empties the other's buffer */
        LOOK_INSIDE, /* somebody is: no further than LOWER_FLAG */
        LOWER_FLAG,
        GIVE_LOCK,
        END
};

struct protocol {
        const char *name;
        bool is_buffered;
        bool is_sound;
        enum step owner[6];
        enum step other[9];
};

#define OWNER(...)                                                                                 \
        {                                                                                          \
                __VA_ARGS__, END                                                                   \
        }
#define INSIDE_WORK READ_FIGURE, WRITE_FIGURE
#define WITH_FENCE  OWNER(SAY_INSIDE, LOOK_AT_FLAG, INSIDE_WORK, LEAVE)
#define WITH_SWAP   OWNER(EXCHANGE_INSIDE, LOOK_AT_FLAG, INSIDE_WORK, LEAVE)
#define OTHER(...)                                                                                 \
        {                                                                                          \
                TAKE_LOCK, __VA_ARGS__, INSIDE_WORK, LOWER_FLAG, GIVE_LOCK, END                    \
        }

static const struct protocol protocols[] = {
        {"an exchange", true, true, WITH_SWAP, OTHER(RAISE_FLAG, LOOK_INSIDE)},
        {"a fence", true, true, WITH_FENCE, OTHER(RAISE_FLAG, FENCE, LOOK_INSIDE)},
        {"neither, without buffers", false, true, WITH_FENCE, OTHER(RAISE_FLAG, LOOK_INSIDE)},
        {"neither, with buffers", true, false, WITH_FENCE, OTHER(RAISE_FLAG, LOOK_INSIDE)},
        {"a fence before the flag", true, false, WITH_FENCE, OTHER(FENCE, RAISE_FLAG, LOOK_INSIDE)},
        {"a fence after the look", true, false, WITH_FENCE, OTHER(RAISE_FLAG, LOOK_INSIDE, FENCE)},
        {"the owner looks first", false, false,
         OWNER(LOOK_AT_FLAG, EXCHANGE_INSIDE, INSIDE_WORK, LEAVE), OTHER(RAISE_FLAG, LOOK_INSIDE)},
        {"the other looks first", false, false, WITH_SWAP, OTHER(LOOK_INSIDE, RAISE_FLAG)},
        {"the owner leaves too early", false, false,
         OWNER(EXCHANGE_INSIDE, LOOK_AT_FLAG, READ_FIGURE, LEAVE, WRITE_FIGURE),
         OTHER(RAISE_FLAG, LOOK_INSIDE)},
        {"the flag goes down too early",
         false,
         false,
         WITH_SWAP,
         {TAKE_LOCK, RAISE_FLAG, LOOK_INSIDE, READ_FIGURE, LOWER_FLAG, WRITE_FIGURE, GIVE_LOCK,
          END}},
        {"nobody looks inside", false, false, WITH_SWAP, OTHER(RAISE_FLAG)},
};

/* What the owner does with the lock after it has seen the flag. */
static const enum step visit[] = {LEAVE,      TAKE_LOCK, READ_FIGURE, WRITE_FIGURE,
                                  LOWER_FLAG, GIVE_LOCK, END};

struct write {
        uint8_t place;
        uint8_t value;
};

struct thread {
        uint8_t at;       /* in its program */
        bool is_visiting; /* with the lock */
        uint8_t ops;      /* done */
        uint8_t changes;  /* made to the figure */
        uint8_t read;
        uint8_t buffered;
        struct write buffer[BUFFER];
};

struct state {
        uint8_t memory[PLACES];
        struct thread threads[2]; /* the owner, the other */
};

/* states seen */

#define SLOTS (1u << 20)

static struct state *seen;
static bool *used;
static size_t states;

static uint32_t hash(const struct state *state)
{
        const unsigned char *bytes = (const unsigned char *)state;
        uint32_t hash = 2166136261u;
        size_t i;

        for (i = 0; i < sizeof(*state); i++)
                hash = (hash ^ bytes[i]) * 16777619u;
        return hash;
}

/* Return: false if it was there. */
static bool add(const struct state *state)
{
        uint32_t at = hash(state) % SLOTS;

        for (; used[at]; at = (at + 1) % SLOTS)
                if (!memcmp(&seen[at], state, sizeof(*state)))
                        return false;
        if (++states > SLOTS / 2) {
                fputs("handshake: more states than expected\n", stderr);
                exit(1);
        }
        used[at] = true;
        seen[at] = *state;
        return true;
}

/* memory */

static void drain_one(struct state *state, struct thread *thread)
{
        state->memory[thread->buffer[0].place] = thread->buffer[0].value;
        thread->buffered--;
        memmove(thread->buffer, thread->buffer + 1, thread->buffered * sizeof(struct write));
        thread->buffer[thread->buffered] = (struct write){0};
}

static void drain(struct state *state, struct thread *thread)
{
        while (thread->buffered)
                drain_one(state, thread);
}

static void store(const struct protocol *protocol, struct state *state, struct thread *thread,
                  enum place place, uint8_t value)
{
        thread->buffer[thread->buffered++] = (struct write){(uint8_t)place, value};
        if (!protocol->is_buffered || thread->buffered == BUFFER)
                drain(state, thread);
}

/* A thread sees its own writes. */
static uint8_t load(const struct state *state, const struct thread *thread, enum place place)
{
        unsigned int i;

        for (i = thread->buffered; i--;)
                if (thread->buffer[i].place == place)
                        return thread->buffer[i].value;
        return state->memory[place];
}

/* steps */

static const enum step *program(const struct protocol *protocol, const struct state *state,
                                const struct thread *thread)
{
        if (thread->is_visiting)
                return visit;
        return thread == &state->threads[0] ? protocol->owner : protocol->other;
}

/* An operation ends, and the next begins. */
static void next(struct thread *thread)
{
        thread->ops++;
        thread->at = 0;
        thread->is_visiting = false;
        thread->read = 0;
}

static void give_up(const enum step *steps, struct thread *thread)
{
        while (steps[thread->at] != LOWER_FLAG)
                thread->at++;
}

/* One step of a thread that can make one. */
static void make(const struct protocol *protocol, struct state *state, struct thread *thread)
{
        const enum step *steps = program(protocol, state, thread);
        enum step step = steps[thread->at++];

        if (step == SAY_INSIDE || step == EXCHANGE_INSIDE) {
                store(protocol, state, thread, INSIDE, 1);
        } else if (step == LEAVE) {
                store(protocol, state, thread, INSIDE, 0);
        } else if (step == LOOK_AT_FLAG && load(state, thread, FLAG)) {
                thread->is_visiting = true;
                thread->at = 0;
        } else if (step == LOOK_INSIDE && load(state, thread, INSIDE)) {
                give_up(steps, thread);
        } else if (step == READ_FIGURE) {
                thread->read = load(state, thread, FIGURE);
        } else if (step == WRITE_FIGURE) {
                store(protocol, state, thread, FIGURE, (uint8_t)(thread->read + 1));
                thread->changes++;
        } else if (step == RAISE_FLAG) {
                store(protocol, state, thread, FLAG, 1);
        } else if (step == LOWER_FLAG) {
                store(protocol, state, thread, FLAG, 0);
        } else if (step == TAKE_LOCK) {
                state->memory[LOCK] = 1;
        } else if (step == FENCE) {
                drain(state, &state->threads[0]);
        } else if (step == GIVE_LOCK) {
                store(protocol, state, thread, LOCK, 0);
        }
        if (step == EXCHANGE_INSIDE || step == RAISE_FLAG || step == TAKE_LOCK || step == FENCE)
                drain(state, thread);
        if (program(protocol, state, thread)[thread->at] == END)
                next(thread);
}

static bool is_able(const struct protocol *protocol, const struct state *state,
                    const struct thread *thread)
{
        if (thread->ops == OPS)
                return false;
        return program(protocol, state, thread)[thread->at] != TAKE_LOCK || !state->memory[LOCK];
}

/* Return: false if something can go wrong from here. */
static bool walk(const struct protocol *protocol, const struct state *state)
{
        unsigned int i;
        bool is_well = true;
        bool is_over = true;

        if (!add(state))
                return true;
        for (i = 0; i < 2 && is_well; i++) {
                struct state after = *state;

                if (is_able(protocol, state, &state->threads[i])) {
                        is_over = false;
                        make(protocol, &after, &after.threads[i]);
                        is_well = walk(protocol, &after);
                }
                if (is_well && state->threads[i].buffered) {
                        is_over = false;
                        after = *state;
                        drain_one(&after, &after.threads[i]);
                        is_well = walk(protocol, &after);
                }
        }
        if (!is_over)
                return is_well;
        return state->memory[FIGURE] == state->threads[0].changes + state->threads[1].changes &&
               state->threads[0].ops == OPS && state->threads[1].ops == OPS;
}

int main(void)
{
        bool is_well = true;
        size_t i;

        seen = calloc(SLOTS, sizeof(*seen));
        used = calloc(SLOTS, sizeof(*used));
        if (!seen || !used)
                return 1;
        for (i = 0; i < sizeof(protocols) / sizeof(*protocols); i++) {
                struct state start;
                bool is_sound;

                memset(&start, 0, sizeof(start));
                memset(used, 0, SLOTS * sizeof(*used));
                states = 0;
                is_sound = walk(&protocols[i], &start);
                printf("%s: %s, %zu states\n", protocols[i].name, is_sound ? "sound" : "broken",
                       states);
                is_well &= is_sound == protocols[i].is_sound;
        }
        free(seen);
        free(used);
        return !is_well;
}
