/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Magazine -- freed blocks of a stream that one thread has at hand
 *
 * Cost of an allocation or a free that the magazine serves: no lock, no
 * allocation, no call of the caller's; one exchange to enter, and one
 * compare-and-swap in a free, by which the second of two threads that free the
 * same block sees that it is too late.
 */

#include "magazine.h"

#include <assert.h>

#include "front.h"
#include "host.h"
#include "limbo.h"
#include "segment.h"
#include "state.h"

#define SMALL_MAX   32                    /* blocks of a class */
#define SMALL_BYTES ((uint64_t)512 << 10) /* of a class */
#define LARGE_BYTES ((uint64_t)4 << 20)   /* one block */
#define FILL        8
#define GENERATIONS 4096 /* reserved at once */
#define SPINS       (1 << 20)

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
        size_t align = magazine->pool->config.align;
        uint32_t i;

        *size = (*size + align - 1) & ~(align - 1);
        *klass = spm_slab_class(magazine->pool, *size, size);
        if (*klass != SPM_NO_CLASS)
                return magazine->small[*klass] ? &magazine->small[*klass] : NULL;
        for (i = magazine->large_count; i--;)
                if (magazine->large[i]->size == *size)
                        return &magazine->large[i];
        return NULL;
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

static void give(struct spm_magazine *magazine, struct spm_block *block, size_t size)
{
        block->positions[0] =
                atomic_load_explicit(&magazine->stream->submitted, memory_order_relaxed);
        block->dep_count = 1;
        block->requested = size;
        block->generation = magazine->generation++;
        block->user = 0;
        block->hit = !block->fresh;
        block->belted = false;
        if (block->hit)
                count(&magazine->hits);
        add(&magazine->used, (int64_t)size);
        add(&magazine->rounded, (int64_t)block->size);
        add(&magazine->live, 1);
        count(&magazine->allocs);
        atomic_store_explicit(&block->state, SPM_BLOCK_LIVE, memory_order_release);
}

/* Takes a block out of its list. */
static struct spm_block *take_out(struct spm_magazine *magazine, struct spm_block **held,
                                  unsigned int klass)
{
        struct spm_block *block = *held;

        if (klass != SPM_NO_CLASS) {
                *held = block->newer;
                magazine->small_count[klass]--;
        } else {
                *held = magazine->large[--magazine->large_count];
        }
        return block;
}

bool spm_magazine_alloc(struct spm_magazine *magazine, size_t size,
                        struct spm_allocation *allocation)
{
        struct spm_block **held;
        struct spm_block *block;
        unsigned int klass;
        size_t rounded = size;

        if (!size || size > LARGE_BYTES || !enter(magazine))
                return false;
        held = find_held(magazine, &rounded, &klass);
        if (!held || !may_rise(magazine, size)) {
                leave(magazine);
                return false;
        }
        block = take_out(magazine, held, klass);
        give(magazine, block, size);
        spm_block_describe(block, allocation);
        leave(magazine);
        return true;
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

static bool has_room(const struct spm_magazine *magazine, const struct spm_block *block)
{
        if (!block->is_slot)
                return block->size <= LARGE_BYTES && magazine->large_count < SPM_MAGAZINE_LARGE;
        return magazine->small_count[block->klass] < SMALL_MAX &&
               (magazine->small_count[block->klass] + 1) * block->size <= SMALL_BYTES;
}

/*
 * Does it wait for nothing but its stream, and what is implied by that? On a blocking stream every
 * free also waits for a point of the legacy stream, or of the line; so will the next (block.c).
 */
static bool is_plain(const struct spm_magazine *magazine, const struct spm_block *block)
{
        return block->dep_count < 2 ||
               (block->dep_count == 2 && (block->streams[1] == magazine->line_id ||
                                          block->streams[1] == magazine->legacy_id));
}

/* Is it live, of this stream, and waits for no other? The last test makes it ours. */
static bool take(const struct spm_magazine *magazine, struct spm_block *block, uint64_t generation)
{
        uint8_t live = SPM_BLOCK_LIVE;

        if (atomic_load_explicit(&block->state, memory_order_acquire) != SPM_BLOCK_LIVE ||
            block->streams[0] != magazine->stream_id || !is_plain(magazine, block) ||
            block->exported || (generation && generation != block->generation) ||
            !has_room(magazine, block))
                return false;
        return atomic_compare_exchange_strong(&block->state, &live, SPM_BLOCK_HELD);
}

static void keep(struct spm_magazine *magazine, struct spm_block *block)
{
        block->fresh = false;
        block->dep_count = 1;
        add(&magazine->used, -(int64_t)block->requested);
        add(&magazine->rounded, -(int64_t)block->size);
        add(&magazine->live, -1);
        count(&magazine->frees);
        if (!block->is_slot) {
                magazine->large[magazine->large_count++] = block;
                return;
        }
        block->newer = magazine->small[block->klass];
        magazine->small[block->klass] = block;
        magazine->small_count[block->klass]++;
}

bool spm_magazine_free(struct spm_magazine *magazine, uint64_t address, uint64_t generation,
                       struct spm_allocation *freed)
{
        struct spm_block *block;
        bool done = false;

        if (!enter(magazine))
                return false;
        block = find_own(magazine, address);
        if (block && take(magazine, block, generation)) {
                if (freed)
                        spm_block_describe(block, freed);
                keep(magazine, block);
                done = true;
        }
        leave(magazine);
        return done;
}

/* figures, with the lock */

struct spm_magazine_sums spm_magazine_sum(const struct spm_pool_state *pool)
{
        struct spm_magazine_sums sums = {0};
        const struct spm_magazine *magazine;

        for (magazine = pool->magazines; magazine; magazine = magazine->next) {
                sums.used += atomic_load_explicit(&magazine->used, memory_order_relaxed);
                sums.rounded += atomic_load_explicit(&magazine->rounded, memory_order_relaxed);
                sums.live += atomic_load_explicit(&magazine->live, memory_order_relaxed);
                sums.hits += atomic_load_explicit(&magazine->hits, memory_order_relaxed);
                sums.allocs += atomic_load_explicit(&magazine->allocs, memory_order_relaxed);
                sums.frees += atomic_load_explicit(&magazine->frees, memory_order_relaxed);
        }
        return sums;
}

/* The magazine is ours for the moment. */
static void settle(struct spm_magazine *magazine)
{
        struct spm_pool_state *pool = magazine->pool;
        uint64_t rounded = (uint64_t)magazine->rounded;

        pool->used_bytes += (uint64_t)magazine->used;
        pool->rounded_bytes += rounded;
        pool->pending_bytes -= rounded;
        pool->live_blocks += (uint64_t)magazine->live;
        pool->allocs += magazine->allocs;
        pool->hits += magazine->hits;
        pool->frees += magazine->frees;
        pool->used_granted -= (uint64_t)magazine->used_granted;
        pool->live_granted -= (uint64_t)magazine->live_granted;
        magazine->used = 0;
        magazine->rounded = 0;
        magazine->live = 0;
        magazine->allocs = 0;
        magazine->hits = 0;
        magazine->frees = 0;
        magazine->used_granted = 0;
        magazine->live_granted = 0;
}

/* An eighth of what is left below the marks. */
static void grant(struct spm_magazine *magazine)
{
        struct spm_pool_state *pool = magazine->pool;
        uint64_t used = pool->used_bytes + pool->used_granted;
        uint64_t live = pool->live_blocks + pool->live_granted;

        if (used >= pool->used_high || live >= pool->live_blocks_high)
                return;
        magazine->used_granted = (int64_t)((pool->used_high - used) / 8);
        magazine->live_granted = (int64_t)((pool->live_blocks_high - live) / 8);
        pool->used_granted += (uint64_t)magazine->used_granted;
        pool->live_granted += (uint64_t)magazine->live_granted;
}

/* recall */

/* Return: false if the owner is inside; it will come, since the flag stays up. */
static void raise_flag(struct spm_magazine *magazine)
{
        atomic_store(&magazine->recalled, 1);
}

static void make_barrier(const struct spm_magazine *magazine)
{
        if (magazine->is_fenced)
                magazine->model->config.fence(magazine->model->config.user);
}

/* Once the flag is up, and behind a barrier. */
static bool is_outside(const struct spm_magazine *magazine)
{
        return atomic_load(&magazine->recalled) && !atomic_load(&magazine->inside);
}

static bool seize(struct spm_magazine *magazine)
{
        raise_flag(magazine);
        make_barrier(magazine);
        return is_outside(magazine);
}

static void let_go(struct spm_magazine *magazine)
{
        if (!magazine->dead && !magazine->stream->capturing)
                atomic_store_explicit(&magazine->recalled, 0, memory_order_release);
}

/* Its owner may count on at any moment, but what it counts then is later than this. */
static bool has_counted(const struct spm_magazine *magazine)
{
        return magazine->used_granted || magazine->live_granted ||
               atomic_load_explicit(&magazine->used, memory_order_relaxed) ||
               atomic_load_explicit(&magazine->live, memory_order_relaxed);
}

void spm_magazine_settle_all(struct spm_pool_state *pool)
{
        struct spm_magazine *magazine;
        bool any = false;

        for (magazine = pool->magazines; magazine; magazine = magazine->next)
                if (has_counted(magazine)) {
                        raise_flag(magazine);
                        any = true;
                }
        if (any)
                make_barrier(pool->magazines);
        for (magazine = pool->magazines; any && magazine; magazine = magazine->next)
                if (has_counted(magazine) && is_outside(magazine)) {
                        settle(magazine);
                        let_go(magazine);
                }
}

/* An owner that was inside when its stream ended has come too late: the stream's context knows. */
static void wait_for_owner(struct spm_model *model, struct spm_magazine *magazine,
                           struct spm_block *block)
{
        struct spm_stream_state *stream = magazine->stream
                                                  ? magazine->stream
                                                  : spm_subject_stream(model, magazine->stream_id);

        if (stream)
                spm_block_wait(model, block, stream);
        else
                spm_block_drop_deps(model, block);
}

static void give_back(struct spm_model *model, struct spm_magazine *magazine,
                      struct spm_block *block)
{
        magazine->pool->pending_bytes -= block->size;
        if (!block->is_slot)
                spm_area_note(block, false);
        spm_block_become(block, SPM_BLOCK_LOOSE);
        if (block->dep_count)
                wait_for_owner(model, magazine, block);
        spm_limbo_put(model, block);
}

static bool empty(struct spm_model *model, struct spm_magazine *magazine)
{
        unsigned int klass;
        bool any = magazine->large_count != 0;

        settle(magazine);
        while (magazine->large_count)
                give_back(model, magazine, magazine->large[--magazine->large_count]);
        for (klass = 0; klass < SPM_CLASSES; klass++) {
                any = any || magazine->small[klass];
                while (magazine->small[klass]) {
                        struct spm_block *block = magazine->small[klass];

                        magazine->small[klass] = block->newer;
                        give_back(model, magazine, block);
                }
                magazine->small_count[klass] = 0;
        }
        return any;
}

bool spm_magazine_recall(struct spm_model *model, struct spm_pool_state *pool)
{
        struct spm_magazine *magazine;
        bool any = false;

        for (magazine = pool->magazines; magazine; magazine = magazine->next)
                if (seize(magazine)) {
                        any = empty(model, magazine) || any;
                        let_go(magazine);
                }
        return any;
}

/* An owner that is inside leaves soon, unless its thread is stopped there: then its blocks stay
 * with it until it ends. */
static void recall_for_good(struct spm_model *model, struct spm_magazine *magazine)
{
        unsigned int spins;

        for (spins = 0; !seize(magazine) && spins < SPINS;)
                spins++;
        if (atomic_load(&magazine->inside))
                return;
        empty(model, magazine);
}

static void kill(struct spm_magazine *magazine)
{
        magazine->dead = true;
        magazine->stream->magazines--;
        magazine->stream = NULL;
}

void spm_magazine_recall_stream(struct spm_model *model, struct spm_stream_state *stream, bool ends)
{
        struct spm_pool_state *pool;
        struct spm_magazine *magazine;

        for (pool = stream->magazines ? spm_pool_first(model) : NULL; pool;
             pool = spm_pool_next(pool))
                for (magazine = pool->magazines; magazine; magazine = magazine->next) {
                        if (magazine->stream != stream || magazine->dead)
                                continue;
                        recall_for_good(model, magazine);
                        if (ends)
                                kill(magazine);
                }
}

void spm_magazine_abandon(struct spm_model *model, struct spm_pool_state *pool)
{
        struct spm_magazine *magazine;

        for (magazine = pool->magazines; magazine; magazine = magazine->next) {
                if (magazine->dead)
                        continue;
                recall_for_good(model, magazine);
                kill(magazine);
        }
}

void spm_magazine_orphan(struct spm_model *model, struct spm_pool_state *pool)
{
        while (pool->magazines) {
                struct spm_magazine *magazine = pool->magazines;

                pool->magazines = magazine->next;
                magazine->pool = NULL;
                magazine->next = model->orphans;
                model->orphans = magazine;
        }
}

void spm_magazine_forget(struct spm_model *model)
{
        while (model->orphans) {
                struct spm_magazine *magazine = model->orphans;

                model->orphans = magazine->next;
                spm_host_free(model, magazine);
        }
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

        if (!pool || pool->closed || !stream)
                return SPM_E_UNKNOWN;
        if (pool->config.kind != SPM_POOL_ASYNC || !pool->config.range_size ||
            stream->kind == SPM_STREAM_LEGACY)
                return SPM_E_INVALID_VALUE;
        magazine = spm_host_new(model, sizeof(*magazine));
        if (!magazine)
                return SPM_E_HOST_MEMORY;
        for (area = pool->areas; area; area = area->next)
                if (!area->is_lone)
                        magazine->areas[areas++] = area;
        magazine->model = model;
        magazine->is_fenced = model->config.fence != NULL;
        magazine->stream_id = stream_id;
        magazine->stream = stream;
        magazine->line_id = stream->context->line->object.id;
        magazine->pool = pool;
        magazine->recalled = stream->capturing != 0;
        magazine->next = pool->magazines;
        pool->magazines = magazine;
        stream->magazines++;
        /* Its last point may have been looked at already (subject.c). */
        spm_stream_submit(stream);
        *result = magazine;
        return SPM_OK;
}

void spm_magazine_end(struct spm_model *model, struct spm_magazine *magazine)
{
        struct spm_magazine **at = magazine->pool ? &magazine->pool->magazines : &model->orphans;

        if (magazine->pool)
                empty(model, magazine);
        while (*at != magazine)
                at = &(*at)->next;
        *at = magazine->next;
        if (!magazine->dead)
                kill(magazine);
        spm_host_free(model, magazine);
}

/* Slots that nobody but the stream has to be asked for. */
static struct spm_block *next_slot(struct spm_model *model, const struct spm_magazine *magazine,
                                   const struct spm_want *want)
{
        struct spm_lane *lane = spm_lane_find(want->pool, want->stream->object.id);
        struct spm_block *slot = lane ? lane->slots[want->klass] : NULL;

        if (slot && is_plain(magazine, slot)) {
                spm_limbo_take(model, slot);
                slot->dep_count = 1;
                return slot;
        }
        slot = spm_slab_take(want->pool, want->klass);
        if (slot)
                slot->streams[0] = want->stream->object.id;
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
                slot->newer = magazine->small[want->klass];
                magazine->small[want->klass] = slot;
                magazine->small_count[want->klass]++;
        }
}

static bool is_for(const struct spm_magazine *magazine, const struct spm_want *want)
{
        return !magazine->dead && magazine->pool == want->pool &&
               magazine->stream == want->stream && !want->stream->capturing;
}

static void renew(struct spm_model *model, struct spm_magazine *magazine)
{
        if (magazine->generation != magazine->generation_end)
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
        settle(magazine);
        renew(model, magazine);
        held = find_held(magazine, &rounded, &klass);
        if (!held)
                return false;
        block = take_out(magazine, held, klass);
        give(magazine, block, want->requested);
        spm_block_describe(block, allocation);
        settle(magazine);
        spm_pool_raise_marks(magazine->pool);
        grant(magazine);
        let_go(magazine);
        return true;
}

void spm_magazine_visit(struct spm_model *model, struct spm_magazine *magazine,
                        const struct spm_want *want)
{
        if (!is_for(magazine, want))
                return;
        settle(magazine);
        magazine->legacy_id = magazine->stream->context->legacy_stream
                                      ? magazine->stream->context->legacy_stream->object.id
                                      : magazine->line_id;
        if (want->klass != SPM_NO_CLASS && !magazine->small[want->klass])
                fill(model, magazine, want);
        grant(magazine);
        renew(model, magazine);
        let_go(magazine);
}
