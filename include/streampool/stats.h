/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STREAMPOOL_STATS_H
#define STREAMPOOL_STATS_H

/*
 * Stats -- what is counted, and whether all is well
 *
 * Questions only: nothing here asks for an action. What walks everything says so.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/action.h>
#include <streampool/block.h>
#include <streampool/pool.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* figures */

/* Bytes, but for blocks, segments and what is counted since creation. */
struct spm_stats {
        /* A block counts as used from its allocation to its free call, by the size asked for
         * (U4); reserved is whole segments; used <= reserved, current <= high. */
        uint64_t reserved_current, reserved_high;
        uint64_t used_current, used_high;
        uint64_t live_blocks, live_blocks_high;
        uint64_t rounded_current; /* bytes of live blocks as taken from segments */
        uint64_t pending_bytes;   /* freed, not ready: the sum over streams, batches, magazines and
                                     quarantine */
        uint64_t ready_bytes;     /* free for anyone */
        uint64_t sealed_bytes;    /* freed after spm_export(): served to nobody;
                                   * rounded + pending + ready + sealed == reserved */
        uint64_t largest_ready;
        uint64_t segments;
        /* Since creation; a hit is an allocation from memory that had been freed before. */
        uint64_t allocs, frees, hits, grows, releases;
        uint64_t moves;      /* releases to make room for a growth elsewhere in the range */
        uint64_t host_bytes; /* of the model's records, for all pools together */
        uint64_t undone;
};

/** spm_stats() - as of now. Return: SPM_OK, SPM_E_UNKNOWN. */
enum spm_status spm_stats(const struct spm_model *model, spm_pool pool, struct spm_stats *stats);

/** spm_settle() - whatever magazines have counted is in the tallies of their pools, but for that of
 * owners who are inside at this moment. */
void spm_settle(struct spm_model *model);

/** spm_tally_add(), spm_tally_take() - memory of the caller's own lives, or no longer: of live
 * ones only, not of what was made and freed. */
void spm_tally_add(struct spm_tally *tally, size_t bytes);
void spm_tally_take(struct spm_tally *tally, size_t bytes);

/** spm_reset_peaks() - every high becomes the current value (A47). Return: SPM_OK, SPM_E_UNKNOWN.
 */
enum spm_status spm_reset_peaks(struct spm_model *model, spm_pool pool);

/** spm_pending_on() - bytes freed on @stream that are not ready, in all pools, but for those in
 * magazines and in quarantine. Return: SPM_OK, SPM_E_UNKNOWN. */
enum spm_status spm_pending_on(const struct spm_model *model, spm_stream stream, uint64_t *bytes);

/** spm_each_live() - call @visit for every live block of @pool (0: of all), in address order;
 * stop when it returns false. @visit must not call the model, and what it is shown is gone when it
 * returns. */
void spm_each_live(const struct spm_model *model, spm_pool pool,
                   bool (*visit)(const struct spm_allocation *allocation, void *user), void *user);

/**
 * spm_check() - every invariant I1-I11, by name
 * @text: receives the name and the numbers of the first that is broken; may be NULL
 *
 * Return: true if all hold. Walks everything: for tests and debug builds.
 */
bool spm_check(const struct spm_model *model, char *text, size_t text_size);

/** spm_hash() - of all addresses, sizes and figures; equal inputs give equal hashes (A19). Walks
 * everything. */
uint64_t spm_hash(const struct spm_model *model);

/** spm_dump() - the state as text, for a debugger: @line is called for each line, without its end,
 * and must not call the model. */
void spm_dump(const struct spm_model *model, void (*line)(const char *text, void *user),
              void *user);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
