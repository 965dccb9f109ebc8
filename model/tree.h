/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_TREE_H
#define SPM_TREE_H

/*
 * Tree -- ordered sets whose nodes live in the things they order
 *
 * A node carries its key: (major, minor), compared in that order and unique in
 * its tree. Insertion, removal and search take time logarithmic in the size
 * of the set, and no memory.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spm_node {
        struct spm_node *left;
        struct spm_node *right;
        uint64_t major;
        uint64_t minor;
        uint32_t rank;
};

struct spm_tree {
        struct spm_node *root;
};

/** spm_node_owner() - the struct of @type whose field @member is @node, which may not be NULL. */
#define spm_node_owner(node, type, member) ((type *)((char *)(node)-offsetof(type, member)))

/** spm_tree_insert() - the caller sets the node's key; it must not be in the tree yet. */
void spm_tree_insert(struct spm_tree *tree, struct spm_node *node);

/** spm_tree_remove() - @node is in the tree. */
void spm_tree_remove(struct spm_tree *tree, struct spm_node *node);

/* The first, the last, the first at or after a key, the last at or before one, and the
 * neighbours of a node; NULL if there is none. */
struct spm_node *spm_tree_first(const struct spm_tree *tree);
struct spm_node *spm_tree_last(const struct spm_tree *tree);
struct spm_node *spm_tree_at_least(const struct spm_tree *tree, uint64_t major, uint64_t minor);
struct spm_node *spm_tree_at_most(const struct spm_tree *tree, uint64_t major, uint64_t minor);
struct spm_node *spm_tree_after(const struct spm_tree *tree, const struct spm_node *node);
struct spm_node *spm_tree_before(const struct spm_tree *tree, const struct spm_node *node);

/** spm_tree_check() - are keys in order and ranks heaped? @count receives the number of nodes. */
bool spm_tree_check(const struct spm_tree *tree, size_t *count);

#endif
