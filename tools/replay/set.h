/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SET_H
#define SET_H

/*
 * Set -- ordered sets of free blocks, as the peers' own languages have them
 *
 * A balanced (AVL) tree whose nodes live in what they order; it stands for the
 * std::set of the peers and is about as deep. Keys are (high, low), unique.
 */

#include <stddef.h>
#include <stdint.h>

struct set_node {
        struct set_node *child[2];
        uint64_t high;
        uint64_t low;
        int height;
};

struct set {
        struct set_node *root;
};

void set_insert(struct set *set, struct set_node *node);

/** set_remove() - @node is in the set. */
void set_remove(struct set *set, struct set_node *node);

/** set_at_least() - the first node at or after a key, or NULL. */
struct set_node *set_at_least(const struct set *set, uint64_t high, uint64_t low);

/** set_at_most() - the last node at or before a key, or NULL. */
struct set_node *set_at_most(const struct set *set, uint64_t high, uint64_t low);

#endif
