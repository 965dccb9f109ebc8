/* SPDX-License-Identifier: Apache-2.0 */

/* Room -- does the device have what a pool is about to ask it for? */

#include "route/room.h"

#include "route/perform.h"
#include "track/limit.h"
#include "track/mempool.h"
#include "track/state.h"
#include "track/vmm.h"

/* Less, in one piece, is not worth the question. */
#define LARGE ((size_t)64 << 20)

/* Of what was free, a growth that is not worth another question; of a device, what the driver may
 * call free and not give. */
#define AMPLE  8
#define MARGIN 128

struct idle {
        uint64_t own;   /* ready in the pool that asks */
        uint64_t ready; /* or kept of the program's own mappings */
        uint64_t pending;
};

static void add_pool(struct idle *idle, struct spm_model *model, spm_pool pool, spm_pool asking)
{
        struct spm_stats stats;

        if (spm_stats(model, pool, &stats) != SPM_OK)
                return;
        idle->ready += stats.ready_bytes;
        idle->pending += stats.pending_bytes;
        if (pool == asking)
                idle->own = stats.ready_bytes;
}

static struct idle idle_of(const struct sp_device *device, spm_pool asking)
{
        spm_pool pools[SP_MEMPOOLS_MAX];
        unsigned int count = sp_mempools_on(device, pools);
        struct idle idle = {.ready = sp_vmm_kept(device->ordinal)};
        struct spm_model *model = sp_model_enter();
        struct sp_context *context = NULL;

        while ((context = sp_context_each(context)))
                if (context->device == device && !atomic_load(&context->gone))
                        add_pool(&idle, model, context->sync_pool, asking);
        for (unsigned int i = 0; i < count; i++)
                add_pool(&idle, model, pools[i], asking);
        sp_model_leave();
        return idle;
}

uint64_t sp_room_idle(const struct sp_device *device)
{
        struct idle idle = idle_of(device, 0);

        return idle.ready + idle.pending;
}

/* The device of the current context, if the pool is one of it. */
static struct sp_device *device_of(spm_pool pool)
{
        const struct sp_context *current = sp_context_current();
        spm_pool pools[SP_MEMPOOLS_MAX];
        unsigned int count;

        if (!current || current->sync_pool == pool)
                return current ? current->device : NULL;
        count = sp_mempools_on(current->device, pools);
        while (count && pools[count - 1] != pool)
                count--;
        return count ? current->device : NULL;
}

/* What the driver says is free, of which the process may have less. */
static bool look(struct sp_device *device, uint64_t *unused)
{
        uint64_t cap = sp_limit_cap(device->ordinal);
        uint64_t counted = sp_limit_counted(device->ordinal);
        uint64_t allowed = cap > counted ? cap - counted : 0;
        size_t free_bytes, total_bytes;

        if (sp_driver.cuMemGetInfo_v2(&free_bytes, &total_bytes) != CUDA_SUCCESS)
                return false;
        *unused = cap == SP_LIMIT_NONE || free_bytes < allowed ? free_bytes : allowed;
        atomic_store_explicit(&device->unused, *unused, memory_order_relaxed);
        return true;
}

/* Of so much that was free at the last look it is a small part. Others may have taken the rest:
 * then some is obtained in vain. */
static bool is_ample(struct sp_device *device, uint64_t bytes)
{
        uint64_t unused = atomic_load_explicit(&device->unused, memory_order_relaxed);

        if (bytes > unused / AMPLE || sp_limit_cap(device->ordinal) != SP_LIMIT_NONE)
                return false;
        atomic_store_explicit(&device->unused, unused - bytes, memory_order_relaxed);
        return true;
}

/* What is at hand, and what the list gives back before it grows. */
static uint64_t spare_bytes(const struct spm_actions *actions, const struct sp_spares *spares)
{
        uint64_t sum = 0;

        for (unsigned int i = 0; i < spares->count; i++)
                sum += spares->item[i].size;
        for (unsigned int i = 0; i < actions->count; i++)
                if (actions->item[i].kind == SPM_ACT_RELEASE)
                        sum += actions->item[i].size;
        return sum;
}

/* In one piece there was less, and nothing has come back since. */
static bool was_refused(const struct sp_room *room, uint64_t missing, uint64_t unused)
{
        return room->asked && missing >= room->asked && unused <= room->unused;
}

/* What the pool itself holds ready moves, unless that has been tried. */
static bool is_short(const struct sp_room *room, const struct sp_device *device,
                     const struct spm_action *action, uint64_t there, uint64_t unused)
{
        if (action->last)
                return action->missing > there || was_refused(room, action->missing, unused);
        return action->missing > there && action->missing - there > idle_of(device, room->pool).own;
}

/* There would be less if all that is idle came back. */
static bool is_hopeless(const struct sp_device *device, uint64_t bytes, uint64_t there)
{
        return bytes > there && bytes - there > sp_room_idle(device);
}

/* What other pools hold ready goes back, and if all else was tried, what any holds freed; but not
 * what was obtained for this request, which would be obtained anew. */
static bool find_more(const struct sp_room *room, struct sp_device *device,
                      const struct spm_action *action)
{
        bool found = sp_trim_device(device, action->address ? room->pool : 0) > 0;

        if (action->last)
                found = sp_relieve_device(device, room->began ? room->pool : 0) || found;
        return found;
}

static bool is_nearly_all(const struct sp_device *device, uint64_t missing, uint64_t unused)
{
        return missing >= LARGE && missing <= unused &&
               unused - missing < device->total_bytes / MARGIN;
}

/* What comes only once all else was tried (thrift.h) is not asked for yet. */
static void put_whole(struct sp_room *room, const struct sp_device *device,
                      const struct spm_action *action, uint64_t unused)
{
        bool is_late = !action->last && sp_limit_excess(device->ordinal, action->missing);

        room->is_whole = true;
        room->was_put = true;
        room->asked = is_late ? 0 : action->missing;
        room->unused = unused;
}

static enum sp_verdict judge(struct sp_room *room, struct sp_device *device,
                             const struct spm_action *action, uint64_t spare)
{
        uint64_t wanted = action->last ? action->missing : room->size;
        uint64_t unused;

        if (!look(device, &unused))
                return SP_VERDICT_TRY;
        if (is_short(room, device, action, unused + spare, unused)) {
                if (is_hopeless(device, wanted, unused + spare))
                        return SP_VERDICT_GIVE_UP;
                if (find_more(room, device, action) && !look(device, &unused))
                        return SP_VERDICT_TRY;
                if (is_short(room, device, action, unused + spare, unused))
                        return SP_VERDICT_REFUSE;
        }
        if (room->is_whole || !is_nearly_all(device, action->missing, unused))
                return SP_VERDICT_TRY;
        put_whole(room, device, action, unused);
        return SP_VERDICT_WHOLE;
}

static const struct spm_action *first_growth(const struct spm_actions *actions)
{
        for (unsigned int i = 0; i < actions->count; i++)
                if (actions->item[i].kind == SPM_ACT_GROW)
                        return &actions->item[i];
        return NULL;
}

enum sp_verdict sp_room_judge(struct sp_room *room, const struct spm_actions *actions,
                              const struct sp_spares *spares)
{
        const struct spm_action *action = first_growth(actions);
        enum sp_verdict verdict = SP_VERDICT_TRY;
        struct sp_device *device;

        if (!action)
                return SP_VERDICT_TRY;
        if (room->was_put)
                room->was_put = false;
        else if ((action->last || !room->looked) &&
                 (action->missing > action->size || room->size >= LARGE) &&
                 (device = device_of(room->pool)) &&
                 (action->last || !is_ample(device, action->missing)))
                verdict = judge(room, device, action, spare_bytes(actions, spares));
        room->looked = true;
        room->began = room->began || (action->last && verdict == SP_VERDICT_TRY);
        return verdict;
}
