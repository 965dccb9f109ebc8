/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worker -- a thread that allocates, hands on, frees and disturbs
 */

#include "worker.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>

#include "ground.h"

#define SPINS 200
#define SURGE 96 /* blocks */

struct worker workers[WORKERS_MAX];
unsigned int worker_count = 16;

static uint32_t choose(struct worker *worker, uint32_t count)
{
        return ground_random(&worker->random) % count;
}

static struct worker *other(struct worker *worker)
{
        return &workers[choose(worker, worker_count)];
}

/* magazines */

void worker_end(struct hand *hand)
{
        if (hand->magazine)
                spm_magazine_end(ground.model, hand->magazine);
        hand->magazine = NULL;
}

/* With the lock. Half of the threads share four streams. */
void worker_renew(struct worker *worker, struct hand *hand)
{
        worker_end(hand);
        hand->place = choose(worker, worker->number % 2 ? 4 : GROUND_STREAMS);
        hand->stream = ground.streams[hand->place];
        hand->pool = ground.sites[ground.current[choose(worker, GROUND_POOLS)]].pool;
        if (spm_magazine_new(ground.model, hand->pool, hand->stream, &hand->magazine) != SPM_OK)
                ground_fail("no magazine");
}

/* blocks */

/* Mostly one of a few, so that magazines have it. */
static size_t choose_size(struct worker *worker)
{
        static const size_t sizes[] = {512, 700, 4 * KIB, 5000, 24 * KIB, 64 * KIB};
        uint32_t kind = choose(worker, 16);

        if (kind < 12)
                return sizes[kind % 6];
        return kind < 15 ? 1 + choose(worker, 32 * KIB) : 64 * KIB * (1 + choose(worker, 6));
}

static bool alloc_slowly(struct worker *worker, struct hand *hand, size_t size,
                         struct spm_allocation *block)
{
        struct spm_request request = {
                .pool = hand->pool,
                .stream = hand->stream,
                .size = size,
                .may_wait = true,
                .magazine = hand->magazine,
        };
        enum spm_status status;

        ground_lock();
        status = ground_alloc(&request, block);
        if (status == SPM_E_UNKNOWN || choose(worker, 64) == 0)
                worker_renew(worker, hand);
        else if (status != SPM_OK && status != SPM_E_OUT_OF_MEMORY)
                ground_fail("an allocation: %s", spm_status_name(status));
        ground_unlock();
        return status == SPM_OK;
}

void worker_alloc(struct worker *worker)
{
        struct hand *hand = &worker->hands[choose(worker, WORKER_HANDS)];
        struct held *held = &worker->held[worker->count];
        size_t size = choose_size(worker);

        held->stream = hand->place;
        if (spm_magazine_alloc(hand->magazine, size, 0, &held->block))
                worker->quick_allocs++;
        else if (!alloc_slowly(worker, hand, size, &held->block))
                return;
        if (held->block.size != size || held->block.reserved < size)
                ground_fail("%zu bytes asked for, %zu served", size, held->block.size);
        ground_take(held->block.address, held->block.reserved, worker->number);
        worker->count++;
}

static enum spm_status free_slowly(struct worker *worker, const struct held *held)
{
        enum spm_free_kind kind = choose(worker, 8) ? SPM_FREE_ASYNC : SPM_FREE_SYNC;
        unsigned int place = choose(worker, 4) ? held->stream : choose(worker, GROUND_STREAMS);
        struct spm_actions actions;
        enum spm_status status;

        ground_lock();
        status = spm_free(ground.model, held->block.address, held->block.generation, kind,
                          ground.streams[place], NULL, &actions);
        ground_perform(&actions, NULL);
        ground_unlock();
        return status;
}

/* The block is in nobody's name any more. */
static enum spm_status let_go(struct worker *worker, const struct held *held)
{
        struct spm_allocation freed;
        unsigned int i;

        for (i = 0; i < WORKER_HANDS; i++) {
                struct hand *hand = &worker->hands[i];

                if (hand->stream != held->block.stream && choose(worker, 8))
                        continue;
                if (!spm_magazine_free(hand->magazine, held->block.address, held->block.generation,
                                       &freed))
                        continue;
                if (freed.generation != held->block.generation || freed.size != held->block.size)
                        ground_fail("%" PRIx64 " was freed, and another", held->block.address);
                if (hand->stream != held->block.stream || hand->pool != held->block.pool)
                        ground_fail("a magazine took a block that is not for it");
                worker->quick_frees++;
                return SPM_OK;
        }
        return free_slowly(worker, held);
}

struct held worker_pick(struct worker *worker)
{
        unsigned int at = choose(worker, worker->count);
        struct held held = worker->held[at];

        worker->held[at] = worker->held[--worker->count];
        return held;
}

void worker_free(struct worker *worker, const struct held *held)
{
        enum spm_status status;

        ground_give(held->block.address, held->block.reserved, worker->number);
        status = let_go(worker, held);
        if (status != SPM_OK)
                ground_fail("%" PRIx64 " could not be freed: %s", held->block.address,
                            spm_status_name(status));
}

/* Whoever finds one in the way takes it along. */
static void hand_on(struct worker *worker)
{
        struct held *held = malloc(sizeof(*held));
        struct worker *to = other(worker);

        if (!held)
                return;
        *held = worker_pick(worker);
        ground_give(held->block.address, held->block.reserved, worker->number);
        ground_take(held->block.address, held->block.reserved, to->number);
        held = atomic_exchange(&to->mail[choose(worker, WORKER_MAIL)], held);
        if (!held)
                return;
        ground_give(held->block.address, held->block.reserved, to->number);
        ground_take(held->block.address, held->block.reserved, worker->number);
        worker_free(worker, held);
        free(held);
}

static void read_mail(struct worker *worker)
{
        struct held *held = atomic_exchange(&worker->mail[choose(worker, WORKER_MAIL)], NULL);

        if (!held)
                return;
        if (worker->count < WORKER_HELD && choose(worker, 2))
                worker->held[worker->count++] = *held;
        else
                worker_free(worker, held);
        free(held);
}

/* two at once */

static void fight(struct worker *worker, struct duel *duel)
{
        if (let_go(worker, &duel->held) == SPM_OK)
                atomic_fetch_add(&duel->wins, 1);
}

static void accept(struct worker *worker)
{
        struct duel *duel = atomic_exchange(&worker->challenge, NULL);

        if (!duel)
                return;
        atomic_store(&duel->taken, true);
        fight(worker, duel);
        atomic_store(&duel->done, true);
}

/* The address is asked for again by others while the second of the two is still on its way. */
static void challenge(struct worker *worker)
{
        struct worker *to = other(worker);
        struct duel duel = {.held = worker_pick(worker)};
        struct duel *expected = NULL;
        unsigned int spins;

        ground_give(duel.held.block.address, duel.held.block.reserved, worker->number);
        if (to == worker || !atomic_compare_exchange_strong(&to->challenge, &expected, &duel)) {
                fight(worker, &duel);
        } else {
                for (spins = 0; spins < SPINS && !atomic_load(&duel.taken); spins++)
                        sched_yield();
                fight(worker, &duel);
                expected = &duel;
                if (!atomic_compare_exchange_strong(&to->challenge, &expected, NULL))
                        while (!atomic_load(&duel.done))
                                sched_yield();
                worker->duels++;
        }
        if (atomic_load(&duel.wins) != 1)
                ground_fail("%" PRIx64 " was freed %u times", duel.held.block.address,
                            atomic_load(&duel.wins));
}

/* everything else */

static void look_up(struct worker *worker)
{
        const struct held *held = &worker->held[choose(worker, worker->count)];
        struct spm_allocation found;

        if (spm_find(ground.model, held->block.address + held->block.size - 1, &found) != SPM_OK ||
            found.generation != held->block.generation || found.size != held->block.size)
                ground_fail("%" PRIx64 " is not found", held->block.address);
}

void worker_check(void)
{
        char text[160] = "";

        if (!spm_check(ground.model, text, sizeof(text)))
                ground_fail("%s", text);
}

/* Raises the high marks, below which magazines may serve. */
static void surge(unsigned int pool, unsigned int stream)
{
        spm_pool id = ground.sites[ground.current[pool]].pool;
        uint64_t address[SURGE];
        unsigned int count = 0;

        while (count < SURGE) {
                struct spm_request request = {id, ground.streams[stream], 16 * KIB,
                                              .may_wait = true};
                struct spm_allocation block;

                if (ground_alloc(&request, &block) != SPM_OK)
                        break;
                ground_take(block.address, block.reserved, UINT32_MAX);
                address[count++] = block.address;
        }
        while (count) {
                struct spm_allocation freed;
                struct spm_actions actions;

                spm_find(ground.model, address[--count], &freed);
                ground_give(freed.address, freed.reserved, UINT32_MAX);
                spm_free(ground.model, freed.address, 0, SPM_FREE_ASYNC, ground.streams[stream],
                         NULL, &actions);
                ground_perform(&actions, NULL);
        }
}

static void chore(struct worker *worker)
{
        unsigned int stream = choose(worker, GROUND_STREAMS);
        unsigned int pool = choose(worker, GROUND_POOLS);
        struct spm_scope scope = {SPM_SCOPE_STREAM, ground.streams[stream]};
        spm_pool id = ground.sites[ground.current[pool]].pool;
        uint32_t kind = choose(worker, 64);

        if (kind < 3)
                ground_trim(pool);
        else if (kind < 6)
                ground_tick();
        else if (kind < 8)
                spm_reset_peaks(ground.model, id);
        else if (kind < 9)
                spm_pool_set_attribute(ground.model, id, SPM_ATTR_USED_MEM_HIGH, 0);
        else if (kind < 20)
                ground_synchronise(scope, kind % 2 ? SPM_SYNC_WAIT : SPM_SYNC_QUERY);
        else if (kind < 21)
                ground_synchronise((struct spm_scope){SPM_SCOPE_CONTEXT, choose(worker, 2)
                                                                                 ? ground.context
                                                                                 : ground.beside},
                                   SPM_SYNC_WAIT);
        else if (kind < 30)
                ground_record(stream);
        else if (kind < 32)
                ground_toggle_capture(stream);
        else if (kind < 34)
                ground_replace_stream(stream);
        else if (kind < 35)
                ground_replace_pool(pool);
        else if (kind < 37)
                worker_renew(worker, &worker->hands[choose(worker, WORKER_HANDS)]);
        else if (kind < 38)
                worker_check();
        else if (kind < 46)
                surge(pool, stream);
        else if (kind < 50)
                ground_toggle_blocking();
        else if (worker->count)
                look_up(worker);
        if (kind == 46)
                worker_check();
        ground_look(id);
}

void worker_step(struct worker *worker)
{
        uint32_t kind = choose(worker, 64);

        accept(worker);
        if (kind < 1) {
                ground_lock();
                chore(worker);
                ground_unlock();
        } else if (kind < 6) {
                read_mail(worker);
        } else if (!worker->count || (worker->count < WORKER_HELD && kind < 35)) {
                worker_alloc(worker);
        } else if (kind < 40) {
                hand_on(worker);
        } else if (kind < 44) {
                challenge(worker);
        } else {
                struct held held = worker_pick(worker);

                worker_free(worker, &held);
        }
}
