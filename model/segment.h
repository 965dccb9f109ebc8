/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_SEGMENT_H
#define SPM_SEGMENT_H

/*
 * Segment -- memory that was obtained, and where it is
 *
 * A segment backs some whole grains of an area. In a range segments come and
 * go one by one: what is released leaves a HOLE, and a HOLE can be backed
 * again. A segment by itself is an area of its own.
 *
 * A segment can be released when one READY block holds all of it. Such blocks
 * are said to span, and their pool keeps a list of them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/model.h>

#include "area.h"
#include "table.h"

struct spm_segment_state {
        struct spm_object object;
        struct spm_area *area;
        uint64_t base;
        size_t size;
        void *cookie;
};

/**
 * spm_segment_new() - a segment that is READY
 *
 * Return: SPM_OK, SPM_E_INVALID_VALUE (overlap, or the end of the address space),
 * SPM_E_HOST_MEMORY.
 */
enum spm_status spm_segment_new(struct spm_model *model, struct spm_pool_state *pool, uint64_t base,
                                size_t size, void *cookie, struct spm_segment_state **segment);

/** spm_segment_at() - the segment that backs @address, or NULL. */
struct spm_segment_state *spm_segment_at(const struct spm_model *model, uint64_t address);

/** spm_segment_last_in() - the last segment that lies wholly in the READY @block, or NULL. */
struct spm_segment_state *spm_segment_last_in(const struct spm_block *block);

/** spm_segment_before() - the segment before @segment, if it too lies wholly in @block. */
struct spm_segment_state *spm_segment_before(const struct spm_block *block,
                                             const struct spm_segment_state *segment);

/**
 * spm_segment_free() - the READY @block holds all of the segment
 *
 * What is left of the block behind the segment gets another record; what is left before keeps this
 * one. Two records are at hand.
 */
void spm_segment_free(struct spm_model *model, struct spm_block *block,
                      struct spm_segment_state *segment);

/** spm_segment_drop() - of a pool that has ended. */
void spm_segment_drop(struct spm_model *model, struct spm_segment_state *segment);

#endif
