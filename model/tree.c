/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tree -- ordered sets whose nodes live in the things they order
 *
 * A treap: a search tree by key that is also a heap by rank. The rank is a
 * hash of the key, so equal sets have equal shapes whatever happened before,
 * and no state for random numbers is needed.
 */

#include "tree.h"

#include <assert.h>

static uint32_t rank_of(uint64_t major, uint64_t minor)
{
        uint64_t x = major * 0x9e3779b97f4a7c15u + minor;

        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        return (uint32_t)(x >> 32);
}

static bool is_before(const struct spm_node *node, uint64_t major, uint64_t minor)
{
        return node->major < major || (node->major == major && node->minor < minor);
}

void spm_tree_insert(struct spm_tree *tree, struct spm_node *node)
{
        struct spm_node **at = &tree->root;
        struct spm_node **low = &node->left;
        struct spm_node **high = &node->right;
        struct spm_node *rest;

        node->rank = rank_of(node->major, node->minor);
        while (*at && (*at)->rank >= node->rank)
                at = is_before(*at, node->major, node->minor) ? &(*at)->right : &(*at)->left;

        /* The node takes the place of a subtree, which is split into what is below and above. */
        rest = *at;
        *at = node;
        while (rest) {
                if (is_before(rest, node->major, node->minor)) {
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

void spm_tree_remove(struct spm_tree *tree, struct spm_node *node)
{
        struct spm_node **at = &tree->root;
        struct spm_node *low = node->left;
        struct spm_node *high = node->right;

        while (*at != node) {
                assert(*at);
                at = is_before(*at, node->major, node->minor) ? &(*at)->right : &(*at)->left;
        }

        while (low && high) {
                if (low->rank >= high->rank) {
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
        node->left = NULL;
        node->right = NULL;
}

struct spm_node *spm_tree_first(const struct spm_tree *tree)
{
        struct spm_node *node = tree->root;

        while (node && node->left)
                node = node->left;
        return node;
}

struct spm_node *spm_tree_last(const struct spm_tree *tree)
{
        struct spm_node *node = tree->root;

        while (node && node->right)
                node = node->right;
        return node;
}

struct spm_node *spm_tree_at_least(const struct spm_tree *tree, uint64_t major, uint64_t minor)
{
        struct spm_node *node = tree->root;
        struct spm_node *found = NULL;

        while (node) {
                if (is_before(node, major, minor)) {
                        node = node->right;
                } else {
                        found = node;
                        node = node->left;
                }
        }
        return found;
}

struct spm_node *spm_tree_at_most(const struct spm_tree *tree, uint64_t major, uint64_t minor)
{
        struct spm_node *node = tree->root;
        struct spm_node *found = NULL;

        while (node) {
                if (is_before(node, major, minor) ||
                    (node->major == major && node->minor == minor)) {
                        found = node;
                        node = node->right;
                } else {
                        node = node->left;
                }
        }
        return found;
}

struct spm_node *spm_tree_after(const struct spm_tree *tree, const struct spm_node *node)
{
        if (node->minor == UINT64_MAX)
                return node->major == UINT64_MAX ? NULL
                                                 : spm_tree_at_least(tree, node->major + 1, 0);
        return spm_tree_at_least(tree, node->major, node->minor + 1);
}

struct spm_node *spm_tree_before(const struct spm_tree *tree, const struct spm_node *node)
{
        if (node->minor)
                return spm_tree_at_most(tree, node->major, node->minor - 1);
        return node->major ? spm_tree_at_most(tree, node->major - 1, UINT64_MAX) : NULL;
}

bool spm_tree_check(const struct spm_tree *tree, size_t *count)
{
        const struct spm_node *node;
        const struct spm_node *last = NULL;

        *count = 0;
        for (node = spm_tree_first(tree); node; node = spm_tree_after(tree, node)) {
                if (last && !is_before(last, node->major, node->minor))
                        return false;
                if ((node->left && node->left->rank > node->rank) ||
                    (node->right && node->right->rank > node->rank))
                        return false;
                last = node;
                ++*count;
        }
        return true;
}
