/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quarantine -- freed, and served to nobody for a while
 */

#include "quarantine.h"

#include <assert.h>

#include "limbo.h"
#include "state.h"
#include "subject.h"

/* When a stream ends, or begins to capture, it is stamped for those that wait for it: also for a
 * block that is in none of its lanes yet. */
static void note_freed(const struct spm_model *model, const struct spm_block *block)
{
        unsigned int i;

        for (i = 0; i < block->dep_count; i++) {
                struct spm_point point = spm_block_dep(block, i);
                struct spm_stream_state *stream = spm_subject_stream(model, point.stream);

                if (stream && stream->freed < point.position)
                        stream->freed = point.position;
        }
}

void spm_quarantine_take(struct spm_block *block)
{
        struct spm_pool_state *pool = block->area->pool;

        assert(spm_block_is(block, SPM_BLOCK_KEPT));
        if (block->older)
                block->older->newer = block->newer;
        else
                pool->kept_oldest = block->newer;
        if (block->newer)
                block->newer->older = block->older;
        else
                pool->kept_newest = block->older;
        pool->kept_bytes -= block->size;
        pool->pending_bytes -= block->size;
        spm_block_become(block, SPM_BLOCK_LOOSE);
}

/* Synchronous memory was freed in the order of the stream that had all work then, which says
 * nothing of what others have submitted since: it is served when it is complete. */
static void let_go(struct spm_model *model, struct spm_block *block)
{
        spm_quarantine_take(block);
        block->barred = block->barred || block->area->pool->config.kind != SPM_POOL_ASYNC;
        spm_limbo_put(model, block);
}

void spm_quarantine_put(struct spm_model *model, struct spm_block *block)
{
        struct spm_pool_state *pool = block->area->pool;

        assert(spm_block_is(block, SPM_BLOCK_LOOSE));
        if (block->exported) {
                spm_limbo_put(model, block);
                return;
        }
        spm_block_become(block, SPM_BLOCK_KEPT);
        block->lane = NULL;
        block->open = false;
        block->newer = NULL;
        block->older = pool->kept_newest;
        if (block->older)
                block->older->newer = block;
        else
                pool->kept_oldest = block;
        pool->kept_newest = block;
        pool->kept_bytes += block->size;
        pool->pending_bytes += block->size;
        note_freed(model, block);
        while (pool->kept_bytes > pool->config.quarantine)
                let_go(model, pool->kept_oldest);
}

bool spm_quarantine_end(struct spm_model *model, struct spm_pool_state *pool)
{
        bool any = pool->kept_oldest != NULL;

        while (pool->kept_oldest)
                let_go(model, pool->kept_oldest);
        return any;
}
