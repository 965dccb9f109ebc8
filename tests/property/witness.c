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

#include "edges.h"

#define STEPS  70
#define BLOCKS 4
#define PAGES  4 /* of a block */
#define BLAMES 64

static const struct spm_actor actors[] = {
        {1, 1, SPM_STREAM_LEGACY},       {2, 1, SPM_STREAM_BLOCKING},
        {3, 1, SPM_STREAM_NON_BLOCKING}, {4, 1, SPM_STREAM_PER_THREAD},
        {5, 2, SPM_STREAM_LEGACY},       {6, 2, SPM_STREAM_NON_BLOCKING},
        {7, 2, SPM_STREAM_BLOCKING},     {8, 1, SPM_STREAM_NON_BLOCKING},
};

#define STREAMS ((int)(sizeof(actors) / sizeof(actors[0])))

struct use {
        int node, block, stream;
        struct spm_touch touch;
};

struct blame {
        int earlier;
        int later;        /* EDGES_NONE: of the host */
        uint32_t context; /* that it waited for */
        int host;         /* what it had seen */
};

/* One program. */
static struct {
        uint64_t seed, random;
        bool is_exact;
        struct spm_witness *witness;
        struct edges edges;
        uint64_t life[BLOCKS];
        int alloc[BLOCKS]; /* its node; EDGES_NONE */
        struct use use[EDGES_NODES];
        int uses;
        struct blame blame[BLAMES];
        int blames;
        bool is_known[EDGES_EVENTS];  /* an event was recorded, and where all could see */
        bool is_shared[EDGES_EVENTS]; /* others can record it, too */
        int waited;                   /* an event that the host began to wait for */
        int waited_node;
        uint64_t version;
        char failure[160];
} run;

static int chance(int of)
{
        run.random = run.random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (int)((run.random >> 33) % (unsigned int)of);
}

#define FAIL(...)                                                                                  \
        do {                                                                                       \
                if (!run.failure[0])                                                               \
                        snprintf(run.failure, sizeof(run.failure), __VA_ARGS__);                   \
        } while (0)

/* memory */

static struct spm_life life_of(int block)
{
        return (struct spm_life){(uint64_t)(block + 1) << 20, run.life[block]};
}

static struct spm_spot spot_of(int node)
{
        return (struct spm_spot){(const void *)(intptr_t)(node + 1), "call"};
}

static bool is_last(const struct use *use)
{
        for (const struct use *other = use + 1; other < run.use + run.uses; other++)
                if (other->block == use->block && other->stream == use->stream &&
                    other->touch.kind == use->touch.kind)
                        return false;
        return true;
}

static bool conflicts(const struct spm_touch *a, const struct spm_touch *b)
{
        if (a->kind == SPM_USE_ARGUMENT || b->kind == SPM_USE_ARGUMENT)
                return false;
        return (a->kind == SPM_USE_WRITE || b->kind == SPM_USE_WRITE) && a->from < b->to &&
               b->from < a->to;
}

/* Is there a use that is not behind @node (or the host, with a context)? */
static bool has_loose_use(int block, const struct spm_touch *touch, int node, uint32_t context)
{
        for (const struct use *use = run.use; use < run.use + run.uses; use++) {
                if (use->block != block || use->node == node || !is_last(use) ||
                    (touch && !conflicts(touch, &use->touch)))
                        continue;
                if (node == EDGES_NONE ? !edges_host_reaches(&run.edges, context, use->node)
                                       : !edges_reach(&run.edges, node, use->node))
                        return true;
        }
        return false;
}

static bool has_loose_alloc(int block, int node)
{
        return run.alloc[block] != EDGES_NONE && !edges_reach(&run.edges, node, run.alloc[block]);
}

static void judge(const char *what, struct spm_verdict verdict, enum spm_hazard expected, int node,
                  uint32_t context)
{
        struct blame blame = {
                .earlier = (int)(intptr_t)verdict.spot.site - 1,
                .later = node,
                .context = context,
                .host = run.edges.host,
        };
        bool is_loose;

        if (run.is_exact && verdict.hazard != expected)
                FAIL("%s by node %d: %d, not %d", what, node, verdict.hazard, expected);
        if (!verdict.hazard)
                return;
        is_loose = node == EDGES_NONE ? !edges_host_reaches(&run.edges, context, blame.earlier)
                                      : !edges_reach(&run.edges, node, blame.earlier);
        if (!is_loose)
                FAIL("%s by node %d is blamed for node %d", what, node, blame.earlier);
        if (run.blames < BLAMES)
                run.blame[run.blames++] = blame;
}

static void forget_uses(int block)
{
        int kept = 0;

        for (int i = 0; i < run.uses; i++)
                if (run.use[i].block != block)
                        run.use[kept++] = run.use[i];
        run.uses = kept;
}

static void renew(int block)
{
        forget_uses(block);
        run.life[block]++;
        run.alloc[block] = EDGES_NONE;
}

static int submit(int stream)
{
        spm_witness_submit(run.witness, actors[stream]);
        return edges_submit(&run.edges, stream);
}

static void step_use(int stream, int block)
{
        int from = chance(PAGES);
        struct use use = {
                .node = submit(stream),
                .block = block,
                .stream = stream,
                .touch =
                        {
                                .kind = (enum spm_use_kind)chance(SPM_USE_KINDS),
                                .from = (uint64_t)from,
                                .to = (uint64_t)(from + 1 + chance(PAGES)),
                        },
        };
        struct spm_verdict verdict;

        use.touch.spot = spot_of(use.node);
        verdict = spm_witness_look(run.witness, actors[stream], life_of(block), &use.touch);
        judge("use", verdict,
              has_loose_alloc(block, use.node)                ? SPM_HAZARD_USE_BEFORE_ALLOC
              : has_loose_use(block, &use.touch, use.node, 0) ? SPM_HAZARD_RACE
                                                              : SPM_HAZARD_NONE,
              use.node, 0);
        spm_witness_touch(run.witness, actors[stream], life_of(block), &use.touch);
        run.use[run.uses++] = use;
}

static void step_alloc(int stream, int block)
{
        renew(block);
        run.alloc[block] = submit(stream);
        spm_witness_alloc(run.witness, actors[stream], life_of(block), spot_of(run.alloc[block]));
}

static void step_free(int stream, int block)
{
        int node = submit(stream);

        judge("free", spm_witness_look_free(run.witness, actors[stream], life_of(block)),
              has_loose_alloc(block, node)          ? SPM_HAZARD_FREE_BEFORE_ALLOC
              : has_loose_use(block, NULL, node, 0) ? SPM_HAZARD_FREE_BEFORE_USE
                                                    : SPM_HAZARD_NONE,
              node, 0);
        renew(block);
}

static void step_sync_free(int block)
{
        uint32_t context = (uint32_t)chance(3);

        judge("synchronous free", spm_witness_look_sync_free(run.witness, context, life_of(block)),
              has_loose_use(block, NULL, EDGES_NONE, context) ? SPM_HAZARD_SYNC_FREE
                                                              : SPM_HAZARD_NONE,
              EDGES_NONE, context);
        renew(block);
}

/* order */

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
                spm_witness_saw_context(run.witness, actors[stream].context);
                edges_see_context(&run.edges, actors[stream].context);
                break;
        case 1:
        case 2:
                spm_witness_saw_stream(run.witness, actors[stream]);
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

/* Of these the graph has an edge when it turns out so; the witness does not hear of that. */
static void step_unfollowed(int stream, int event)
{
        int node;

        switch (chance(6)) {
        case 0:
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
                run.is_shared[event] |= chance(2);
                spm_witness_taint(run.witness, (uint32_t)event + 1, run.is_shared[event]);
                run.is_known[event] = false;
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
        int what = chance(run.is_exact ? 100 : 118);

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

/* However it went on, nobody was blamed who was right. */
static void judge_again(void)
{
        for (int i = 0; i < run.blames; i++) {
                const struct blame *blame = &run.blame[i];

                if (blame->later == EDGES_NONE)
                        continue;
                if (edges_reach(&run.edges, blame->later, blame->earlier) ||
                    edges_reach(&run.edges, blame->earlier, blame->later))
                        FAIL("node %d was blamed for node %d", blame->later, blame->earlier);
        }
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
