/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STREAMPOOL_SURVEY_H
#define STREAMPOOL_SURVEY_H

/*
 * Survey -- a pool looked at from end to end
 *
 * How sizes are spread, in how many pieces free memory lies, what is still alive, and whether there
 * is anything to give back. Nothing of it is kept while the pool works, so no allocation pays for
 * it: a survey walks all blocks of the pool.
 *
 * Sizes are counted by themselves, too: whoever wants to know of all that was ever asked for, or of
 * the blocks of several pools, adds them to a struct spm_sizes of its own.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/action.h>
#include <streampool/pool.h>
#include <streampool/stats.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* sizes (A50) */

#define SPM_SIZE_BUCKETS 32

/* All zero: of nothing. */
struct spm_sizes {
        uint64_t count;
        uint64_t bytes;
        size_t smallest; /* 0 as long as there is none, like the next */
        size_t largest;
        /* The first is of less than 32 bytes, the n-th after it of 16 << n to less than 32 << n,
         * and the last of all that is larger, too. */
        uint64_t buckets[SPM_SIZE_BUCKETS];
};

/** spm_sizes_add() - one more. */
void spm_sizes_add(struct spm_sizes *sizes, size_t size);

/**
 * spm_sizes_percentile() - so many of a hundred are not larger
 * @percent: more than 100 is 100; 50 asks for the median
 *
 * Return: the largest size that the bucket of that one holds, or the largest there is: never less
 * than the exact answer, and less than twice as much from 16 bytes on. 0 if there is none.
 */
size_t spm_sizes_percentile(const struct spm_sizes *sizes, unsigned int percent);

/* pools (A51, A52) */

struct spm_survey {
        uint64_t time; /* the caller's */
        struct spm_stats stats;
        struct spm_sizes live; /* as asked for */
        /* Memory that is ready, of which a block can be made without asking for more. What is left
         * at the end of a run of small blocks is not in it. */
        uint64_t free_bytes;
        uint64_t free_pieces;
        uint64_t largest_free;
        uint64_t average_free;  /* 0 if there is none */
        uint32_t fragmentation; /* how much of it is not in the largest piece, in millionths: 0 for
                                 * one piece, and for none */
        bool has_leaks;         /* something is live: at the end of a program, a leak */
        bool is_trimmed;        /* spm_trim() would give nothing back, but for what comes out of
                                 * magazines and quarantine */
};

/**
 * spm_survey() - look at @pool
 * @time: is handed back in the survey, and not looked at
 *
 * Return: SPM_OK, SPM_E_UNKNOWN. Magazines are stopped while it walks.
 */
enum spm_status spm_survey(const struct spm_model *model, spm_pool pool, uint64_t time,
                           struct spm_survey *survey);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
