/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bins tree -- which block of a bin is the smallest that is large enough
 *
 * A bin of many sizes is a treap whose ranks are computed from the address, so
 * that equal sets have equal shapes and a node is two links.
 */

#include "bins.h"

#include <assert.h>

#include "area.h"

static bool is_before(const struct spm_block *a, size_t size, uint64_t address)
{
        return a->size < size || (a->size == size && a->address < address);
}

/* Of the address alone, so that it stays the same while the block is in the tree; mixed well, since
 * addresses are regular. */
static uint64_t rank_of(const struct spm_block *block)
{
        uint64_t rank = (block->address >> 9) * 0x9E3779B97F4A7C15u;

        rank = (rank ^ rank >> 32) * 0xD6E8FEB86659FD93u;
        return rank ^ rank >> 32;
}

void spm_tree_insert(struct spm_block **root, struct spm_block *block)
{
        struct spm_block **at = root;
        struct spm_block **low = &block->left;
        struct spm_block **high = &block->right;
        struct spm_block *rest;
        uint64_t rank;

        if (!*at) {
                *at = block;
                *low = NULL;
                *high = NULL;
                return;
        }
        rank = rank_of(block);
        while (*at && rank_of(*at) >= rank)
                at = is_before(*at, block->size, block->address) ? &(*at)->right : &(*at)->left;

        /* It takes the place of a subtree, which is split into what is below and above. */
        rest = *at;
        *at = block;
        while (rest) {
                if (is_before(rest, block->size, block->address)) {
                        *low = rest;
                        low = &rest->right;
                        rest = rest->right;
                } else {
                        *high = rest;
                        high = &rest->left;
                        rest = rest->left;
                }
        }
        *low = NULL;
        *high = NULL;
}

void spm_tree_remove(struct spm_block **root, struct spm_block *block)
{
        struct spm_block **at = root;
        struct spm_block *low = block->left;
        struct spm_block *high = block->right;

        while (*at != block) {
                assert(*at);
                at = is_before(*at, block->size, block->address) ? &(*at)->right : &(*at)->left;
        }
        while (low && high) {
                if (rank_of(low) >= rank_of(high)) {
                        *at = low;
                        at = &low->right;
                        low = low->right;
                } else {
                        *at = high;
                        at = &high->left;
                        high = high->left;
                }
        }
        *at = low ? low : high;
}

struct spm_block *spm_tree_at_least(struct spm_block *node, size_t size, uint64_t address)
{
        struct spm_block *found = NULL;

        while (node) {
                if (is_before(node, size, address)) {
                        node = node->right;
                } else {
                        found = node;
                        node = node->left;
                }
        }
        return found;
}

struct spm_block *spm_tree_below(struct spm_block *node, size_t size, uint64_t address)
{
        struct spm_block *found = NULL;

        while (node) {
                if (is_before(node, size, address)) {
                        found = node;
                        node = node->right;
                } else {
                        node = node->left;
                }
        }
        return found;
}

bool spm_tree_is_ordered(const struct spm_block *node)
{
        unsigned int side;

        for (side = 0; side < 2; side++) {
                const struct spm_block *child = side ? node->right : node->left;

                if (child && (rank_of(child) > rank_of(node) ||
                              is_before(child, node->size, node->address) != !side))
                        return false;
        }
        return true;
}
