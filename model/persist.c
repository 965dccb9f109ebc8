/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Persist -- what goes to the persistent shelf of a layout
 *
 * A window says it, or the mode of the layout, or the size. A window that is opened or closed while
 * a capture is open counts from the end of that: until then allocations go where they went when it
 * began, so that what a graph was captured with is all of one kind (C30).
 */

#include "layout.h"
#include "state.h"

/* windows */

/* A pool that outlives contexts is concerned by every capture on its device. */
static bool is_captured(const struct spm_model *model, const struct spm_pool_state *pool)
{
        const struct spm_object *object;

        if (pool->context)
                return pool->context->captures != 0;
        for (object = model->contexts.head; object; object = spm_object_next(object)) {
                const struct spm_context_state *context = (const struct spm_context_state *)object;

                if (context->device == pool->config.device && context->captures)
                        return true;
        }
        return false;
}

/* Windows that were opened or closed during a capture count when it has ended (C30). */
static void settle(const struct spm_model *model, const struct spm_pool_state *pool)
{
        struct spm_layout_state *layout = pool->layout;

        if (layout && layout->windows_now != layout->windows && !is_captured(model, pool))
                layout->windows_now = layout->windows;
}

void spm_persist_settle(struct spm_model *model)
{
        const struct spm_pool_state *pool;

        for (pool = spm_pool_first(model); pool; pool = spm_pool_next(pool))
                settle(model, pool);
}

static enum spm_status turn_window(struct spm_model *model, spm_pool id, bool open)
{
        struct spm_pool_state *pool = spm_pool_find(model, id);
        struct spm_layout_state *layout = pool && !pool->closed ? pool->layout : NULL;

        if (!layout)
                return SPM_E_UNKNOWN;
        if (open)
                layout->windows++;
        else
                layout->windows -= layout->windows != 0;
        settle(model, pool);
        return SPM_OK;
}

enum spm_status spm_persistent_enter(struct spm_model *model, spm_pool id)
{
        return turn_window(model, id, true);
}

enum spm_status spm_persistent_leave(struct spm_model *model, spm_pool id)
{
        return turn_window(model, id, false);
}

/* routing */

static bool knows(const struct spm_layout_state *layout, const struct spm_pool_state *pool,
                  uint64_t size)
{
        const struct spm_area *page = layout->persistent.first;

        while (page && page->size != spm_shelf_whole(pool, size))
                page = page->page_next;
        return page != NULL;
}

bool spm_persist_takes(const struct spm_want *want)
{
        const struct spm_layout_state *layout = want->pool->layout;

        switch (layout->layout.persistent) {
        case SPM_PERSISTENT_ENFORCED:
                return true;
        case SPM_PERSISTENT_DISABLED:
                return false;
        case SPM_PERSISTENT_SIZE_MATCH:
                if (knows(layout, want->pool, want->size))
                        return true;
                break;
        case SPM_PERSISTENT_ENABLED:
                break;
        }
        return layout->windows_now != 0;
}
