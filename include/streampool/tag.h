/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STREAMPOOL_TAG_H
#define STREAMPOOL_TAG_H

/*
 * Tag -- whose the memory is, by names of the caller's own
 *
 * A tag is a name that allocations carry: a library, a call site, a phase of the program. It is
 * told in struct spm_request, and counts in pools that track uses (pool.h); what is allocated there
 * without one has tag 0. Of every figure the tags sum up to the total, also at its peak (B2): that
 * is why each has two, the most that it ever had itself, and what it had when all of them together
 * had most.
 *
 * Units: bytes as asked for. Threads: as in model.h, none.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/action.h>
#include <streampool/use.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

#define SPM_TAG_NAME 64 /* bytes of a name, with its end */

struct spm_tag_figures {
        uint32_t tag;
        char name[SPM_TAG_NAME]; /* of tag 0: empty */
        uint64_t live_blocks;
        uint64_t live_bytes;
        uint64_t live_bytes_high;  /* its own peak */
        uint64_t bytes_at_peak;    /* when the total was highest, the latest time */
        uint64_t made, made_bytes; /* ever; an allocation that is undone was not made */
        uint64_t freed;
};

/** spm_tag_add() - a tag of this name, the same one each time (B2). It lives as long as the model.
 * Return: SPM_OK, SPM_E_INVALID_VALUE (no name, or a longer one than SPM_TAG_NAME - 1),
 * SPM_E_HOST_MEMORY. */
enum spm_status spm_tag_add(struct spm_model *model, const char *name, uint32_t *tag);

/** spm_tag_of() - of a live allocation. Return: as of spm_use_count(). */
enum spm_status spm_tag_of(const struct spm_model *model, struct spm_block_id id, uint32_t *tag);

/** spm_each_tag() - the figures of each, tag 0 first, until @visit returns false. */
void spm_each_tag(const struct spm_model *model,
                  bool (*visit)(const struct spm_tag_figures *figures, void *user), void *user);

/** spm_tag_total() - of all pools that track uses; bytes_at_peak is live_bytes_high. */
void spm_tag_total(const struct spm_model *model, struct spm_tag_figures *figures);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
