/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Magazine -- freed blocks of a stream that one thread has at hand
 *
 * Cost of an allocation or a free that the magazine serves: no lock, no
 * allocation, no call of the caller's; one exchange to enter, unless the
 * caller has a fence, and one compare-and-swap in a free, by which the second
 * of two threads that free the same block sees that it is too late.
 */

#include "magazine.h"

#include "front.h"
#include "host.h"
#include "limbo.h"
#include "recall.h"
#include "ripe.h"
#include "state.h"

#define SMALL_MAX   32                    /* blocks of a class */
#define SMALL_BYTES ((uint64_t)512 << 10) /* of a class */
#define LARGE_BYTES SPM_HEAP_SMALL        /* one block; more would cut up the heap of large ones */
#define FILL        8
#define GENERATIONS 4096 /* reserved at once */

/* the owner, without the lock */

/* The flag is looked at only after everybody can see that we are inside. */
static bool enter(struct spm_magazine *magazine)
{
        if (magazine->is_fenced) {
                atomic_store_explicit(&magazine->inside, 1, memory_order_relaxed);
                atomic_signal_fence(memory_order_seq_cst);
        } else {
                atomic_exchange(&magazine->inside, 1);
        }
        if (!atomic_load(&magazine->recalled))
                return true;
        atomic_store_explicit(&magazine->inside, 0, memory_order_release);
        return false;
}

static void leave(struct spm_magazine *magazine)
{
        atomic_store_explicit(&magazine->inside, 0, memory_order_release);
}

/* Only the owner writes. */
static inline void add(_Atomic(int64_t) *figure, int64_t more)
{
        atomic_store_explicit(figure, atomic_load_explicit(figure, memory_order_relaxed) + more,
                              memory_order_relaxed);
}

static inline void count(_Atomic(uint64_t) *figure)
{
        atomic_store_explicit(figure, atomic_load_explicit(figure, memory_order_relaxed) + 1,
                              memory_order_relaxed);
}

/* Where a block of so many bytes is, with its size rounded. */
static struct spm_block **find_held(struct spm_magazine *magazine, size_t *size,
                                    unsigned int *klass)
{
        const struct spm_pool_config *config = &magazine->pool->config;
        bool is_large = config->large_size && *size > config->large_size;
        size_t align = config->align;
        uint32_t i;

        *size = (*size + align - 1) & ~(align - 1);
        *klass = spm_slab_class(magazine->pool, *size, size);
        if (*klass != SPM_NO_CLASS)
                return magazine->small[*klass] ? &magazine->small[*klass] : NULL;
        if (is_large && config->large_align > align)
                align = config->large_align;
        for (i = magazine->large_count; i--;)
                if (magazine->large[i]->size == *size &&
                    !(magazine->large[i]->address & (align - 1)))
                        return &magazine->large[i];
        return NULL;
}

static SPM_MAY_RACE bool has_room(const struct spm_magazine *magazine,
                                  const struct spm_block *block)
{
        if (!block->is_slot)
                return block->size <= LARGE_BYTES && magazine->large_count < SPM_MAGAZINE_LARGE;
        return magazine->small_count[block->klass] < SMALL_MAX &&
               (magazine->small_count[block->klass] + 1) * block->size <= SMALL_BYTES;
}

static void put(struct spm_magazine *magazine, struct spm_block *block)
{
        magazine->held++;
        if (!block->is_slot) {
                magazine->large[magazine->large_count++] = block;
                return;
        }
        block->newer = magazine->small[block->klass];
        magazine->small[block->klass] = block;
        magazine->small_count[block->klass]++;
}

/* What was waited for has come: it can be served. */
static void ripen(struct spm_magazine *magazine)
{
        struct spm_block *block;

        while ((block = spm_ripe_oldest(magazine)) && has_room(magazine, block) &&
               spm_ripe_is_complete(magazine, block)) {
                put(magazine, spm_ripe_take(magazine));
                magazine->held--;
                block->dep_count = 0;
        }
}

/* The same, after a look at what waits. */
static struct spm_block **find(struct spm_magazine *magazine, size_t *size, unsigned int *klass)
{
        struct spm_block **held = find_held(magazine, size, klass);

        if (held || !magazine->waiting_count)
                return held;
        ripen(magazine);
        return find_held(magazine, size, klass);
}

/* May the pool's figures rise by that much unseen? */
static bool may_rise(const struct spm_magazine *magazine, size_t size)
{
        return atomic_load_explicit(&magazine->used, memory_order_relaxed) + (int64_t)size <=
                       magazine->used_granted &&
               atomic_load_explicit(&magazine->live, memory_order_relaxed) <
                       magazine->live_granted &&
               magazine->generation != magazine->generation_end;
}

/*
 * On a blocking stream a block is behind the legacy stream's work, too, as its free was (H6), and
 * on any stream behind what the context waits for (H9). Of that an idle stream has seen nothing.
 * Whether such a wait is over is known under the lock only, and few contexts ever wait.
 */
static bool may_be_unseen(const struct spm_stream_state *stream)
{
        return spm_stream_waits_for_legacy(stream) ||
               atomic_load_explicit(&stream->context->waited_at, memory_order_relaxed);
}

static void give(struct spm_magazine *magazine, struct spm_block *block, size_t size, uint64_t user,
                 struct spm_allocation *allocation)
{
        if (magazine->is_sync) {
                block->streams[0] = 0;
                block->dep_count = 0;
        } else {
                block->positions[0] =
                        atomic_load_explicit(&magazine->stream->submitted, memory_order_relaxed);
                block->dep_count = 1;
        }
        block->requested = size;
        block->generation = magazine->generation++;
        block->user = user;
        block->belted = false;
        if (!block->fresh)
                count(&magazine->hits);
        add(&magazine->used, (int64_t)size);
        add(&magazine->rounded, (int64_t)block->size);
        add(&magazine->live, 1);
        count(&magazine->allocs);
        add(&magazine->made, (int64_t)size);
        spm_block_become(block, SPM_BLOCK_LIVE);
        spm_block_describe(block, allocation);
        allocation->unseen = !magazine->is_sync && may_be_unseen(magazine->stream);
}

/* Takes a block out of its list. */
static struct spm_block *take_out(struct spm_magazine *magazine, struct spm_block **held,
                                  unsigned int klass)
{
        struct spm_block *block = *held;

        magazine->held--;
        if (klass != SPM_NO_CLASS) {
                *held = block->newer;
                magazine->small_count[klass]--;
        } else {
                *held = magazine->large[--magazine->large_count];
        }
        return block;
}

/* Looked at before anything else, as nearly every call of a program with one stream is such; the
 * rest is apart, so that those who are passed over do not save its registers. */
static inline bool is_passed_over(const struct spm_magazine *magazine)
{
        return spm_ripe_now(magazine) == SPM_WORK_FREE_LOCKED;
}

static SPM_APART bool serve(struct spm_magazine *magazine, size_t size, uint64_t user,
                            struct spm_allocation *allocation)
{
        struct spm_block **held;
        struct spm_block *block;
        unsigned int klass;
        size_t rounded = size;

        if (!size || size > LARGE_BYTES || !enter(magazine))
                return false;
        held = find(magazine, &rounded, &klass);
        if (!held || !may_rise(magazine, size)) {
                leave(magazine);
                return false;
        }
        block = take_out(magazine, held, klass);
        give(magazine, block, size, user, allocation);
        leave(magazine);
        return true;
}

bool spm_magazine_alloc(struct spm_magazine *magazine, size_t size, uint64_t user,
                        struct spm_allocation *allocation)
{
        return !is_passed_over(magazine) && serve(magazine, size, user, allocation);
}

static struct spm_block *find_own(const struct spm_magazine *magazine, uint64_t address)
{
        unsigned int i;

        for (i = 0; i < 2; i++) {
                const struct spm_area *area = magazine->areas[i];

                if (area && address - area->base < area->size)
                        return spm_area_start(area, address);
        }
        return NULL;
}

/*
 * Does it wait for nothing but its stream, and what is implied by that? On a blocking stream every
 * free also waits for a point of the legacy stream, or of the line; so will the next (block.c).
 */
static SPM_MAY_RACE bool is_plain(const struct spm_magazine *magazine,
                                  const struct spm_block *block)
{
        return block->dep_count < 2 ||
               (block->dep_count == 2 && (block->streams[1] == magazine->line_id ||
                                          block->streams[1] == magazine->legacy_id));
}

/* What may be freed into it now, and there is room for. A synchronous block that was served before
 * it was complete is more than that. */
static SPM_MAY_RACE bool is_for_it(const struct spm_magazine *magazine,
                                   const struct spm_block *block, enum spm_work_free frees)
{
        if (!magazine->is_sync)
                return block->streams[0] == magazine->stream_id && is_plain(magazine, block) &&
                       has_room(magazine, block);
        if (block->dep_count || frees == SPM_WORK_FREE_LOCKED)
                return false;
        return frees == SPM_WORK_FREE_COMPLETE
                       ? has_room(magazine, block)
                       : spm_ripe_may_wait(magazine, block->size, block->is_slot);
}

/*
 * Is it live, of this stream, and waits for no other? Another thread may free it at this moment,
 * and be served it again: then what is read here means nothing, and the life has ended.
 */
static SPM_MAY_RACE uint32_t look_at(const struct spm_magazine *magazine,
                                     const struct spm_block *block, uint64_t address,
                                     uint64_t generation, enum spm_work_free frees)
{
        uint32_t life = spm_block_life(block);

        if (block->address != address || block->exported ||
            (generation && generation != block->generation) || !is_for_it(magazine, block, frees))
                return 0;
        return life;
}

static bool take(const struct spm_magazine *magazine, struct spm_block *block, uint64_t address,
                 uint64_t generation, enum spm_work_free frees)
{
        uint32_t life = look_at(magazine, block, address, generation, frees);

        return life && spm_block_end_life(block, life, SPM_BLOCK_HELD);
}

static void keep(struct spm_magazine *magazine, struct spm_block *block, enum spm_work_free frees)
{
        block->fresh = false;
        /* What is served at an address later has a greater generation: by that it is told which
         * life was the last. Those that are left to give are too old. */
        if (block->generation >= magazine->generation)
                magazine->generation = magazine->generation_end;
        add(&magazine->used, -(int64_t)block->requested);
        add(&magazine->rounded, -(int64_t)block->size);
        add(&magazine->live, -1);
        count(&magazine->frees);
        if (frees == SPM_WORK_FREE_WAITS) {
                spm_ripe_wait(magazine, block);
                return;
        }
        if (!magazine->is_sync) {
                block->dep_count = 1;
                /* An event that is recorded from now on covers the free (add_end() in subject.c).
                 */
                block->positions[0] =
                        atomic_load_explicit(&magazine->stream->submitted, memory_order_relaxed);
        }
        put(magazine, block);
}

static SPM_APART bool accept(struct spm_magazine *magazine, uint64_t address, uint64_t generation,
                             struct spm_allocation *freed)
{
        enum spm_work_free frees;
        struct spm_block *block;
        bool done = false;

        if (!enter(magazine))
                return false;
        frees = spm_ripe_now(magazine);
        block = find_own(magazine, address);
        if (block && take(magazine, block, address, generation, frees)) {
                if (freed)
                        spm_block_describe(block, freed);
                keep(magazine, block, frees);
                done = true;
        }
        leave(magazine);
        return done;
}

bool spm_magazine_free(struct spm_magazine *magazine, uint64_t address, uint64_t generation,
                       struct spm_allocation *freed)
{
        return !is_passed_over(magazine) && accept(magazine, address, generation, freed);
}

/* life, and the owner with the lock */

enum spm_status spm_magazine_new(struct spm_model *model, spm_pool pool_id, spm_stream stream_id,
                                 struct spm_magazine **result)
{
        struct spm_pool_state *pool = spm_pool_find(model, pool_id);
        struct spm_stream_state *stream = spm_subject_usable(model, stream_id);
        struct spm_magazine *magazine;
        struct spm_area *area;
        unsigned int areas = 0;

        if (!pool || pool->closed)
                return SPM_E_UNKNOWN;
        if (pool->work && !stream_id)
                stream = pool->context->line;
        if (!stream)
                return SPM_E_UNKNOWN;
        if (pool->config.kind != (stream_id ? SPM_POOL_ASYNC : SPM_POOL_SYNC) ||
            !pool->config.range_size || pool->detour)
                return SPM_E_INVALID_VALUE;
        magazine = spm_host_new(model, sizeof(*magazine));
        if (!magazine)
                return SPM_E_HOST_MEMORY;
        for (area = pool->areas; area; area = area->next)
                if (!area->is_lone)
                        magazine->areas[areas++] = area;
        magazine->model = model;
        magazine->is_fenced = model->config.fence != NULL;
        magazine->stream_id = stream->object.id;
        magazine->stream = stream;
        magazine->is_sync = pool->work;
        magazine->line_id = stream->context->line->object.id;
        magazine->pool = pool;
        magazine->recalled = spm_magazine_is_barred(stream);
        magazine->next = pool->magazines;
        pool->magazines = magazine;
        stream->magazines++;
        magazine->told = pool->work ? pool->work->frees : SPM_WORK_FREE_COMPLETE;
        if (pool->work)
                spm_work_note(model, pool->context);
        /* Its last point may have been looked at already (subject.c). */
        spm_stream_submit(stream);
        *result = magazine;
        return SPM_OK;
}

void spm_magazine_end(struct spm_model *model, struct spm_magazine *magazine)
{
        struct spm_magazine **at = magazine->pool ? &magazine->pool->magazines : &model->orphans;

        if (magazine->pool)
                spm_magazine_empty(model, magazine);
        while (*at != magazine)
                at = &(*at)->next;
        *at = magazine->next;
        if (!magazine->dead)
                spm_magazine_kill(magazine);
        spm_host_free(model, magazine);
}

void spm_magazine_crowd(struct spm_model *model, struct spm_magazine *magazine)
{
        if (!magazine->is_sync || magazine->dead)
                return;
        magazine->stream->context->work.crowded = true;
        spm_work_note(model, magazine->stream->context);
}

enum spm_status spm_magazine_retire(struct spm_model *model, spm_pool id)
{
        struct spm_pool_state *pool = spm_pool_find(model, id);

        if (!pool)
                return SPM_E_UNKNOWN;
        spm_magazine_abandon(model, pool);
        return SPM_OK;
}

/* Slots that nobody but the stream has to be asked for. */
static struct spm_block *next_slot(struct spm_model *model, const struct spm_magazine *magazine,
                                   const struct spm_want *want)
{
        struct spm_lane *lane =
                magazine->is_sync ? NULL : spm_lane_find(want->pool, magazine->stream_id);
        struct spm_block *slot = lane ? lane->slots[want->klass] : NULL;

        if (slot && is_plain(magazine, slot)) {
                spm_limbo_take(model, slot);
                slot->dep_count = 1;
                return slot;
        }
        slot = spm_slab_take(want->pool, want->klass);
        if (slot)
                slot->streams[0] = magazine->stream_id;
        return slot;
}

static void fill(struct spm_model *model, struct spm_magazine *magazine,
                 const struct spm_want *want)
{
        unsigned int i;

        for (i = 0; i < FILL && magazine->small_count[want->klass] < SMALL_MAX; i++) {
                struct spm_block *slot = next_slot(model, magazine, want);

                if (!slot)
                        return;
                spm_block_become(slot, SPM_BLOCK_HELD);
                want->pool->pending_bytes += slot->size;
                put(magazine, slot);
        }
}

/* What is complete serves any thread, so no more than has to be is laid up for this one (ripe.h).
 */
static bool may_lay_up(const struct spm_magazine *magazine, size_t size)
{
        return !magazine->is_sync ||
               (size <= SPM_RIPE_MAX && spm_ripe_now(magazine) == SPM_WORK_FREE_WAITS);
}

static bool is_for(const struct spm_magazine *magazine, const struct spm_want *want)
{
        return !magazine->dead && magazine->pool == want->pool &&
               (magazine->is_sync || magazine->stream == want->stream) &&
               !spm_magazine_is_barred(magazine->stream);
}

/* Greater ones than whatever was served with the lock. */
static void renew(struct spm_model *model, struct spm_magazine *magazine)
{
        if (magazine->generation != magazine->generation_end &&
            magazine->generation_end == model->generation + 1)
                return;
        magazine->generation = model->generation + 1;
        model->generation += GENERATIONS;
        magazine->generation_end = model->generation + 1;
}

bool spm_magazine_serve(struct spm_model *model, struct spm_magazine *magazine,
                        const struct spm_want *want, struct spm_allocation *allocation)
{
        size_t rounded = want->requested;
        struct spm_block **held;
        struct spm_block *block;
        unsigned int klass;

        if (!is_for(magazine, want))
                return false;
        spm_magazine_settle(magazine);
        renew(model, magazine);
        held = find(magazine, &rounded, &klass);
        if (!held) {
                spm_magazine_spill(model, magazine);
                return false;
        }
        block = take_out(magazine, held, klass);
        give(magazine, block, want->requested, want->user, allocation);
        spm_magazine_settle(magazine);
        spm_pool_raise_marks(magazine->pool);
        spm_magazine_grant(magazine);
        spm_magazine_let_go(magazine);
        return true;
}

void spm_magazine_visit(struct spm_model *model, struct spm_magazine *magazine,
                        const struct spm_want *want)
{
        if (!is_for(magazine, want))
                return;
        spm_magazine_settle(magazine);
        magazine->legacy_id = magazine->stream->context->legacy_stream
                                      ? magazine->stream->context->legacy_stream->object.id
                                      : magazine->line_id;
        if (want->klass != SPM_NO_CLASS && !magazine->small[want->klass] &&
            may_lay_up(magazine, want->size))
                fill(model, magazine, want);
        spm_magazine_grant(magazine);
        renew(model, magazine);
        spm_magazine_let_go(magazine);
}
