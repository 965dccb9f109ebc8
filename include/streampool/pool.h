/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STREAMPOOL_POOL_H
#define STREAMPOOL_POOL_H

/*
 * Pool -- whose memory it is, how much of it there is, and when it goes back
 *
 * A pool is made of segments, which the caller obtains when it is asked to (SPM_ACT_GROW) and gives
 * back when it is asked to (SPM_ACT_RELEASE). With a range of addresses for itself a pool places
 * its segments side by side, so that a block may lie across several and idle ones can be moved.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/action.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* pools */

enum spm_pool_kind {
        SPM_POOL_SYNC,  /* cuMemAlloc: usable anywhere at once, so reused only when ready (F1, I8),
                         * or by the one stream that has work (submit.h) */
        SPM_POOL_ASYNC, /* cuMemAllocAsync: usable in stream order (A1) */
        SPM_POOL_HOST,  /* pinned host memory: reused only when ready */
};

enum spm_provider {
        SPM_PROVIDER_CALLER, /* segments come by SPM_ACT_GROW */
        SPM_PROVIDER_MODEL,  /* the model makes up addresses: a CPU-only pool needs no driver (A6,
                                A25) */
};

/*
 * How much memory a pool may hold beyond the most that was in use at once, and what it does to
 * stay there: before it grows past that it moves idle segments to where they are needed, which
 * costs an unmapping and a mapping each. Of a synchronous pool, while one stream alone has work,
 * the host waits then for what was freed, which could not be moved.
 *
 *   mode       slack                segments             blocks from slabs
 *   balanced   1/64 + a segment, at 1/32 of the pool,    up to 32 KiB
 *              least 16 MiB         2 MiB to 32 MiB
 *   speed      1/12 + 32 MiB        likewise             up to 32 KiB
 *   tight      none                 2 MiB                up to 4 KiB
 *
 * Under a block of 256 MiB or more, and in a program that fills memory and frees nothing, segments
 * are larger, up to 2 GiB, until blocks of other sizes want to be in their place (model/piece.h).
 */
enum spm_growth { SPM_GROWTH_BALANCED, SPM_GROWTH_SPEED, SPM_GROWTH_TIGHT };

/*
 * What the blocks of several pools sum up to, and what the caller adds: it may count memory of its
 * own in, under the lock. What magazines have counted since they were settled is not in it; see
 * spm_settle(). So its high marks, unlike those of a pool, are not exact where there are magazines:
 * below the true peak by no more than its pools are below marks of their own at that moment, as
 * magazines rise by a share of that unseen; and above it by no more than was freed into magazines
 * and lies there.
 */
struct spm_tally {
        uint64_t count, count_high; /* live */
        uint64_t bytes, bytes_high; /* live, as asked for */
        uint64_t made, made_bytes;  /* ever; an allocation that is undone was not made */
        uint64_t freed;
};

#define SPM_TALLIES 2 /* of one pool */

struct spm_pool_config {
        enum spm_pool_kind kind;
        enum spm_provider provider;
        int device;          /* >= 0 */
        spm_context context; /* owner of a SYNC or HOST pool; 0 for a pool that outlives contexts */
        bool is_default;     /* spm_pool_destroy() refuses it */
        bool release_needs_idle; /* segments are given back only right after a context
                                  * synchronisation, or when out of memory (F10) */
        /* Who uses a block, and how, is remembered (use.h). ASYNC pools only; one that does has no
         * magazines. */
        bool track_uses;
        size_t initial_size; /* reserved at creation (MODEL provider), else at the first growth of a
                              * pool without a range */
        size_t max_size;     /* cap on reserved bytes; 0 for none */
        size_t release_threshold; /* reserved bytes kept at synchronisations; SIZE_MAX for all */
        size_t keep; /* free bytes kept at synchronisations whatever the threshold says, until one
                      * is set by spm_pool_set_attribute() */
        /* Pending bytes of a SYNC or HOST pool above which an allocation waits for the oldest batch
         * rather than grow (O3). 0 means the default: the larger of 64 MiB and an eighth of the
         * live peak. */
        size_t pending_limit;
        enum spm_growth growth;
        /* Addresses that the caller has reserved for the pool, multiples of the grain. 0: none,
         * each segment is by itself. A MODEL provider makes up a range of its own. */
        uint64_t range_base;
        uint64_t range_size;
        size_t grain;        /* segments are multiples of this; 0 means 2 MiB; a power of two */
        size_t segment_size; /* of one segment the most, but without a range, for a larger block;
                              * 0: by @growth, and more as said there */
        /* Blocks up to this size share slabs; a power of two; 0: by @growth, less where the grain
         * or the alignment is too small for it; at most @align: no slabs. */
        size_t small_size;
        /* Memory that was idle for so long is given back by spm_tick(), in nanoseconds; 0: never.
         * It does nothing for a pool that release_needs_idle. */
        uint64_t decay;
        /* Of what was freed last, at most so many bytes are kept and served to nobody, as long as
         * there is other memory, so that a second free is known for what it is; 0: none. A pool
         * that does has no magazines. */
        size_t quarantine;
        size_t align;       /* of every block; 0 means 512; a power of two */
        size_t large_size;  /* blocks larger than this are aligned to large_align; 0 for none */
        size_t large_align; /* 0 means align; a power of two */
        struct spm_tally *tallies[SPM_TALLIES]; /* the caller's, for as long as the model */
};

/**
 * spm_pool_create() - an empty pool, with all three ways of reuse allowed (A9)
 * @config: copied; what is 0 in it is the default
 * @pool:   return argument; spm_pool_destroy(), or the end of its context, ends it
 *
 * Return: SPM_OK, SPM_E_INVALID_VALUE (initial_size > max_size or release_threshold > max_size when
 * max_size is not 0; a grain, an alignment or a small_size that is no power of two; align > grain;
 * small_size > grain or > 64 aligns; a range that is not made of grains or meets other memory of
 * the model's; no such kind, provider or growth; track_uses of a pool that is not ASYNC),
 * SPM_E_INVALID_DEVICE (device < 0), SPM_E_UNKNOWN (context; a SYNC or HOST pool needs one),
 * SPM_E_OUT_OF_MEMORY (initial_size, of a MODEL provider), SPM_E_HOST_MEMORY. (A2, A3, A4)
 */
enum spm_status spm_pool_create(struct spm_model *model, const struct spm_pool_config *config,
                                spm_pool *pool);

/**
 * spm_pool_destroy() - no further allocation; what is live stays until it is freed (E7)
 * @actions: RELEASE; later ones come with the inputs that complete its last blocks
 *
 * While it has memory, questions about it are answered: configuration, attributes, figures. Then
 * the handle is unknown.
 *
 * Return: SPM_OK, SPM_AGAIN (more to release), SPM_E_INVALID_VALUE (a default pool), SPM_E_UNKNOWN.
 */
enum spm_status spm_pool_destroy(struct spm_model *model, spm_pool pool,
                                 struct spm_actions *actions);

/** spm_pool_get_config() - as now in force, with defaults filled in; the threshold and
 * `keep` follow spm_pool_set_attribute(). Return: SPM_OK, SPM_E_UNKNOWN. */
enum spm_status spm_pool_get_config(const struct spm_model *model, spm_pool pool,
                                    struct spm_pool_config *config);

/* Numbers are those of CUmemPool_attribute (cuda.h). The first three are 0 or 1, the others bytes.
 */
enum spm_pool_attribute {
        SPM_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES = 1,
        SPM_ATTR_REUSE_ALLOW_OPPORTUNISTIC = 2,
        SPM_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3,
        SPM_ATTR_RELEASE_THRESHOLD = 4,
        SPM_ATTR_RESERVED_MEM_CURRENT = 5,
        SPM_ATTR_RESERVED_MEM_HIGH = 6,
        SPM_ATTR_USED_MEM_CURRENT = 7,
        SPM_ATTR_USED_MEM_HIGH = 8,
};

/** spm_pool_set_attribute() - any value but 0 allows a way of reuse; a threshold counts from the
 * next synchronisation on. Return: SPM_OK, SPM_E_READ_ONLY (a CURRENT value, or a HIGH value to
 * anything but 0, which makes it the current one), SPM_E_INVALID_VALUE (no such attribute),
 * SPM_E_UNKNOWN (also when it was destroyed). (A12) */
enum spm_status spm_pool_set_attribute(struct spm_model *model, spm_pool pool,
                                       enum spm_pool_attribute attribute, uint64_t value);

/** spm_pool_get_attribute() - Return: SPM_OK, SPM_E_INVALID_VALUE (no such attribute),
 * SPM_E_UNKNOWN. */
enum spm_status spm_pool_get_attribute(const struct spm_model *model, spm_pool pool,
                                       enum spm_pool_attribute attribute, uint64_t *value);

enum spm_access { SPM_ACCESS_NONE, SPM_ACCESS_READ, SPM_ACCESS_READ_WRITE };

/** spm_pool_set_access() - what @peer, a device, may do with the pool's memory. It is remembered,
 * and nothing else: mapping segments for it is the caller's. Return: SPM_OK, SPM_E_INVALID_DEVICE
 * (the pool's own device, or < 0), SPM_E_UNKNOWN, SPM_E_HOST_MEMORY. (A48) */
enum spm_status spm_pool_set_access(struct spm_model *model, spm_pool pool, int peer,
                                    enum spm_access access);

/** spm_pool_get_access() - READ_WRITE for the pool's own device, NONE unless it was set. Return:
 * SPM_OK, SPM_E_INVALID_DEVICE (< 0), SPM_E_UNKNOWN. */
enum spm_status spm_pool_get_access(const struct spm_model *model, spm_pool pool, int peer,
                                    enum spm_access *access);

/**
 * spm_trim() - give back ready memory, keeping at least @keep reserved bytes (A37)
 * @released: return argument, bytes asked to be released by this call; may be NULL
 *
 * Live and pending blocks are never released. Only whole segments are. Magazines are emptied first;
 * the device is asked nothing, and neither the threshold nor `keep` of the configuration counts. A
 * pool that release_needs_idle gives nothing while a capture is open in its context.
 *
 * Return: SPM_OK, SPM_AGAIN (more to release: carry out, call again), SPM_E_UNKNOWN.
 */
enum spm_status spm_trim(struct spm_model *model, spm_pool pool, size_t keep, size_t *released,
                         struct spm_actions *actions);

/**
 * spm_trim_due() - the rest of what a synchronisation gives back, if its list was too short for it
 *
 * Whatever is told to the model next gives back a part of that, too; who wants it to be over before
 * the synchronisation returns to the program calls this.
 *
 * Return: SPM_OK, SPM_AGAIN (more to release: carry out, call again).
 */
enum spm_status spm_trim_due(struct spm_model *model, struct spm_actions *actions);

/**
 * spm_tick() - time passes
 * @now: nanoseconds of any clock that only grows
 *
 * Pools with a decay give back idle memory, little by little: what exceeds the most that was in use
 * during the last decay time, and what their growth mode allows beyond that, or their threshold.
 * Call it every tenth of the shortest decay or so.
 *
 * Return: SPM_OK, SPM_AGAIN (more to release: carry out, call again).
 */
enum spm_status spm_tick(struct spm_model *model, uint64_t now, struct spm_actions *actions);

/* segments */

/**
 * spm_segment_add() - the answer to SPM_ACT_GROW, or memory given on the caller's own account
 *
 * Any thread may give it, and any request may use it up first: the one that asked looks again. What
 * is refused remains the caller's.
 *
 * @base:   not 0, a multiple of the pool's grain; in a hole of the pool's range, or outside of it
 * @size:   a multiple of the pool's grain
 * @cookie: handed back in SPM_ACT_RELEASE, and not looked at
 * @segment: return argument; lives until SPM_ACT_RELEASE names it
 *
 * Return: SPM_OK, SPM_E_INVALID_VALUE (overlap with another segment, not a multiple),
 * SPM_E_OUT_OF_MEMORY (past max_size), SPM_E_UNKNOWN (also when the pool was destroyed meanwhile),
 * SPM_E_HOST_MEMORY.
 */
enum spm_status spm_segment_add(struct spm_model *model, spm_pool pool, uint64_t base, size_t size,
                                void *cookie, spm_segment *segment);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
