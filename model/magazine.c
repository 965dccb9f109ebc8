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
#include "ripe.h"
#include "state.h"

#define SMALL_BYTES ((uint64_t)512 << 10) /* of a class */
#define LARGE_BYTES SPM_HEAP_SMALL        /* one block; more would cut up the heap of large ones */

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
        return magazine->small_count[block->klass] < SPM_MAGAZINE_SMALL &&
               (magazine->small_count[block->klass] + 1) * block->size <= SMALL_BYTES;
}

void spm_magazine_put(struct spm_magazine *magazine, struct spm_block *block)
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
                spm_magazine_put(magazine, spm_ripe_take(magazine));
                magazine->held--;
                block->dep_count = 0;
        }
}

/* The same, after a look at what waits. */
struct spm_block **spm_magazine_find(struct spm_magazine *magazine, size_t *size,
                                     unsigned int *klass)
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

void spm_magazine_give(struct spm_magazine *magazine, struct spm_block *block, size_t size,
                       uint64_t user, struct spm_allocation *allocation)
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
struct spm_block *spm_magazine_take_out(struct spm_magazine *magazine, struct spm_block **held,
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
        held = spm_magazine_find(magazine, &rounded, &klass);
        if (!held || !may_rise(magazine, size)) {
                leave(magazine);
                return false;
        }
        block = spm_magazine_take_out(magazine, held, klass);
        spm_magazine_give(magazine, block, size, user, allocation);
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
 * free also waits for a point of the legacy stream, or of the line; so will the next
 * (block_wait.c).
 */
SPM_MAY_RACE bool spm_magazine_is_plain(const struct spm_magazine *magazine,
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
                return block->streams[0] == magazine->stream_id &&
                       spm_magazine_is_plain(magazine, block) && has_room(magazine, block);
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
        spm_magazine_put(magazine, block);
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
