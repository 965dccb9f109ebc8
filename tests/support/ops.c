/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops -- bytes become a correct program
 */

#include "ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ladder.h"
#include "world.h"

#define BLOCKS   24
#define USES     12
#define CALLS    4
#define REQUESTS 2

struct block {
        bool used;
        struct spm_allocation allocation;
        int pool;
        int stream; /* number, TWIN_NONE for pools without streams */
        int born;   /* the absorbed allocation */
        int uses[USES];
        int use_count;
        bool exported;
};

enum call_kind { CALL_NONE, CALL_RECORD, CALL_WAIT, CALL_SYNC };

/* A driver call of another thread, begun and not ended. */
struct call {
        enum call_kind kind;
        struct spm_ticket ticket;
        struct spm_scope scope;
        int number; /* of its stream or context */
        int event;
        int node;  /* of the event, as the driver saw it */
        bool made; /* the driver was called already */
        bool ok;
        enum spm_sync how;
        int targets[TWIN_STREAMS]; /* ends to be executed */
        int target_count;
};

struct pending_request {
        bool used;
        struct spm_request request;
        int pool;
        int stream;
        int steps;
};

/* The first byte narrows the program down, so that streams meet at the same memory more often. */
struct profile {
        int pools[4]; /* to choose from */
        int sizes;    /* how many, from the front of the list */
        int streams;  /* how many, from ... */
        int first;    /* ... this one */
        bool alive;   /* nothing ends, is captured or exported */
};

static const struct profile profiles[] = {
        {{0, 1, 2, 3}, 16, TWIN_STREAMS, 0, false}, /* everything */
        {{0, 1, 2, 4}, 16, TWIN_STREAMS, 0, false},
        {{0, 0, 0, 0}, 1, 3, 2, true},  /* a blocking stream, and two that do not block */
        {{0, 0, 0, 0}, 2, 3, 0, true},  /* the legacy stream, and two blocking ones */
        {{0, 0, 0, 1}, 2, 3, 3, true},  /* two that do not block, and a thread's own */
        {{0, 0, 0, 0}, 3, 4, 4, false}, /* two contexts */
        {{2, 2, 2, 2}, 3, 4, 1, true},  /* synchronous */
        {{1, 1, 1, 1}, 2, 2, 3, true},  /* two streams, and a cap */
};

struct ops {
        struct world world;
        const struct profile *profile;
        struct block blocks[BLOCKS];
        struct call calls[CALLS];
        struct pending_request requests[REQUESTS];
        struct ops_result *result;
        const struct ops_options *options;
        size_t host_allocs;
        uint64_t used[WORLD_POOLS]; /* what the program holds, as it counts itself */
        uint64_t count[WORLD_POOLS];
        struct spm_allocation last_freed;
};

static const struct world_cause NO_CAUSE = {.self = TWIN_NONE};

static uint64_t mix(uint64_t hash, uint64_t number)
{
        return (hash ^ number) * 0x100000001b3u + (hash >> 29);
}

/* set-up */

static void *host_alloc(size_t count, size_t size, void *user)
{
        struct ops *ops = user;
        size_t at = ops->options->fail_host_at;

        ops->host_allocs++;
        if (at && ops->host_allocs >= at && (ops->host_allocs - at) % 7 == 0)
                return NULL;
        return calloc(count, size);
}

static void host_free(void *memory, void *user)
{
        (void)user;
        free(memory);
}

static bool add_stream(struct ops *ops, int context, enum spm_stream_kind kind)
{
        struct world *world = &ops->world;
        int number = world->stream_count;

        if (number >= TWIN_STREAMS)
                return true;
        world->streams[number] = (struct world_stream){0};
        if (spm_stream_add(world->model, world->contexts[context], kind,
                           &world->streams[number].id))
                return false;
        twin_add_stream(&world->twin, number, context, kind);
        world->stream_count++;
        return true;
}

static bool add_pools(struct ops *ops)
{
        struct world *world = &ops->world;
        struct spm_pool_config base = {
                .grain = WORLD_PAGE,
                .segment_size = 4 * WORLD_PAGE,
                .align = 512,
        };
        struct spm_pool_config configs[WORLD_POOLS];
        int i;

        for (i = 0; i < WORLD_POOLS; i++)
                configs[i] = base;
        configs[0].kind = SPM_POOL_ASYNC;
        configs[1].kind = SPM_POOL_ASYNC;
        configs[1].release_threshold = 6 * WORLD_PAGE;
        configs[1].max_size = 16 * WORLD_PAGE;
        configs[2].kind = SPM_POOL_SYNC;
        configs[2].context = world->contexts[0];
        configs[2].release_needs_idle = true;
        configs[2].large_size = 3000;
        configs[2].large_align = 4096;
        configs[3].kind = SPM_POOL_SYNC;
        configs[3].context = world->contexts[1];
        configs[3].keep = 2 * WORLD_PAGE;
        configs[4].kind = SPM_POOL_HOST;
        configs[4].context = world->contexts[0];
        configs[4].provider = SPM_PROVIDER_MODEL;
        configs[4].max_size = 12 * WORLD_PAGE;
        for (i = 0; i < WORLD_POOLS; i++)
                if (spm_pool_create(world->model, &configs[i], &world->pools[i]))
                        return false;
        return true;
}

static bool set_up(struct ops *ops)
{
        struct world *world = &ops->world;
        struct spm_config config = {
                .alloc = host_alloc,
                .free = host_free,
                .user = ops,
                .batch_blocks = 3,
                .batch_bytes = 8192,
                .pending_limit = 6 * WORLD_PAGE,
        };
        int i;

        if (spm_model_new(&config, &world->model))
                return false;
        if (spm_context_add(world->model, 0, &world->contexts[0]) ||
            spm_context_add(world->model, 0, &world->contexts[1]))
                return false;
        if (!add_stream(ops, 0, SPM_STREAM_LEGACY) || !add_stream(ops, 0, SPM_STREAM_BLOCKING) ||
            !add_stream(ops, 0, SPM_STREAM_BLOCKING) ||
            !add_stream(ops, 0, SPM_STREAM_NON_BLOCKING) ||
            !add_stream(ops, 0, SPM_STREAM_NON_BLOCKING) ||
            !add_stream(ops, 0, SPM_STREAM_PER_THREAD) ||
            !add_stream(ops, 1, SPM_STREAM_NON_BLOCKING) ||
            !add_stream(ops, 1, SPM_STREAM_BLOCKING))
                return false;
        for (i = 0; i < WORLD_EVENTS; i++) {
                world->event_nodes[i] = TWIN_NONE;
                if (spm_event_add(world->model, &world->events[i]))
                        return false;
        }
        return add_pools(ops);
}

/* choices */

static int choose(struct ops *ops, int count)
{
        return world_byte(&ops->world) % count;
}

/* May the program use this stream now? On the legacy stream not while a blocking one captures. */
static bool may_use(const struct ops *ops, int stream)
{
        const struct world *world = &ops->world;
        const struct twin_stream *self = &world->twin.streams[stream];
        int i;

        if (world->streams[stream].retired || world->streams[stream].capturing ||
            world->context_gone[self->context])
                return false;
        if (self->kind != SPM_STREAM_LEGACY)
                return true;
        for (i = 0; i < world->stream_count; i++)
                if (world->streams[i].capturing && world_context_of(world, i) == self->context &&
                    world->twin.streams[i].kind != SPM_STREAM_NON_BLOCKING)
                        return false;
        return true;
}

static int choose_number(struct ops *ops)
{
        const struct profile *profile = ops->profile;
        int count = ops->world.stream_count - profile->first;

        return profile->first + choose(ops, count < profile->streams ? count : profile->streams);
}

/* Return: TWIN_NONE if the chosen one may not be used. */
static int choose_stream(struct ops *ops)
{
        int stream = choose_number(ops);

        return may_use(ops, stream) ? stream : TWIN_NONE;
}

static struct block *choose_block(struct ops *ops)
{
        int first = choose(ops, BLOCKS);
        int i;

        for (i = 0; i < BLOCKS; i++) {
                struct block *block = &ops->blocks[(first + i) % BLOCKS];

                if (block->used)
                        return block;
        }
        return NULL;
}

static struct world_cause on_behalf_of(int stream)
{
        return (struct world_cause){.self = stream};
}

static void expect(struct ops *ops, const char *what, enum spm_status status)
{
        if (status == SPM_OK || (status == SPM_E_HOST_MEMORY && ops->world.host_may_fail))
                return;
        world_fail(&ops->world, "%s: %s", what, spm_status_name(status));
}

/* allocations */

/* I2, I8: nobody may still be at work where the new owner may be next. */
static void check_served(struct ops *ops, const struct spm_allocation *allocation, int stream)
{
        struct world *world = &ops->world;
        uint64_t end = allocation->address + allocation->size;
        int i;

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

                if ((i == stream || follows) && may_use(ops, i) &&
                    twin_conflict(&world->twin, i, allocation->generation, allocation->address,
                                  end) != TWIN_NONE)
                        world_fail(world, "I2: served to stream %d, unsafe on %d", stream, i);
        }
}

static void check_apart(struct ops *ops, const struct spm_allocation *allocation)
{
        int i;

        if (allocation->reserved < allocation->size || allocation->address % 512 ||
            allocation->address < allocation->segment_base ||
            allocation->address + allocation->reserved >
                    allocation->segment_base + allocation->segment_size)
                world_fail(&ops->world, "I1: a block outside its segment, or crooked");
        for (i = 0; i < BLOCKS; i++) {
                const struct spm_allocation *other = &ops->blocks[i].allocation;

                if (ops->blocks[i].used &&
                    other->address < allocation->address + allocation->reserved &&
                    allocation->address < other->address + other->reserved)
                        world_fail(&ops->world, "I1: two live blocks overlap");
        }
}

static void own(struct ops *ops, const struct spm_allocation *allocation, int pool, int stream)
{
        int i;

        check_apart(ops, allocation);
        check_served(ops, allocation, stream);
        ops->result->allocs++;
        ops->result->reused += allocation->reused;
        ops->result->hash = mix(ops->result->hash, allocation->address);
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

        for (i = 0; i < BLOCKS; i++)
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
        world_perform(world, &actions, NO_CAUSE, NULL);
}

static void step_request(struct ops *ops, struct pending_request *pending)
{
        struct world *world = &ops->world;
        struct world_cause cause = on_behalf_of(pending->stream);
        struct spm_allocation allocation;
        struct spm_actions actions;
        enum spm_status status;

        if (world->pool_gone[pending->pool] ||
            (pending->stream != TWIN_NONE && !may_use(ops, pending->stream))) {
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
        if (status == SPM_E_OUT_OF_MEMORY)
                ops->result->out_of_memory++;
        else
                expect(ops, "alloc", status);
        if (status) {
                world_perform(world, &actions, cause, NULL);
                return;
        }
        /* Another thread may look at the stream before the belt is on. */
        if (pending->stream != TWIN_NONE && choose(ops, 8) == 0)
                sync_at_once(ops, pending->stream);
        if (world_perform(world, &actions, cause, NULL)) {
                own(ops, &allocation, pending->pool, pending->stream);
                return;
        }
        expect(ops, "undo", spm_alloc_undo(world->model, allocation.address, &actions));
        world_perform(world, &actions, cause, NULL);
}

static void op_alloc(struct ops *ops)
{
        static const size_t sizes[] = {16384, 8192, 4096, 1,    512, 513,   1000,  2048,
                                       3001,  5000, 9000, 1536, 700, 12288, 20000, 100};
        struct world *world = &ops->world;
        int pool = ops->profile->pools[choose(ops, 4)];
        int stream = choose_stream(ops);
        bool async = pool < 2;
        int i;

        if (!has_room(ops) || world->pool_gone[pool] || (async && stream == TWIN_NONE))
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
                            .size = sizes[choose(ops, ops->profile->sizes)],
                            .may_wait = choose(ops, 4) != 0},
                .pool = pool,
                .stream = async ? stream : TWIN_NONE,
        };
        do
                step_request(ops, &ops->requests[i]);
        while (ops->requests[i].used && choose(ops, 8) && !world->failure[0] &&
               !twin_is_full(&world->twin));
}

static void op_continue(struct ops *ops)
{
        struct pending_request *pending = &ops->requests[choose(ops, REQUESTS)];

        if (pending->used)
                step_request(ops, pending);
}

/* uses and frees */

static void op_use(struct ops *ops)
{
        struct world *world = &ops->world;
        struct block *block = choose_block(ops);
        int stream = choose_stream(ops);
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

static void op_free(struct ops *ops)
{
        struct world *world = &ops->world;
        struct block *block = choose_block(ops);
        int stream = choose_stream(ops);
        bool async = choose(ops, 2);
        struct spm_actions actions;
        struct spm_allocation freed;
        enum spm_status status;

        if (!block)
                return;
        if (block->stream != TWIN_NONE)
                async = async || choose(ops, 4);
        if (async && (stream == TWIN_NONE || !may_free_on(ops, block, stream)))
                return;
        if (!async && block->stream != TWIN_NONE && !uses_are_executed(ops, block))
                return;
        if (async)
                twin_pretend(&world->twin, stream);
        world_trace(world, "free of %#llx, pool %d, on stream %d",
                    (unsigned long long)block->allocation.address, block->pool,
                    async ? stream : TWIN_NONE);
        status = spm_free(world->model, block->allocation.address, block->allocation.generation,
                          async ? SPM_FREE_ASYNC : SPM_FREE_SYNC,
                          async ? world->streams[stream].id : 0, &freed, &actions);
        if (status) {
                world_fail(world, "free: %s", spm_status_name(status));
                return;
        }
        if (freed.generation != block->allocation.generation ||
            freed.size != block->allocation.size)
                world_fail(world, "free: what was freed is not what was allocated");
        block->used = false;
        ops->used[block->pool] -= block->allocation.size;
        ops->count[block->pool]--;
        ops->last_freed = block->allocation;
        world_perform(world, &actions, on_behalf_of(async ? stream : TWIN_NONE), NULL);
}

static void op_bad_free(struct ops *ops)
{
        struct world *world = &ops->world;
        struct block *block = choose_block(ops);
        uint64_t hash = spm_hash(world->model);
        struct spm_actions actions;
        enum spm_status status = SPM_E_FOREIGN;

        switch (choose(ops, 3)) {
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

static void op_export(struct ops *ops)
{
        struct block *block = choose_block(ops);

        if (block && choose(ops, 8) == 0)
                expect(ops, "export", spm_export(ops->world.model, block->allocation.address));
}

/* order and observation, in two halves */

static void make_call(struct ops *ops, struct call *call)
{
        struct world *world = &ops->world;
        struct twin *twin = &world->twin;

        if (call->made)
                return;
        call->made = true;
        world_trace(world, "call %d made: scope %d number %d event %d", call->kind,
                    call->scope.kind, call->number, call->event);
        /* What the driver would refuse. */
        if (call->kind != CALL_SYNC && call->scope.kind == SPM_SCOPE_STREAM &&
            !may_use(ops, call->number)) {
                call->ok = false;
                return;
        }
        if (call->scope.kind == SPM_SCOPE_CONTEXT &&
            (world->captures[call->number] || world->context_gone[call->number])) {
                call->ok = false;
                return;
        }
        if (call->kind == CALL_RECORD) {
                call->node = call->scope.kind == SPM_SCOPE_STREAM
                                     ? twin_submit(twin, call->number)
                                     : twin_record_context(twin, call->number);
                world->event_nodes[call->event] = call->node;
        } else if (call->kind == CALL_WAIT) {
                int node = world->event_nodes[call->event];

                if (call->scope.kind == SPM_SCOPE_STREAM)
                        twin_wait(twin, call->number, node);
                else
                        twin_wait_context(twin, call->number, node);
        } else if (call->scope.kind == SPM_SCOPE_EVENT) {
                call->targets[call->target_count++] = world->event_nodes[call->event];
        }
}

/* What a synchronisation that begins now waits for; one of an event looks when it is made. */
static void set_targets(struct ops *ops, struct call *call)
{
        struct twin *twin = &ops->world.twin;
        int i;

        if (call->scope.kind == SPM_SCOPE_CONTEXT)
                call->targets[call->target_count++] = twin_record_context(twin, call->number);
        for (i = 0; i < ops->world.stream_count && call->scope.kind == SPM_SCOPE_STREAM; i++)
                if (twin_answers_for(twin, call->number, i))
                        call->targets[call->target_count++] = twin->streams[i].end;
}

static void end_call(struct ops *ops, struct call *call)
{
        struct world *world = &ops->world;
        struct spm_actions actions = {0};
        int i;

        make_call(ops, call);
        world_trace(world, "call %d ends: scope %d number %d event %d %s", call->kind,
                    call->scope.kind, call->number, call->event, call->ok ? "ok" : "failed");
        if (call->kind == CALL_RECORD)
                spm_record_end(world->model, &call->ticket, call->ok);
        else if (call->kind == CALL_WAIT)
                spm_wait_end(world->model, &call->ticket, call->ok);
        if (call->kind == CALL_SYNC) {
                for (i = 0; i < call->target_count && call->ok; i++) {
                        if (call->how == SPM_SYNC_WAIT)
                                twin_execute(&world->twin, call->targets[i]);
                        call->ok = twin_is_executed(&world->twin, call->targets[i]);
                }
                spm_sync_end(world->model, &call->ticket, call->how, call->ok, &actions);
                world_perform(world, &actions, NO_CAUSE, NULL);
        }
        call->kind = CALL_NONE;
}

static void op_end(struct ops *ops)
{
        struct call *call = &ops->calls[choose(ops, CALLS)];

        if (call->kind != CALL_NONE)
                end_call(ops, call);
}

/* Begins a call of @kind; then often makes and ends it at once. */
static void begin_call(struct ops *ops, enum call_kind kind)
{
        struct world *world = &ops->world;
        struct call *call = &ops->calls[choose(ops, CALLS)];
        struct call next = {.kind = kind, .ok = choose(ops, 16) != 0};
        struct spm_actions actions = {0};
        struct world_cause cause = NO_CAUSE;
        int scope = choose(ops, 8);
        enum spm_status status;

        next.event = choose(ops, WORLD_EVENTS);
        next.number = choose_number(ops);
        next.how = choose(ops, 2) ? SPM_SYNC_WAIT : SPM_SYNC_QUERY;
        next.scope = (struct spm_scope){SPM_SCOPE_STREAM, world->streams[next.number].id};
        if (scope == 0) {
                next.number = choose(ops, 2);
                next.scope = (struct spm_scope){SPM_SCOPE_CONTEXT, world->contexts[next.number]};
                next.how = SPM_SYNC_WAIT;
        } else if (kind == CALL_SYNC && scope < 4) {
                next.scope = (struct spm_scope){SPM_SCOPE_EVENT, world->events[next.event]};
        }
        if (call->kind != CALL_NONE)
                return;
        if (next.scope.kind == SPM_SCOPE_STREAM && !may_use(ops, next.number))
                return;
        if (next.scope.kind == SPM_SCOPE_CONTEXT && world->context_gone[next.number])
                return;
        if (next.scope.kind == SPM_SCOPE_STREAM)
                cause = on_behalf_of(next.number);
        if (kind == CALL_RECORD)
                status = spm_record_begin(world->model, world->events[next.event], next.scope,
                                          &next.ticket, &actions);
        else if (kind == CALL_WAIT)
                status = spm_wait_begin(world->model, next.scope, world->events[next.event],
                                        &next.ticket);
        else
                status = spm_sync_begin(world->model, next.scope, &next.ticket);
        expect(ops, "begin", status);
        world_perform(world, &actions, cause, NULL);
        if (status)
                return;
        *call = next;
        world_trace(world, "call %d begins: scope %d number %d event %d", kind, next.scope.kind,
                    next.number, next.event);
        if (kind == CALL_SYNC)
                set_targets(ops, call);
        if (choose(ops, 3))
                make_call(ops, call);
        if (choose(ops, 4))
                end_call(ops, call);
}

/* A record that nobody announces: a graph's, or a launch attribute's (H12). */
static void op_taint(struct ops *ops)
{
        struct world *world = &ops->world;
        int event = choose(ops, WORLD_EVENTS);
        int stream = choose_stream(ops);

        if (stream == TWIN_NONE || choose(ops, 4))
                return;
        expect(ops, "taint", spm_event_taint(world->model, world->events[event], false));
        world->event_nodes[event] = twin_submit(&world->twin, stream);
}

static void op_replace_event(struct ops *ops)
{
        struct world *world = &ops->world;
        int event = choose(ops, WORLD_EVENTS);
        spm_event fresh;
        int i;

        for (i = 0; i < CALLS; i++)
                if (ops->calls[i].kind != CALL_NONE && ops->calls[i].event == event)
                        return;
        if (spm_event_add(world->model, &fresh))
                return;
        expect(ops, "remove event", spm_event_remove(world->model, world->events[event]));
        world->events[event] = fresh;
        world->event_nodes[event] = TWIN_NONE;
}

/* life of streams, contexts and pools */

static void op_capture(struct ops *ops)
{
        struct world *world = &ops->world;
        int stream = choose(ops, world->stream_count);
        struct world_stream *self = &world->streams[stream];
        struct world_cause cause = {.self = stream, .tail = true};
        struct spm_actions actions;
        int context = world_context_of(world, stream);

        if (self->retired || world->context_gone[context] ||
            world->twin.streams[stream].kind == SPM_STREAM_LEGACY)
                return;
        if (self->capturing) {
                expect(ops, "capture end", spm_capture_end(world->model, self->id));
                self->capturing--;
                world->captures[context]--;
                return;
        }
        if (choose(ops, 3))
                return;
        cause.tail = !world->captures[context];
        expect(ops, "capture begin", spm_capture_begin(world->model, self->id, &actions));
        world_perform(world, &actions, cause, NULL);
        self->capturing++;
        world->captures[context]++;
}

static void op_stream(struct ops *ops)
{
        struct world *world = &ops->world;
        int stream = choose_stream(ops);
        struct world_cause cause = {.self = stream, .tail = true};
        struct spm_actions actions;
        int context;

        if (stream == TWIN_NONE || choose(ops, 3) || world->stream_count == TWIN_STREAMS ||
            world->twin.streams[stream].kind == SPM_STREAM_LEGACY)
                return;
        context = world_context_of(world, stream);
        cause.tail = !world->captures[context];
        expect(ops, "retire", spm_stream_retire(world->model, world->streams[stream].id, &actions));
        world_perform(world, &actions, cause, NULL);
        world->streams[stream].retired = true;
        if (!add_stream(ops, context, world->twin.streams[stream].kind) && !world->host_may_fail)
                world_fail(world, "a stream could not be added");
}

static void op_pool(struct ops *ops)
{
        static const uint64_t thresholds[] = {0, 2 * WORLD_PAGE, UINT64_MAX};
        struct world *world = &ops->world;
        int pool = choose(ops, WORLD_POOLS);
        int attribute = 1 + choose(ops, 8);
        uint64_t value = attribute == SPM_ATTR_RELEASE_THRESHOLD ? thresholds[choose(ops, 3)]
                                                                 : (uint64_t)choose(ops, 2);
        struct spm_actions actions;
        enum spm_status status;
        size_t released = 0;

        if (world->pool_gone[pool])
                return;
        if (choose(ops, 2)) {
                spm_pool_set_attribute(world->model, world->pools[pool],
                                       (enum spm_pool_attribute)attribute, value);
                return;
        }
        do {
                status = spm_trim(world->model, world->pools[pool],
                                  (size_t)choose(ops, 8) * WORLD_PAGE, &released, &actions);
                world_perform(world, &actions, NO_CAUSE, NULL);
        } while (status == SPM_AGAIN);
        expect(ops, "trim", status);
}

static void drop_blocks(struct ops *ops, int pool)
{
        int i;

        for (i = 0; i < BLOCKS; i++)
                if (ops->blocks[i].pool == pool)
                        ops->blocks[i].used = false;
        ops->used[pool] = 0;
        ops->count[pool] = 0;
        ops->world.pool_gone[pool] = true;
}

static void op_remove_context(struct ops *ops)
{
        struct world *world = &ops->world;
        struct spm_actions actions;
        enum spm_status status;

        if (world->context_gone[1] || choose(ops, 16))
                return;
        twin_execute_context(&world->twin, 1);
        do {
                status = spm_context_remove(world->model, world->contexts[1], &actions);
                world_perform(world, &actions, NO_CAUSE, NULL);
        } while (status == SPM_AGAIN);
        expect(ops, "context remove", status);
        world->context_gone[1] = true;
        world->captures[1] = 0;
        drop_blocks(ops, 3);
}

static void op_destroy_pool(struct ops *ops)
{
        struct world *world = &ops->world;
        struct spm_actions actions;
        enum spm_status status;

        if (world->pool_gone[1] || choose(ops, 16))
                return;
        do {
                status = spm_pool_destroy(world->model, world->pools[1], &actions);
                world_perform(world, &actions, NO_CAUSE, NULL);
        } while (status == SPM_AGAIN);
        expect(ops, "pool destroy", status);
        world->pool_gone[1] = true;
}

static void op_device(struct ops *ops)
{
        struct twin *twin = &ops->world.twin;
        int steps = choose(ops, 4) + 1;

        while (twin->count && steps--)
                twin_step(twin, choose(ops, 256) * twin->count / 256);
}

/* the loop */

static void step(struct ops *ops)
{
        static void (*const table[])(struct ops * ops) = {
                op_alloc,  op_alloc,   op_alloc,  op_continue,       op_use,           op_use,
                op_use,    op_free,    op_free,   op_free,           op_device,        op_end,
                op_end,    op_pool,    op_taint,  op_bad_free,       op_replace_event, /* 17 */
                op_stream, op_capture, op_export, op_remove_context, op_destroy_pool,
        };
        int count = ops->profile->alive ? 17 : (int)(sizeof(table) / sizeof(table[0]));
        int code = choose(ops, count + 8);

        if (code < count)
                table[code](ops);
        else if (code < count + 3)
                begin_call(ops, CALL_RECORD);
        else if (code < count + 6)
                begin_call(ops, CALL_WAIT);
        else
                begin_call(ops, CALL_SYNC);
}

static void check_figures(struct ops *ops)
{
        struct spm_stats stats;
        int i;

        for (i = 0; i < WORLD_POOLS; i++) {
                if (spm_stats(ops->world.model, ops->world.pools[i], &stats))
                        continue;
                if (stats.used_current != ops->used[i] || stats.live_blocks != ops->count[i])
                        world_fail(&ops->world, "I3: pool %d counts otherwise than the program", i);
                if (stats.rounded_current + stats.pending_bytes + stats.ready_bytes +
                            stats.sealed_bytes !=
                    stats.reserved_current)
                        world_fail(&ops->world, "I3: pool %d does not add up", i);
        }
}

void ops_run(const uint8_t *bytes, size_t size, const struct ops_options *options,
             struct ops_result *result)
{
        struct ops *ops = calloc(1, sizeof(*ops));
        struct world *world = &ops->world;
        int i;

        *result = (struct ops_result){0};
        ops->result = result;
        ops->options = options;
        twin_init(&world->twin);
        world->bytes = bytes;
        world->left = size;
        world->host_may_fail = options->fail_host_at != 0;
        world->trace = options->trace;
        ops->profile = &profiles[world_byte(world) % (sizeof(profiles) / sizeof(profiles[0]))];

        if (set_up(ops))
                while (world->left && !world->failure[0] && !twin_is_full(&world->twin)) {
                        step(ops);
                        world->steps++;
                        if (options->unchecked)
                                continue;
                        world_check(world, "a step");
                        check_figures(ops);
                }
        for (i = 0; i < CALLS && world->model; i++)
                if (ops->calls[i].kind != CALL_NONE)
                        end_call(ops, &ops->calls[i]);
        if (world->model)
                result->hash = mix(result->hash, spm_hash(world->model));
        spm_model_free(world->model);
        result->steps = world->steps;
        memcpy(result->failure, world->failure, sizeof(result->failure));
        free(ops);
}

void ops_random(uint64_t seed, uint8_t *bytes, size_t size)
{
        uint64_t x = seed * 0x9e3779b97f4a7c15u + 1;
        size_t i;

        for (i = 0; i < size; i++) {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                bytes[i] = (uint8_t)(x >> 32);
        }
}
