/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops -- layouts
 *
 * What a layout changes is where blocks lie; all that the twin and the world know of memory holds
 * as it does without.
 */

#include "ops_inner.h"

static const char *const texts[] = {
        NULL,
        "sliced:page=16K,slice=8K,cap=48K;exclusive:max=16K,period=20;direct:reclaim=64K",
        "sliced:page=4K;direct",
        "exclusive:max=20K,period=10;persistent=size-match",
        "sliced:page=32K",
        "direct:reclaim=16K;persistent=size-match",
        "sliced:page=8K,cap=7K,shrink;exclusive:max=5K,period=5;sliced:page=32K,slice=20K;direct",
        "exclusive:max=20K;persistent=enforced",
        "sliced:page=20K,slice=1K,cap=100K;sliced:page=12K,cap=24K;persistent=disabled",
};

#define TEXTS (int)(sizeof(texts) / sizeof(texts[0]))

/* Statuses that are right, as is a host that is short of memory where it may be. */
static bool is_right(const struct ops *ops, enum spm_status status)
{
        return status == SPM_OK || status == SPM_E_IN_USE || status == SPM_E_UNSUPPORTED ||
               (status == SPM_E_HOST_MEMORY && ops->world.host_may_fail);
}

/* C34, C36: of what the program has, only what is persistent was not in the way. */
static void check_left(struct ops *ops, int pool, unsigned int persistent)
{
        struct spm_shelf_stats stats = {0};

        if (persistent &&
            spm_layout_stats(ops->world.model, ops->world.pools[pool], persistent, &stats))
                world_fail(&ops->world, "C39: there is no persistent shelf");
        if (stats.requested != ops->used[pool])
                world_fail(&ops->world, "C34: a layout is installed over %llu bytes in use",
                           (unsigned long long)ops->used[pool]);
}

/* What is idle has to be given back first, and who knows what comes then. */
static bool is_foreseen(enum spm_status foreseen, enum spm_status status, unsigned int actions)
{
        if (foreseen == SPM_AGAIN)
                return status == SPM_OK || status == SPM_AGAIN || status == SPM_E_IN_USE ||
                       status == SPM_E_HOST_MEMORY;
        return !actions && (status == foreseen || status == SPM_E_HOST_MEMORY);
}

void ops_install(struct ops *ops, int pool)
{
        static struct spm_layout layout;
        struct world *world = &ops->world;
        int choice = ops_choose(ops, TEXTS);
        const char *text = texts[choice];
        struct spm_layout_error error;
        struct spm_actions actions;
        enum spm_status foreseen, status;

        if (text && spm_layout_parse(text, &layout, &error))
                world_fail(world, "%s is refused", text);
        if (choice % 2)
                ops_retire(ops, pool);
        do {
                foreseen = spm_pool_may_install(world->model, world->pools[pool],
                                                text ? &layout : NULL, &error);
                status = spm_pool_install(world->model, world->pools[pool], text ? &layout : NULL,
                                          &error, &actions);
                if (!is_foreseen(foreseen, status, actions.count))
                        world_fail(world, "C34: foreseen was %s", spm_status_name(foreseen));
                world_perform(world, &actions, OPS_NO_CAUSE, NULL);
        } while (status == SPM_AGAIN && !world->failure[0]);
        world_trace(world, "pool %d gets the layout %s: %s", pool, text ? text : "(none)",
                    spm_status_name(status));
        if (!is_right(ops, status))
                world_fail(world, "%s: %s", text, spm_status_name(status));
        if (status == SPM_OK)
                check_left(ops, pool, text ? layout.count : 0);
}

void op_layout(struct ops *ops)
{
        struct world *world = &ops->world;
        int pool = ops->profile->pools[ops_choose(ops, 4)];
        int choice = ops_choose(ops, 8);

        if (world->pool_gone[pool])
                return;
        if (choice < 3)
                spm_persistent_enter(world->model, world->pools[pool]);
        else if (choice < 7)
                spm_persistent_leave(world->model, world->pools[pool]);
        else
                ops_install(ops, pool);
}
