/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Witness -- does it blame nobody who is right, and everybody else?
 *
 *   witness [--seed N] [--programs N]
 *
 * Random programs, told to the witness and drawn as a graph (support/edges.h). Whom it blames,
 * there is no path to, either way and however the program goes on. Where all order can be followed
 * and nothing has to be forgotten, whoever has no path is blamed, and for the right thing.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "witness_program.h"

const struct spm_actor actors[STREAMS] = {
        {1, 1, SPM_STREAM_LEGACY},       {2, 1, SPM_STREAM_BLOCKING},
        {3, 1, SPM_STREAM_NON_BLOCKING}, {4, 1, SPM_STREAM_PER_THREAD},
        {5, 2, SPM_STREAM_LEGACY},       {6, 2, SPM_STREAM_NON_BLOCKING},
        {7, 2, SPM_STREAM_BLOCKING},     {8, 1, SPM_STREAM_NON_BLOCKING},
};

struct program run;

int chance(int of)
{
        run.random = run.random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (int)((run.random >> 33) % (unsigned int)of);
}

/* order */

int submit(int stream)
{
        spm_witness_submit(run.witness, actors[stream]);
        return edges_submit(&run.edges, stream);
}

static void step_record(int stream, int event)
{
        if (run.waited != EDGES_NONE && chance(2))
                event = run.waited;
        run.is_known[event] = !run.is_shared[event];
        if (chance(6)) {
                spm_witness_record(run.witness, (uint32_t)event + 1, actors[stream]);
                edges_record(&run.edges, event, stream);
        } else {
                spm_witness_record_context(run.witness, (uint32_t)event + 1,
                                           actors[stream].context);
                edges_record_context(&run.edges, event, actors[stream].context);
        }
        if (run.is_shared[event] && chance(2))
                edges_see(&run.edges, run.edges.record[event]);
}

static void step_wait(int stream, int event)
{
        if (run.is_exact && !run.is_known[event])
                return;
        spm_witness_wait(run.witness, actors[stream], (uint32_t)event + 1);
        if (run.is_known[event])
                edges_wait(&run.edges, stream, event);
        else
                edges_wait_for_anything(&run.edges, stream);
}

static void step_wait_context(int stream, int event)
{
        uint32_t context = actors[stream].context;

        if (run.is_known[event] && edges_wait_context(&run.edges, context, event))
                spm_witness_wait_context(run.witness, context, (uint32_t)event + 1);
}

static void step_see(int stream, int event)
{
        switch (chance(5)) {
        case 0:
                spm_witness_saw_context(run.witness, actors[stream].context,
                                        spm_witness_now(run.witness));
                edges_see_context(&run.edges, actors[stream].context);
                break;
        case 1:
        case 2:
                spm_witness_saw_stream(run.witness, actors[stream], spm_witness_now(run.witness));
                edges_see_stream(&run.edges, stream);
                break;
        default:
                if (!run.is_known[event])
                        return;
                spm_witness_saw_event(run.witness, (uint32_t)event + 1,
                                      spm_witness_version(run.witness, (uint32_t)event + 1));
                edges_see(&run.edges, run.edges.record[event]);
        }
}

/* The event may be recorded again while the host waits for it. */
static void step_see_late(int event)
{
        if (run.waited == EDGES_NONE && run.is_known[event]) {
                run.waited = event;
                run.waited_node = run.edges.record[event];
                run.version = spm_witness_version(run.witness, (uint32_t)event + 1);
        } else if (run.waited != EDGES_NONE) {
                spm_witness_saw_event(run.witness, (uint32_t)run.waited + 1, run.version);
                edges_see(&run.edges, run.waited_node);
                run.waited = EDGES_NONE;
        }
}

/* Likewise for a stream, which may be given more meanwhile. */
static void step_see_stream_late(int stream)
{
        if (run.since == 0) {
                run.waited_stream = stream;
                run.waited_last = run.edges.last[stream];
                run.since = spm_witness_now(run.witness);
        } else {
                spm_witness_saw_stream(run.witness, actors[run.waited_stream], run.since);
                edges_see(&run.edges, run.waited_last);
                run.since = 0;
        }
}

/* Of these the graph has an edge when it turns out so; the witness does not hear of that. */
static void step_unfollowed(int stream, int event)
{
        int node;

        switch (chance(8)) {
        case 0:
                if (run.since && chance(2))
                        stream = run.waited_stream;
                spm_witness_mute(run.witness, actors[stream]);
                edges_wait_for_anything(&run.edges, stream);
                break;
        case 1:
                node = submit(stream);
                spm_witness_signal(run.witness, actors[stream]);
                if (chance(2))
                        edges_see(&run.edges, node);
                break;
        case 2:
        case 5:
                run.is_shared[event] |= chance(2);
                spm_witness_taint(run.witness, (uint32_t)event + 1, run.is_shared[event]);
                run.is_known[event] = false;
                break;
        case 3:
        case 4:
                step_see_stream_late(stream);
                break;
        default:
                step_see_late(event);
        }
}

/* What somebody waits for is anything that was submitted before or after. */
static void turn_out(void)
{
        if (run.edges.count == 0)
                return;
        for (int i = 0; i < run.edges.count; i++)
                if (run.edges.nodes[i].is_open && chance(3) == 0)
                        edges_hide(&run.edges, i, chance(run.edges.count));
}

static void step(void)
{
        int stream = chance(STREAMS), event = chance(EDGES_EVENTS), block = chance(BLOCKS);
        int what = chance(run.is_exact ? 100 : 120);

        if (what < 40)
                step_use(stream, block);
        else if (what < 48)
                step_alloc(stream, block);
        else if (what < 54)
                step_free(stream, block);
        else if (what < 57)
                step_sync_free(block);
        else if (what < 72)
                step_record(stream, event);
        else if (what < 88)
                step_wait(stream, event);
        else if (what < 89)
                step_wait_context(stream, event);
        else if (what < 94)
                step_see(stream, event);
        else if (what < 100)
                submit(stream);
        else
                step_unfollowed(stream, event);
        turn_out();
}

static bool run_program(uint64_t seed)
{
        struct spm_witness_config few = {.streams = 4, .events = 3, .blocks = 8};
        bool has_room = seed % 3 != 2;

        memset(&run, 0, sizeof(run));
        run.seed = seed;
        run.random = seed * UINT64_C(0x9e3779b97f4a7c15);
        run.is_exact = seed % 3 == 0;
        run.waited = EDGES_NONE;
        run.witness = spm_witness_new(has_room ? NULL : &few);
        edges_init(&run.edges, actors, STREAMS);
        for (int i = 0; i < BLOCKS; i++)
                run.alloc[i] = EDGES_NONE;
        for (int i = 0; run.witness && i < STEPS && !run.failure[0]; i++)
                step();
        judge_again();
        if (!run.witness)
                FAIL("no memory");
        spm_witness_free(run.witness);
        if (run.failure[0])
                printf("seed %" PRIu64 ": %s\n", seed, run.failure);
        return !run.failure[0];
}

int main(int count, char **arguments)
{
        uint64_t seed = 1, programs = 30000, blames = 0, with_blames[3] = {0};

        for (int i = 1; i + 1 < count; i += 2) {
                uint64_t *option = strcmp(arguments[i], "--seed") == 0 ? &seed : &programs;

                *option = strtoull(arguments[i + 1], NULL, 10);
        }
        for (uint64_t i = 0; i < programs; i++) {
                if (!run_program(seed + i))
                        return 1;
                blames += (uint64_t)run.blames;
                with_blames[(seed + i) % 3] += run.blames > 0;
        }
        printf("%" PRIu64 " programs, %" PRIu64 " hazards\n", programs, blames);
        /* Where nobody was blamed nothing was tried. */
        for (int i = 0; i < 3; i++)
                if (with_blames[i] * 30 < programs)
                        return printf("few hazards of sort %d: %" PRIu64 "\n", i, with_blames[i]),
                               1;
        return 0;
}
