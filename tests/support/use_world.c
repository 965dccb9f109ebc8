/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Use world -- a model with a pool that tracks uses, a budget, and the twin beside it
 */

#include "use_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB    ((size_t)1 << 20)
#define DEVICE (6 * MIB)
#define LIMIT  (5 * MIB)

void use_world_fail(struct use_world *world, const char *what)
{
        if (!world->result->failure[0])
                snprintf(world->result->failure, sizeof(world->result->failure), "%s", what);
}

bool use_world_must(struct use_world *world, enum spm_status status, const char *what)
{
        if (status && !(status == SPM_E_HOST_MEMORY && world->result->host_failures))
                use_world_fail(world, what);
        return status == SPM_OK;
}

void use_world_expect(struct use_world *world, bool holds, const char *what)
{
        if (!holds)
                use_world_fail(world, what);
}

/* the device */

static void observe(struct use_world *world, struct spm_scope what, enum spm_sync how);

int use_world_number(const struct use_world *world, spm_stream stream)
{
        for (int i = 0; i < USE_STREAMS; i++)
                if (world->streams[i] == stream)
                        return i;
        return -1;
}

/* All that a stream has, or a context: what is seen is the real order. */
static struct use_set all_of(const struct use_world *world, spm_stream stream, spm_context context)
{
        struct use_set all = {{0}};

        for (int i = 0; i < USE_STREAMS; i++)
                if (stream ? world->streams[i] == stream : world->contexts[i % 2] == context)
                        use_set_join(&all, &world->twin.real[i]);
        return all;
}

static void done(struct use_world *world, spm_stamp stamp)
{
        struct spm_actions more;

        use_set_join(&world->twin.done, &world->stamps[stamp % USE_STAMPS]);
        spm_stamp_done(world->model, stamp, &more);
        use_world_carry_out(world, &more);
}

static void answer(struct use_world *world, const struct spm_action *action)
{
        struct spm_actions more;
        int stream;

        switch (action->kind) {
        case SPM_ACT_RECORD:
                world->stamps[action->stamp % USE_STAMPS] =
                        all_of(world, action->stream, action->context);
                spm_stamp_recorded(world->model, action->stamp, true, &more);
                use_world_carry_out(world, &more);
                break;
        case SPM_ACT_WAIT_STREAM:
                stream = use_world_number(world, action->stream);
                use_set_join(&world->twin.real[stream], &world->stamps[action->stamp % USE_STAMPS]);
                break;
        case SPM_ACT_WAIT_HOST:
                done(world, action->stamp);
                break;
        case SPM_ACT_POLL:
                if (action->stamp % 3 == 0)
                        done(world, action->stamp);
                break;
        case SPM_ACT_SYNC_CONTEXT:
                observe(world, (struct spm_scope){SPM_SCOPE_CONTEXT, action->context},
                        SPM_SYNC_POLL);
                break;
        default: /* memory is made up, and of idle streams nothing is known */
                break;
        }
}

void use_world_carry_out(struct use_world *world, const struct spm_actions *actions)
{
        for (unsigned int i = 0; i < actions->count; i++)
                answer(world, &actions->item[i]);
}

static void see(struct use_world *world, struct spm_scope what)
{
        struct use_set all = all_of(world, what.kind == SPM_SCOPE_STREAM ? what.id : 0, what.id);

        use_set_join(&world->twin.done, &all);
}

static void observe(struct use_world *world, struct spm_scope what, enum spm_sync how)
{
        struct spm_actions actions;
        struct spm_ticket ticket;

        if (!use_world_must(world, spm_sync_begin(world->model, what, &ticket),
                            "a synchronisation is refused"))
                return;
        see(world, what);
        spm_sync_end(world->model, &ticket, how, true, &actions);
        use_world_carry_out(world, &actions);
}

static bool wait_for(struct spm_scope what, void *user)
{
        struct use_world *world = user;

        if (what.kind == SPM_SCOPE_STREAM && use_world_number(world, what.id) == world->deaf)
                return false;
        see(world, what);
        return true;
}

/* The device makes the wait, whether or not the model could be told. */
static void tell_order(struct use_world *world, spm_stream from, spm_stream to)
{
        struct spm_scope first = {SPM_SCOPE_STREAM, from};
        struct spm_scope behind = {SPM_SCOPE_STREAM, to};
        struct spm_actions actions;
        struct spm_ticket ticket;
        enum spm_status status;
        spm_event event;

        if (!use_world_must(world, spm_event_add(world->model, &event), "an event"))
                return;
        status = spm_record_begin(world->model, event, first, &ticket, &actions);
        use_world_carry_out(world, &actions);
        if (use_world_must(world, status, "a record")) {
                spm_record_end(world->model, &ticket, true);
                spm_wait_begin(world->model, behind, event, &ticket);
                spm_wait_end(world->model, &ticket, true);
        }
        spm_event_remove(world->model, event);
}

void use_world_order(struct use_world *world, int from, int to)
{
        tell_order(world, world->streams[from], world->streams[to]);
        use_set_join(&world->twin.real[to], &world->twin.real[from]);
        use_set_join(&world->twin.told[to], &world->twin.told[from]);
}

void use_world_sync(struct use_world *world, int stream, bool whole)
{
        struct spm_scope what = {SPM_SCOPE_STREAM, world->streams[stream]};

        if (whole)
                what = (struct spm_scope){SPM_SCOPE_CONTEXT, world->contexts[stream % 2]};
        observe(world, what, SPM_SYNC_WAIT);
}

/* life of the world */

/* Whoever has to do without memory knows less than he might. */
static void *host_alloc(size_t count, size_t size, void *user)
{
        struct use_world *world = user;

        world->allocations++;
        if (world->fail_at && world->allocations >= world->fail_at &&
            (world->allocations - world->fail_at) % 7 == 0) {
                world->result->host_failures++;
                world->is_exact = false;
                return NULL;
        }
        return calloc(count, size);
}

static void host_free(void *memory, void *user)
{
        (void)user;
        free(memory);
}

/* Without ways of reuse that need a wait of its own, the model knows what the program does. */
static void make_pool(struct use_world *world)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .provider = SPM_PROVIDER_MODEL,
                .max_size = 16 * MIB,
                .release_threshold = 16 * MIB,
                .track_uses = true,
                .quarantine = world->bytes[0] & 2 ? MIB : 0,
        };

        use_world_must(world, spm_pool_create(world->model, &config, &world->pool), "a pool");
        if (!world->is_exact)
                return;
        spm_pool_set_attribute(world->model, world->pool, SPM_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES,
                               0);
        spm_pool_set_attribute(world->model, world->pool,
                               SPM_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 0);
}

void use_world_begin(struct use_world *world, const uint8_t *bytes, size_t size,
                     struct use_result *result)
{
        static const uint8_t none[1];
        struct spm_config config = {.alloc = host_alloc, .free = host_free, .user = world};

        memset(world, 0, sizeof(*world));
        world->bytes = size ? bytes : none;
        world->size = size;
        world->at = 1;
        world->result = result;
        world->is_exact = world->bytes[0] & 1;
        use_world_must(world, spm_model_new(&config, &world->model), "a model");
        for (int i = 0; i < 2; i++)
                use_world_must(world, spm_context_add(world->model, 0, &world->contexts[i]),
                               "a context");
        for (int i = 0; i < USE_STREAMS; i++)
                use_world_must(world,
                               spm_stream_add(world->model, world->contexts[i % 2],
                                              SPM_STREAM_NON_BLOCKING, &world->streams[i]),
                               "a stream");
        make_pool(world);
        for (int i = 1; i < 4; i++)
                use_world_must(world, spm_tag_add(world->model, &"abc"[i - 1], &world -> tags[i]),
                               "a tag");
        spm_budget_init(&world->device, DEVICE, NULL);
        spm_budget_init(&world->budget, LIMIT, &world->device);
        world->account.wait = wait_for;
        world->account.user = world;
        world->deaf = -1;
        use_world_must(world,
                       spm_account_open(world->model, &world->account, world->pool, &world->budget),
                       "an account");
}

void use_world_end(struct use_world *world)
{
        struct spm_budget_figures figures;

        spm_account_close(&world->account);
        spm_budget_look(&world->device, &figures);
        use_world_expect(world, !figures.reserved,
                         "B41 a budget has something left when all is closed");
        spm_model_free(world->model);
}

void use_world_check(struct use_world *world)
{
        struct spm_budget_figures figures;
        struct spm_outstanding outstanding;
        char text[160];

        if (!spm_check(world->model, text, sizeof(text)))
                use_world_fail(world, text);
        spm_account_settle(world->model, &world->account);
        spm_budget_look(&world->budget, &figures);
        spm_outstanding(world->model, world->pool, &outstanding);
        use_world_expect(world,
                         world->account.live == outstanding.live_bytes &&
                                 world->account.pending <= outstanding.pending_bytes &&
                                 figures.reserved == world->account.live + world->account.pending,
                         "B41 what is reserved is not what is outstanding");
        use_world_expect(world, figures.reserved_high <= LIMIT, "B35 the limit was exceeded");
        use_world_expect(world,
                         outstanding.live_bytes + outstanding.pending_bytes ==
                                 outstanding.outstanding_bytes,
                         "B20 live and pending are not what is outstanding");
}

/* memory */

static void remember(struct use_world *world, const struct spm_allocation *allocation, int stream)
{
        struct use_twin *twin = &world->twin;
        struct use_block *block = &twin->blocks[twin->block_count++];

        if (use_twin_meets(twin, allocation->address, allocation->reserved, stream))
                use_world_fail(world, "I2 memory is served while a use of it may be running");
        *block = (struct use_block){
                .id = spm_block_id(allocation),
                .size = allocation->size,
                .reserved = allocation->reserved,
                .is_live = true,
        };
        use_twin_note(block, use_twin_submit(twin, stream), true);
        world->result->reused += allocation->reused;
}

void use_world_alloc(struct use_world *world, int stream, size_t size, unsigned int tag)
{
        struct spm_account_request request = {
                .request = {.stream = world->streams[stream],
                            .size = size,
                            .tag = world->tags[tag],
                            .may_wait = true},
        };
        struct spm_allocation allocation;
        struct spm_shortage shortage;
        struct spm_actions actions;
        enum spm_status status;

        do {
                status = spm_account_alloc(world->model, &world->account, &request, &allocation,
                                           &shortage, &actions);
                use_world_carry_out(world, &actions);
        } while (status == SPM_AGAIN);
        if (status == SPM_OK) {
                remember(world, &allocation, stream);
                return;
        }
        if (status != SPM_E_OUT_OF_BUDGET && status != SPM_E_OUT_OF_MEMORY)
                use_world_must(world, status, "an allocation is refused for no reason");
        if (status != SPM_E_OUT_OF_BUDGET)
                return;
        world->result->refused++;
        use_world_expect(world, shortage.current + shortage.requested > shortage.limit,
                         "B37 the budget refuses what it has");
}

void use_world_forget(struct use_world *world, struct use_block *block, int stream)
{
        block->is_live = false;
        block->freed = use_twin_submit(&world->twin, stream);
        block->life = SPM_LIFE_LIVE;
        use_world_look(world, block);
        use_world_expect(world, block->life != SPM_LIFE_LIVE, "B5 what was freed is live");
}

void use_world_free(struct use_world *world, struct use_block *block, int stream)
{
        struct spm_actions actions;

        use_world_must(world,
                       spm_account_free(world->model, &world->account, block->id.address,
                                        block->id.generation, SPM_FREE_ASYNC,
                                        world->streams[stream], NULL, &actions),
                       "a free of a live block is refused");
        use_world_forget(world, block, stream);
        use_world_carry_out(world, &actions);
}

void use_world_reap(struct use_world *world, int deaf)
{
        struct spm_actions actions;
        struct spm_reaped reaped;
        struct spm_outstanding before;
        struct spm_outstanding after;
        enum spm_status status;

        spm_outstanding(world->model, world->pool, &before);
        world->deaf = deaf;
        status = spm_reap_pending(world->model, world->pool, wait_for, world, &reaped, &actions);
        world->deaf = -1;
        spm_outstanding(world->model, world->pool, &after);
        use_world_expect(world, before.pending_bytes - after.pending_bytes == reaped.bytes,
                         "B23 a reap gives what it does not have");
        use_world_expect(world, status != SPM_OK || !after.stream_bytes,
                         "B23 a reap leaves something");
        if (status != SPM_E_DRIVER || deaf < 0)
                use_world_must(world, status, "B24 a reap fails for no reason");
        use_world_carry_out(world, &actions);
}
