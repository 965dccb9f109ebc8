/* SPDX-License-Identifier: Apache-2.0 */

/* Witness, memory -- what a program does with its blocks, and who is to be blamed for it */

#include "witness_program.h"

static struct spm_seen_life life_of(int block)
{
        return (struct spm_seen_life){(uint64_t)(block + 1) << 20, run.life[block]};
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
        if (a->kind == SPM_TOUCH_ARGUMENT || b->kind == SPM_TOUCH_ARGUMENT)
                return false;
        return (a->kind == SPM_TOUCH_WRITE || b->kind == SPM_TOUCH_WRITE) && a->from < b->to &&
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

void step_use(int stream, int block)
{
        int from = chance(PAGES);
        struct use use = {
                .node = submit(stream),
                .block = block,
                .stream = stream,
                .touch =
                        {
                                .kind = (enum spm_touch_kind)chance(SPM_TOUCH_KINDS),
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

void step_alloc(int stream, int block)
{
        renew(block);
        run.alloc[block] = submit(stream);
        spm_witness_alloc(run.witness, actors[stream], life_of(block), spot_of(run.alloc[block]));
}

void step_free(int stream, int block)
{
        int node = submit(stream);

        judge("free", spm_witness_look_free(run.witness, actors[stream], life_of(block)),
              has_loose_alloc(block, node)          ? SPM_HAZARD_FREE_BEFORE_ALLOC
              : has_loose_use(block, NULL, node, 0) ? SPM_HAZARD_FREE_BEFORE_USE
                                                    : SPM_HAZARD_NONE,
              node, 0);
        renew(block);
}

void step_sync_free(int block)
{
        uint32_t context = (uint32_t)chance(3);

        judge("synchronous free", spm_witness_look_sync_free(run.witness, context, life_of(block)),
              has_loose_use(block, NULL, EDGES_NONE, context) ? SPM_HAZARD_SYNC_FREE
                                                              : SPM_HAZARD_NONE,
              EDGES_NONE, context);
        renew(block);
}

/* However it went on, nobody was blamed who was right. */
void judge_again(void)
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
