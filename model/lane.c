/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lane -- the pending blocks of a pool that wait for one stream
 */

#include "lane.h"

#include <assert.h>

#include "host.h"
#include "pool.h"
#include "state.h"

struct spm_lane *spm_lane_new(struct spm_model *model, struct spm_pool_state *pool,
                              struct spm_stream_state *stream)
{
        struct spm_lane *lane = spm_host_new(model, sizeof(*lane));

        if (!lane)
                return NULL;
        lane->object.id = stream->object.id;
        if (!spm_table_put(model, &pool->lanes, &lane->object)) {
                spm_host_free(model, lane);
                return NULL;
        }
        spm_bins_init(&lane->open[0], pool->config.align);
        spm_bins_init(&lane->open[1], pool->config.align);
        lane->pool = pool;
        lane->stream = stream;
        lane->next = stream->lanes;
        stream->lanes = lane;
        return lane;
}

static void forget_lane(struct spm_model *model, struct spm_lane *lane)
{
        struct spm_lane **at = &lane->stream->lanes;

        assert(!lane->oldest);
        while (*at != lane)
                at = &(*at)->next;
        *at = lane->next;
        spm_bins_forget(model, &lane->open[0]);
        spm_bins_forget(model, &lane->open[1]);
        spm_table_remove(model, &lane->pool->lanes, &lane->object);
        spm_host_free(model, lane);
}

void spm_lane_forget_stream(struct spm_model *model, struct spm_stream_state *stream)
{
        while (stream->lanes)
                forget_lane(model, stream->lanes);
}

void spm_lane_forget_pool(struct spm_model *model, struct spm_pool_state *pool)
{
        while (pool->lanes.head)
                forget_lane(model, (struct spm_lane *)pool->lanes.head);
}

/* open blocks */

bool spm_lane_add_open(struct spm_model *model, struct spm_lane *lane, struct spm_block *block)
{
        struct spm_block **head;

        if (!block->is_slot)
                return spm_bins_insert(model, &lane->open[block->area->index], block);
        head = &lane->slots[block->klass];
        block->left = NULL;
        block->right = *head;
        if (*head)
                (*head)->left = block;
        *head = block;
        return true;
}

void spm_lane_take_open(struct spm_lane *lane, struct spm_block *block)
{
        if (!block->is_slot) {
                spm_bins_remove(&lane->open[block->area->index], block);
                return;
        }
        if (block->left)
                block->left->right = block->right;
        else
                lane->slots[block->klass] = block->right;
        if (block->right)
                block->right->left = block->left;
}

/* the queue */

void spm_lane_link(struct spm_lane *lane, struct spm_block *older, struct spm_block *block)
{
        struct spm_block *newer = older ? older->newer : lane->oldest;

        block->older = older;
        block->newer = newer;
        if (older)
                older->newer = block;
        else
                lane->oldest = block;
        if (newer)
                newer->older = block;
        else
                lane->newest = block;
}

void spm_lane_unlink(struct spm_lane *lane, struct spm_block *block)
{
        if (lane->joined == block)
                lane->joined = block->older;
        if (block->older)
                block->older->newer = block->newer;
        else
                lane->oldest = block->newer;
        if (block->newer)
                block->newer->older = block->older;
        else
                lane->newest = block->older;
}
