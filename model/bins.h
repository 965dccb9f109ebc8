/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_BINS_H
#define SPM_BINS_H

/*
 * Bins -- free blocks by size
 *
 * A set of blocks that answers "the smallest of at least so many bytes" in a
 * time that does not depend on how many there are: two levels of bitmaps over
 * bins, as in a two-level segregated fit, but exact.
 *
 *   below 1024 units   one bin a size: whatever lies in it fits exactly
 *   above              64 bins a doubling, each a small tree ordered by size
 *                      and address
 *
 * A unit is the alignment of the pool, 512 bytes as a rule, so all blocks up
 * to 512 KiB are in bins of their own size. Of several blocks of one size a
 * tree gives the one at the lowest address; a list one of the newest, the lower
 * of two.
 *
 * The links are in the blocks. Bins of 64 neighbouring sizes are one row, and
 * rows are made when they are first needed: that can fail, see
 * spm_bins_insert(). spm_bins_prepare() makes all that can be needed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/model.h>

struct spm_block;
struct spm_row;

#define SPM_EXACT_ROWS 16
#define SPM_ROWS       (SPM_EXACT_ROWS + 54)

struct spm_bins {
        uint64_t used[(SPM_ROWS + 63) / 64]; /* rows that are not empty */
        unsigned int shift;                  /* of a unit */
        struct spm_row *rows[SPM_ROWS];
};

/** spm_bins_init() - of zeroed memory; @unit is a power of two that all sizes are multiples of. */
void spm_bins_init(struct spm_bins *bins, size_t unit);

/** spm_bins_prepare() - rows for every size up to @size. Return: false if there is no memory. */
bool spm_bins_prepare(struct spm_model *model, struct spm_bins *bins, size_t size);

/** spm_bins_forget() - its rows; the blocks are left alone. */
void spm_bins_forget(struct spm_model *model, struct spm_bins *bins);

static inline bool spm_bins_is_empty(const struct spm_bins *bins)
{
        return !bins->used[0] && !bins->used[1];
}

/** spm_bins_insert() - Return: false if a row was missing and there is no memory for it. */
bool spm_bins_insert(struct spm_model *model, struct spm_bins *bins, struct spm_block *block);
void spm_bins_remove(struct spm_bins *bins, struct spm_block *block);

/** spm_bins_change() - a block of the set gets another address and size, and the place that is
 * right for them, of which there is a row. */
void spm_bins_change(struct spm_bins *bins, struct spm_block *block, uint64_t address, size_t size);

/* The smallest block of at least @size bytes; the next in the order of sizes; the largest; and the
 * one before. NULL if there is none. */
struct spm_block *spm_bins_at_least(const struct spm_bins *bins, size_t size);
struct spm_block *spm_bins_after(const struct spm_bins *bins, const struct spm_block *block);
struct spm_block *spm_bins_largest(const struct spm_bins *bins);
struct spm_block *spm_bins_before(const struct spm_bins *bins, const struct spm_block *block);

/** spm_bins_check() - is every block where it belongs? @count receives how many there are. */
bool spm_bins_check(const struct spm_bins *bins, size_t *count);

/* inside: a bin of many sizes is a tree by size and address (bins_tree.c) */

void spm_tree_insert(struct spm_block **root, struct spm_block *block);
void spm_tree_remove(struct spm_block **root, struct spm_block *block);

/* The first that is not before a block of @size at @address, or the last that is; NULL if there is
 * none. */
struct spm_block *spm_tree_at_least(struct spm_block *node, size_t size, uint64_t address);
struct spm_block *spm_tree_below(struct spm_block *node, size_t size, uint64_t address);

/** spm_tree_is_ordered() - are the children of @node on the right sides of it, and below it? */
bool spm_tree_is_ordered(const struct spm_block *node);

#endif
