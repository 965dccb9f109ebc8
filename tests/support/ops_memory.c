/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops -- allocations, uses and frees
 *
 * A use is made only where the legal order lets the program make it, and a
 * free only where the program may be done with the block; the twin then says
 * whether the device agrees.
 */

#include <string.h>

#include "ladder.h"
#include "ops_inner.h"

/* allocations */

/* I2, I8: nobody may still be at work where the new owner may be next. */
static void check_served(struct ops *ops, const struct spm_allocation *allocation, int stream)
{
        struct world *world = &ops->world;
        uint64_t end = allocation->address + allocation->size;
        int i;

        /* Under R1 it is served early, and what uses it is looked at (op_use()). */
        if (stream == TWIN_NONE && allocation->announce)
                return;
        if (stream == TWIN_NONE) {
                if (twin_conflict(&world->twin, TWIN_NONE, allocation->generation,
                                  allocation->address, end) != TWIN_NONE)
                        world_fail(world, "I8: served while its last owner is at work");
                return;
        }
        for (i = 0; i < world->stream_count; i++) {
                const struct twin_stream *other = &world->twin.streams[i];
                bool follows = world->twin.streams[stream].kind == SPM_STREAM_LEGACY &&
                               other->kind != SPM_STREAM_NON_BLOCKING &&
                               other->context == world_context_of(world, stream);

                if ((i == stream || follows) && ops_may_use(ops, i) &&
                    twin_conflict(&world->twin, i, allocation->generation, allocation->address,
                                  end) != TWIN_NONE)
                        world_fail(world, "I2: served to stream %d, unsafe on %d", stream, i);
        }
}

static void check_apart(struct ops *ops, const struct spm_allocation *allocation)
{
        struct spm_allocation found;
        int i;

        if (allocation->reserved < allocation->size || allocation->address % 512 ||
            spm_find(ops->world.model, allocation->address, &found) != SPM_OK ||
            allocation->address < found.segment_base ||
            allocation->address - found.segment_base >= found.segment_size)
                world_fail(&ops->world, "I1: a block outside its segment, or crooked");
        for (i = 0; i < ops->block_count; i++) {
                const struct spm_allocation *other = &ops->blocks[i].allocation;

                if (ops->blocks[i].used &&
                    other->address < allocation->address + allocation->reserved &&
                    allocation->address < other->address + other->reserved)
                        world_fail(&ops->world, "I1: two live blocks overlap");
        }
}

void ops_count_alloc(struct ops *ops, int pool, size_t size)
{
        if (ops->used_high[pool] < ops->used[pool] + size)
                ops->used_high[pool] = ops->used[pool] + size;
        if (ops->count_high[pool] < ops->count[pool] + 1)
                ops->count_high[pool] = ops->count[pool] + 1;
}

void ops_own(struct ops *ops, const struct spm_allocation *allocation, int pool, int stream)
{
        int i;

        check_apart(ops, allocation);
        ops_note_early(ops, allocation, pool);
        check_served(ops, allocation, stream);
        if (pool != OPS_POOL_OF_MODEL &&
            !world_is_backed(&ops->world, pool, allocation->address,
                             allocation->address + allocation->reserved))
                world_fail(&ops->world, "I1: served where there is no memory");
        world_count_live(&ops->world, allocation->address,
                         allocation->address + allocation->reserved, true);
        ops->result->allocs++;
        ops->result->reused += allocation->reused;
        ops->result->hash = ops_mix(ops->result->hash, allocation->address);
        for (i = 0; ops->blocks[i].used; i++)
                ;
        ops->blocks[i] = (struct block){
                .used = true,
                .allocation = *allocation,
                .pool = pool,
                .stream = stream,
                .born = stream == TWIN_NONE ? TWIN_NONE : twin_pretend(&ops->world.twin, stream),
        };
        ops->used[pool] += allocation->size;
        ops->count[pool]++;
}

/* A free slot for the block and one for each request under way. */
static bool has_room(const struct ops *ops)
{
        int room = 0;
        int i;

        for (i = 0; i < ops->block_count; i++)
                room += !ops->blocks[i].used;
        return room > REQUESTS;
}

static void sync_at_once(struct ops *ops, int stream)
{
        struct world *world = &ops->world;
        struct spm_scope scope = {SPM_SCOPE_STREAM, world->streams[stream].id};
        struct spm_ticket ticket;
        struct spm_actions actions;

        if (spm_sync_begin(world->model, scope, &ticket))
                return;
        twin_finish(&world->twin, stream);
        spm_sync_end(world->model, &ticket, SPM_SYNC_WAIT, true, &actions);
        world_perform(world, &actions, OPS_NO_CAUSE, NULL);
}

static void step_request(struct ops *ops, struct pending_request *pending)
{
        struct world *world = &ops->world;
        struct world_cause cause = ops_on_behalf_of(pending->stream);
        struct spm_allocation allocation;
        struct spm_actions actions;
        enum spm_status status;

        if (world->pool_gone[pending->pool] ||
            (pending->stream != TWIN_NONE && !ops_may_use(ops, pending->stream))) {
                pending->used = false;
                return;
        }
        if (++pending->steps > 200)
                world_fail(world, "an allocation never ends, stage %u", pending->request.stage);
        memset(&allocation, 0xa5, sizeof(allocation));
        status = spm_alloc(world->model, &pending->request, &allocation, &actions);
        cause.in_alloc = true;
        cause.short_of = spm_ladder_is_short(&pending->request);
        if (status == SPM_AGAIN) {
                world_perform(world, &actions, cause, &pending->request);
                return;
        }
        world_trace(world, "alloc pool %d stream %d size %zu: %s at %#llx", pending->pool,
                    pending->stream, pending->request.size, spm_status_name(status),
                    (unsigned long long)allocation.address);
        pending->used = false;
        if (status == SPM_E_OUT_OF_MEMORY ||
            (status == SPM_E_TOO_BIG && ops->profile->extra & OPS_LAYOUT))
                ops->result->out_of_memory++;
        else
                ops_expect(ops, "alloc", status);
        if (status) {
                world_perform(world, &actions, cause, NULL);
                return;
        }
        ops_count_alloc(ops, pending->pool, allocation.size);
        /* Another thread may look at the stream before the belt is on. */
        if (pending->stream != TWIN_NONE && ops_choose(ops, 8) == 0)
                sync_at_once(ops, pending->stream);
        if (world_perform(world, &actions, cause, NULL)) {
                ops_own(ops, &allocation, pending->pool, pending->stream);
                return;
        }
        ops_expect(ops, "undo", spm_alloc_undo(world->model, allocation.address, &actions));
        world_perform(world, &actions, cause, NULL);
}

static const size_t sizes[] = {16384, 8192, 4096, 1,    512, 513,   1000,  2048,
                               3001,  5000, 9000, 1536, 700, 12288, 20000, 100};

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

void op_alloc(struct ops *ops)
{
        struct world *world = &ops->world;
        int pool = ops->profile->pools[ops_choose(ops, 4)];
        int stream = ops_choose_stream(ops);
        size_t size = sizes[(ops->first_size + ops_choose(ops, ops->profile->sizes)) % (int)SIZES];
        bool async = ops_is_async(pool);
        int i;

        if (!has_room(ops) || world->pool_gone[pool] || (async && stream == TWIN_NONE))
                return;
        if ((async || ops_is_sync(pool)) && ops_choose(ops, 8) &&
            ops_magazine_alloc(ops, pool, async ? stream : TWIN_NONE, size))
                return;
        for (i = 0; i < REQUESTS; i++)
                if (!ops->requests[i].used)
                        break;
        if (i == REQUESTS)
                return;
        ops->requests[i] = (struct pending_request){
                .used = true,
                .request = {.pool = world->pools[pool],
                            .stream = async ? world->streams[stream].id : 0,
                            .size = size,
                            .may_wait = ops_choose(ops, 4) != 0,
                            .magazine = ops_magazine_of(ops, pool, async ? stream : TWIN_NONE)},
                .pool = pool,
                .stream = async ? stream : TWIN_NONE,
        };
        do
                step_request(ops, &ops->requests[i]);
        while (ops->requests[i].used && ops_choose(ops, 8) && !world->failure[0] &&
               !twin_is_full(&world->twin));
}

void op_continue(struct ops *ops)
{
        struct pending_request *pending = &ops->requests[ops_choose(ops, REQUESTS)];

        if (pending->used)
                step_request(ops, pending);
}

/* uses and frees */

void op_use(struct ops *ops)
{
        struct world *world = &ops->world;
        struct block *block = ops_choose_block(ops);
        int stream = ops_choose_stream(ops);
        const struct spm_allocation *allocation;
        int node;

        if (!block || stream == TWIN_NONE || block->use_count == USES)
                return;
        if (block->stream != TWIN_NONE && !twin_may_rely(&world->twin, stream, block->born))
                return;
        /* Synchronous memory is used in its own context only (F8). */
        if (block->stream == TWIN_NONE && world_context_of(world, stream) != (block->pool == 3))
                return;
        allocation = &block->allocation;
        ops_announce(ops, stream);
        if (twin_conflict(&world->twin, stream, allocation->generation, allocation->address,
                          allocation->address + allocation->size) != TWIN_NONE)
                world_fail(world, "G1: two owners of one byte at once, on stream %d", stream);
        node = twin_submit(&world->twin, stream);
        twin_touch(&world->twin, node, allocation->generation, allocation->address,
                   allocation->address + allocation->size);
        block->uses[block->use_count++] = node;
        world_trace(world, "use of %#llx on stream %d: node %d",
                    (unsigned long long)allocation->address, stream, node);
}

static bool uses_are_executed(const struct ops *ops, const struct block *block)
{
        int i;

        for (i = 0; i < block->use_count; i++)
                if (!twin_is_executed(&ops->world.twin, block->uses[i]))
                        return false;
        return true;
}

static bool may_free_on(const struct ops *ops, const struct block *block, int stream)
{
        const struct twin *twin = &ops->world.twin;
        int i;

        for (i = 0; i < block->use_count; i++)
                if (!twin_is_executed(twin, block->uses[i]) &&
                    !twin_may_rely(twin, stream, block->uses[i]))
                        return false;
        return true;
}

void op_free(struct ops *ops)
{
        struct world *world = &ops->world;
        struct block *block = ops_choose_block(ops);
        int stream = ops_choose_stream(ops);
        bool async = ops_choose(ops, 2);
        struct spm_actions actions = {0};
        struct spm_allocation freed;
        struct world_cause cause;
        enum spm_free_kind kind;
        enum spm_status status;

        if (!block)
                return;
        async = async && block->allocation.kind != SPM_POOL_HOST;
        if (block->stream != TWIN_NONE)
                async = async || ops_choose(ops, 4);
        if (async && (stream == TWIN_NONE || !may_free_on(ops, block, stream)))
                return;
        if (!async && block->stream != TWIN_NONE && !uses_are_executed(ops, block))
                return;
        if (async)
                twin_pretend(&world->twin, stream);
        kind = async                                     ? SPM_FREE_ASYNC
               : block->allocation.kind == SPM_POOL_HOST ? SPM_FREE_HOST
                                                         : SPM_FREE_SYNC;
        world_trace(world, "free of %#llx, pool %d, on stream %d",
                    (unsigned long long)block->allocation.address, block->pool,
                    async ? stream : TWIN_NONE);
        if (ops_choose(ops, 8) == 0 ||
            !ops_magazine_free(ops, block, async ? stream : TWIN_NONE, &freed)) {
                ops_magazine_flush(ops, block->pool);
                status = spm_free(world->model, block->allocation.address,
                                  block->allocation.generation, kind,
                                  async ? world->streams[stream].id : 0, &freed, &actions);
                if (status)
                        world_fail(world, "free: %s", spm_status_name(status));
                if (status)
                        return;
        }
        if (freed.generation != block->allocation.generation ||
            freed.size != block->allocation.size)
                world_fail(world, "free: what was freed is not what was allocated");
        block->used = false;
        world_count_live(world, block->allocation.address,
                         block->allocation.address + block->allocation.reserved, false);
        ops->used[block->pool] -= block->allocation.size;
        ops->count[block->pool]--;
        ops->last_freed = block->allocation;
        ops_note_freed(ops, &freed, block->pool);
        cause = ops_on_behalf_of(async ? stream : TWIN_NONE);
        cause.frees_on_legacy = async && world->twin.streams[stream].kind == SPM_STREAM_LEGACY;
        world_perform(world, &actions, cause, NULL);
}

void op_bad_free(struct ops *ops)
{
        struct world *world = &ops->world;
        struct block *block = ops_choose_block(ops);
        uint64_t hash = spm_hash(world->model);
        struct spm_actions actions;
        enum spm_status status = SPM_E_FOREIGN;

        switch (ops_choose(ops, 3)) {
        case 0:
                status = spm_free(world->model, 0x42, 0, SPM_FREE_SYNC, 0, NULL, &actions);
                break;
        case 1:
                if (block)
                        status = spm_free(world->model, block->allocation.address + 1, 0,
                                          SPM_FREE_SYNC, 0, NULL, &actions);
                break;
        case 2:
                if (ops->last_freed.address)
                        status = spm_free(world->model, ops->last_freed.address,
                                          ops->last_freed.generation, SPM_FREE_SYNC, 0, NULL,
                                          &actions);
                break;
        }
        if (status == SPM_OK || spm_hash(world->model) != hash)
                world_fail(world, "a bad free changed something");
}

void op_export(struct ops *ops)
{
        struct block *block = ops_choose_block(ops);

        if (block && ops_choose(ops, 8) == 0)
                ops_expect(ops, "export", spm_export(ops->world.model, block->allocation.address));
}
