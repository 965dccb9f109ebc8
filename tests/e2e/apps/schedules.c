/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schedules -- very many short programs, each correct, each with streams of its own
 *
 *   schedules [--seed N] [--count N]
 *
 * Where random.c goes on for long with a few streams, this begins again and again,
 * because the rules that say when memory may be had at once (R1) are about how a
 * context's streams come and go: alone for a while, then with a second one, waited
 * for, destroyed with work pending, seen by a capture, by another context, by a
 * peer. Some schedules are played in one context, then it is another one's turn;
 * what happens to it on the way is drawn from the seed like everything else.
 *
 * A block is used where its last use is known to come before, by stream order, by
 * an event, or by the order of the legacy stream, and is freed by every call that
 * may free it. In virtual time nothing ends before somebody waits, so nearly every
 * use is still pending when the next one is submitted. The oracle of the simulated
 * driver judges; the last line tells how much it saw. Equal arguments do the same.
 */
#include "schedules.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct run run;

/* A capture that another thread begins and ends, while this one goes on. */
static pthread_barrier_t barrier;

static void *capture_beside(void *unused)
{
        CUstream own;
        CUgraph graph;

        (void)unused;
        CU_OK(cu.CtxSetCurrent(run.helper_context));
        CU_OK(cu.StreamCreate(&own, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.StreamBeginCapture(own, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        CU_OK(cu.StreamEndCapture(own, &graph));
        CU_OK(cu.GraphDestroy(graph));
        CU_OK(cu.StreamDestroy(own));
        return NULL;
}

/* streams */

/* Its blocks are the legacy stream's; what was freed on it is pending. */
static void destroy(struct where at)
{
        CUstream stream = stream_at(at);

        for (int i = 0; i < BLOCKS; i++)
                if (run.blocks[i].p && is_same(run.blocks[i].last, at))
                        give(&run.blocks[i]);
        (void)stream_at(at);
        run.places[at.place].streams[at.stream] = NULL;
        run.places[at.place].is_cast[at.stream] = false;
        CU_OK(cu.StreamDestroy(stream));
        run.destroyed++;
}

static void create(struct where at)
{
        bool blocks = pick(3) == 0;

        (void)stream_at(at);
        CU_OK(cu.StreamCreate(&run.places[at.place].streams[at.stream],
                              blocks ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
        run.places[at.place].is_blocking[at.stream] = blocks;
        run.places[at.place].is_cast[at.stream] = true;
}

/* Somebody else gets a part, or leaves the stage. */
static void recast(void)
{
        struct where at = {pick(2) ? 0 : (int)pick(PLACES), (int)pick(STREAMS)};

        /* Elsewhere there is mostly nothing but the legacy stream. */
        if (pick(at.place ? 5 : 2))
                at.stream = 0;

        if (!run.places[at.place].context || (!at.place && at.stream == OWN))
                return;
        if (at.stream < OWN)
                run.places[at.place].is_cast[at.stream] = pick(3) != 0;
        else if (run.places[at.place].streams[at.stream])
                destroy(at);
        else
                create(at);
}

/* places */

static void open_place(int i, int device)
{
        struct place *place = &run.places[i];
        CUcontext popped;

        memset(place, 0, sizeof(*place));
        CU_OK(cu.CtxCreate(&place->context, 0, device));
        cu_load_kernels(&place->kernels);
        place->streams[0] = CU_STREAM_LEGACY;
        place->streams[1] = CU_STREAM_PER_THREAD;
        place->is_blocking[0] = place->is_blocking[1] = true;
        CU_OK(cu.CtxPopCurrent(&popped));
}

static void wait_for(struct place *place)
{
        CU_OK(cu.CtxSetCurrent(place->context));
        CU_OK(cu.CtxSynchronize());
}

static void close_place(struct place *place)
{
        CU_OK(cu.CtxSetCurrent(place->context));
        if (place->spare)
                CU_OK(cu.MemFreeAsync(place->spare, CU_STREAM_LEGACY));
        CU_OK(cu.CtxDestroy(place->context));
        memset(place, 0, sizeof(*place));
}

static void meet_peer(void)
{
        CU_OK(cu.CtxSetCurrent(run.places[2].context));
        CU_OK(cu.CtxEnablePeerAccess(run.places[0].context, 0));
        CU_OK(cu.CtxSetCurrent(run.places[0].context));
        CU_OK(cu.CtxEnablePeerAccess(run.places[2].context, 0));
        run.peers = true;
}

static void widen(void)
{
        if (!run.places[1].context && pick(2))
                open_place(1, 0);
        else if (!run.places[2].context)
                open_place(2, 1);
        else if (!run.peers)
                meet_peer();
}

/* schedules */

static void wait(struct where at)
{
        switch (pick(run.captures ? 3 : 4)) {
        case 0:
                (void)cu.StreamQuery(stream_at(at));
                break;
        case 3:
                wait_for(&run.places[at.place]);
                break;
        default:
                CU_OK(cu.StreamSynchronize(stream_at(at)));
        }
}

/* Freed, allocated again, and used by somebody else: what reuse has to survive. */
static void hand_on(struct block *block, struct where at, bool alone)
{
        give(block);
        take(block, at);
        if (!alone && pick(2))
                recast();
        at = alone ? at : any_stream();
        if (block->p && can_reach(at, block))
                use(block, at);
}

static void step(bool alone)
{
        struct where at = {0, OWN};
        struct block *block = &run.blocks[pick(BLOCKS)];
        unsigned chance = pick(1000);

        if (!alone)
                at = any_stream();
        if (chance < 100 && !alone)
                recast();
        else if (chance < 150)
                wait(at);
        else if (!block->p) {
                take(block, at);
                if (pick(3))
                        use(block, at);
        } else if (chance < 320)
                hand_on(block, at, alone);
        else if (chance < 460)
                give(block);
        else if (!can_reach(at, block))
                set_from_afar(block, at);
        else if (chance < 463)
                use_in_graph(block, at);
        else if (chance < 500 && !alone)
                use_at_once(block, at);
        else
                use(block, at);
}

static void play(bool may_widen)
{
        unsigned steps = 20 + pick(40), alone = pick(4) ? pick(steps) : 0;
        pthread_t helper;

        if (may_widen && !pick(3))
                widen();
        create((struct where){0, OWN});
        run.helper_context = run.places[0].context;
        run.captures = !pick(100);
        if (run.captures && pthread_create(&helper, NULL, capture_beside, NULL))
                abort();
        if (run.captures)
                pthread_barrier_wait(&barrier);
        for (unsigned i = 0; i < steps; i++)
                step(i < alone);
        if (run.captures) {
                pthread_barrier_wait(&barrier);
                pthread_join(helper, NULL);
                run.captures = false;
        }
        for (int i = 0; i < BLOCKS; i++)
                if (run.blocks[i].p)
                        give(&run.blocks[i]);
        for (int i = 0; i < PLACES; i++)
                for (int j = 0; j < STREAMS; j++)
                        if (j < OWN)
                                run.places[i].is_cast[j] = false;
                        else if (run.places[i].streams[j])
                                destroy((struct where){i, j});
        /* Only now and then does the pool look again who has work. */
        for (unsigned i = pick(6); i; i--)
                wait_for(&run.places[0]);
}

static void play_in_one_context(uint64_t count)
{
        bool may_widen = pick(2);

        open_place(0, 0);
        CU_OK(cu.CtxSetCurrent(run.places[0].context));
        run.mismatches = cu_counter(1);
        for (uint64_t i = 0; i < count; i++, run.schedule++)
                play(may_widen);
        for (int i = PLACES - 1; i >= 0; i--)
                if (run.places[i].context)
                        wait_for(&run.places[i]);
        run.wrong += *run.mismatches;
        CU_OK(cu.MemFreeHost(run.mismatches));
        for (int i = PLACES - 1; i >= 0; i--)
                if (run.places[i].context)
                        close_place(&run.places[i]);
        run.peers = false;
}

/* The oracle has said what is wrong; this says where. */
static void tell(int number)
{
        fprintf(stderr, "seed %llu: in schedule %llu\n", (unsigned long long)run.seed,
                (unsigned long long)run.schedule);
        signal(number, SIG_DFL);
        raise(number);
}

int main(int argc, char **argv)
{
        uint64_t (*judged)(void), count = 10000;

        run.seed = 1;
        for (int i = 1; i + 1 < argc; i += 2)
                *(strcmp(argv[i], "--seed") ? &count : &run.seed) = strtoull(argv[i + 1], NULL, 0);
        run.random = run.seed * 0x9e3779b97f4a7c15u + 1;
        signal(SIGABRT, tell);
        pthread_barrier_init(&barrier, NULL, 2);
        cu_load();
        CU_OK(cu.Init(0));
        while (run.schedule < count) {
                uint64_t some = 1 + pick(8), left = count - run.schedule;

                play_in_one_context(some < left ? some : left);
        }
        judged = (uint64_t(*)(void))(uintptr_t)cu_symbol("sim_oracle_judged");
        printf("schedules %llu made %llu freed %llu graphs %llu destroyed %llu judged %llu "
               "mismatches %llu\n",
               (unsigned long long)run.schedule, (unsigned long long)run.made,
               (unsigned long long)run.freed, (unsigned long long)run.graphs,
               (unsigned long long)run.destroyed, judged ? (unsigned long long)judged() : 0,
               (unsigned long long)run.wrong);
        return run.wrong != 0;
}
