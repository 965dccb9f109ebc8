/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Oracle -- may these bytes be touched by this operation, now?
 *
 * The rule is G1 of memory reuse: a byte goes to a new owner only after every
 * access through the old one. An owner is a live allocation. When an operation is
 * enqueued, each range it touches is claimed in the name of the bytes' owner at
 * that moment; when an operation starts, no operation of an older owner of any of
 * its bytes may be unfinished. Reads count: the old owner of a block that is
 * still being read did not give it up in time.
 *
 * An owner that is gone and has no unfinished claim is forgotten, because nobody
 * can claim in its name any more. So the dead ones that must be searched are few.
 *
 * There are two levels, which are never compared with each other: under a
 * suballocating pool one allocation of the driver holds many of the program.
 */

#include "operation.h"
#include "control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEVELS  2
#define HISTORY 8

/* One access, as it is told when the oracle fires. */
struct access {
        const char *name;
        uint64_t number;
        uint64_t stream;
        struct sim_range range;
        uint64_t enqueued_ns, start_ns, end_ns;
        enum sim_operation_state state;
};

struct owner {
        enum sim_level level;
        uint64_t base;
        size_t bytes;
        const char *what;
        uint64_t born; /* owners are ordered by this */
        bool gone;
        size_t unfinished;        /* claims */
        struct sim_claim *claims; /* the unfinished ones */
        struct access history[HISTORY];
        size_t accesses;    /* so far; the newest is history[(accesses - 1) % HISTORY] */
        struct owner *next; /* among those gone */
};

struct sim_claim {
        struct sim_claim *next_of_operation;
        struct sim_claim *next_of_owner;
        struct sim_claim **place_of_owner; /* what points to it there */
        struct sim_operation *operation;
        struct owner *owner;
        struct sim_range range; /* the part that this owner owns */
        size_t history;         /* its place in the owner's history, counted from the first */
};

/* Guarded by: sim_mutex. Live owners by address; those gone with claims left, in no order. */
static struct {
        struct owner **live;
        size_t count;
        struct owner *gone;
} levels[LEVELS];
static uint64_t births;
static uint64_t judged;

/* The first live owner that ends behind the address. */
static size_t find(enum sim_level level, uint64_t address)
{
        size_t low = 0, high = levels[level].count;

        while (low < high) {
                size_t middle = (low + high) / 2;
                const struct owner *owner = levels[level].live[middle];

                if (owner->base + owner->bytes <= address)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* ---- what is printed ---- */

static const char *state_name(enum sim_operation_state state)
{
        static const char *const names[] = {"waiting", "running", "done"};

        return names[state];
}

static void print_access(const struct access *access)
{
        fprintf(stderr, "sim:     #%llu %s on stream %llu, %s %#llx + %zu, enqueued %llu ns",
                (unsigned long long)access->number, access->name,
                (unsigned long long)access->stream,
                access->range.access & SIM_WRITE ? "writes" : "reads",
                (unsigned long long)access->range.address, access->range.bytes,
                (unsigned long long)access->enqueued_ns);
        if (access->state != SIM_OPERATION_WAITING)
                fprintf(stderr, ", started %llu ns", (unsigned long long)access->start_ns);
        if (access->state == SIM_OPERATION_DONE)
                fprintf(stderr, ", ended %llu ns", (unsigned long long)access->end_ns);
        fprintf(stderr, ", %s\n", state_name(access->state));
}

static void print_owner(const char *role, const struct owner *owner)
{
        size_t first = owner->accesses > HISTORY ? owner->accesses - HISTORY : 0;

        fprintf(stderr, "sim:   %s owner: %s, %#llx + %zu, the %llu. owner%s; its accesses:\n",
                role, owner->what, (unsigned long long)owner->base, owner->bytes,
                (unsigned long long)owner->born, owner->gone ? ", freed" : ", alive");
        for (size_t i = first; i < owner->accesses; i++)
                print_access(&owner->history[i % HISTORY]);
}

/* ---- owners ---- */

static void forget_if_done(struct owner *owner)
{
        struct owner **place = &levels[owner->level].gone;

        if (!owner->gone || owner->unfinished)
                return;
        while (*place != owner)
                place = &(*place)->next;
        *place = owner->next;
        free(owner);
}

void sim_owner_begin(enum sim_level level, uint64_t address, size_t bytes, const char *what)
{
        size_t i = find(level, address);
        struct owner *owner;

        if (!bytes)
                return;
        if (i < levels[level].count && levels[level].live[i]->base < address + bytes) {
                print_owner("present", levels[level].live[i]);
                sim_abort("oracle: %s at %#llx + %zu begins inside a living one", what,
                          (unsigned long long)address, bytes);
        }
        owner = calloc(1, sizeof(*owner));
        levels[level].live =
                realloc(levels[level].live, (levels[level].count + 1) * sizeof(struct owner *));
        if (!owner || !levels[level].live)
                sim_abort("out of host memory");
        *owner = (struct owner){
                .level = level, .base = address, .bytes = bytes, .what = what, .born = ++births};
        memmove(&levels[level].live[i + 1], &levels[level].live[i],
                (levels[level].count - i) * sizeof(struct owner *));
        levels[level].live[i] = owner;
        levels[level].count++;
}

void sim_owner_end(enum sim_level level, uint64_t address)
{
        size_t i = find(level, address);
        struct owner *owner;

        if (i == levels[level].count || levels[level].live[i]->base != address)
                return;
        owner = levels[level].live[i];
        levels[level].count--;
        memmove(&levels[level].live[i], &levels[level].live[i + 1],
                (levels[level].count - i) * sizeof(struct owner *));
        owner->gone = true;
        owner->next = levels[level].gone;
        levels[level].gone = owner;
        forget_if_done(owner);
}

/* ---- claims ---- */

static void note(struct sim_claim *claim)
{
        const struct sim_operation *operation = claim->operation;

        /* Pushed out of a full history by newer accesses. */
        if (claim->owner->accesses - claim->history > HISTORY)
                return;
        claim->owner->history[claim->history % HISTORY] = (struct access){
                .name = operation->work.name,
                .number = operation->number,
                .stream = operation->stream,
                .range = claim->range,
                .enqueued_ns = operation->enqueued_ns,
                .start_ns = operation->start_ns,
                .end_ns = operation->end_ns,
                .state = operation->state,
        };
}

static void claim_part(struct sim_operation *operation, struct owner *owner,
                       const struct sim_range *range)
{
        struct sim_claim *claim = calloc(1, sizeof(*claim));
        uint64_t end = range->address + range->bytes;
        uint64_t owner_end = owner->base + owner->bytes;

        if (!claim)
                sim_abort("out of host memory");
        claim->operation = operation;
        claim->owner = owner;
        claim->range.address = range->address > owner->base ? range->address : owner->base;
        claim->range.bytes = (end < owner_end ? end : owner_end) - claim->range.address;
        claim->range.access = range->access;
        claim->history = owner->accesses++;
        claim->next_of_operation = operation->claims;
        operation->claims = claim;
        claim->next_of_owner = owner->claims;
        claim->place_of_owner = &owner->claims;
        if (owner->claims)
                owner->claims->place_of_owner = &claim->next_of_owner;
        owner->claims = claim;
        owner->unfinished++;
        note(claim);
}

static bool claim_range(enum sim_level level, struct sim_operation *operation,
                        const struct sim_range *range)
{
        size_t i = find(level, range->address);
        bool claimed = false;

        for (; i < levels[level].count; i++) {
                struct owner *owner = levels[level].live[i];

                if (owner->base >= range->address + range->bytes)
                        break;
                claim_part(operation, owner, range);
                claimed = true;
        }
        return claimed;
}

void sim_oracle_claim(struct sim_operation *operation)
{
        for (unsigned int i = 0; i < operation->work.ranges; i++) {
                const struct sim_range *range = &operation->work.range[i];

                if (!claim_range(SIM_LEVEL_PROGRAM, operation, range))
                        claim_range(SIM_LEVEL_DRIVER, operation, range);
        }
}

static void judge(const struct sim_claim *claim)
{
        struct owner *old = levels[claim->owner->level].gone;

        judged++;
        for (; old; old = old->next) {
                const struct sim_claim *other = old->claims;

                if (old->born >= claim->owner->born)
                        continue;
                while (other && !sim_range_overlap(&claim->range, &other->range))
                        other = other->next_of_owner;
                if (!other || other->operation == claim->operation)
                        continue;
                print_owner("old", old);
                print_owner("new", claim->owner);
                sim_abort("oracle: #%llu %s starts while #%llu %s of the old owner of its bytes "
                          "is unfinished",
                          (unsigned long long)claim->operation->number, claim->operation->work.name,
                          (unsigned long long)other->operation->number,
                          other->operation->work.name);
        }
}

void sim_oracle_start(struct sim_operation *operation)
{
        for (struct sim_claim *claim = operation->claims; claim; claim = claim->next_of_operation) {
                note(claim);
                judge(claim);
        }
}

void sim_oracle_finish(struct sim_operation *operation)
{
        while (operation->claims) {
                struct sim_claim *claim = operation->claims;

                operation->claims = claim->next_of_operation;
                *claim->place_of_owner = claim->next_of_owner;
                if (claim->next_of_owner)
                        claim->next_of_owner->place_of_owner = claim->place_of_owner;
                claim->owner->unfinished--;
                note(claim);
                forget_if_done(claim->owner);
                free(claim);
        }
}

/* ---- the program's side ---- */

void sim_oracle_alloc(uint64_t address, size_t bytes)
{
        pthread_mutex_lock(&sim_mutex);
        sim_owner_begin(SIM_LEVEL_PROGRAM, address, bytes, "the program's block");
        pthread_mutex_unlock(&sim_mutex);
}

void sim_oracle_free(uint64_t address)
{
        pthread_mutex_lock(&sim_mutex);
        sim_owner_end(SIM_LEVEL_PROGRAM, address);
        pthread_mutex_unlock(&sim_mutex);
}

uint64_t sim_oracle_judged(void)
{
        uint64_t count;

        pthread_mutex_lock(&sim_mutex);
        count = judged;
        pthread_mutex_unlock(&sim_mutex);
        return count;
}
