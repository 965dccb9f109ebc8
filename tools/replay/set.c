/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Set -- ordered sets of free blocks, as the peers' own languages have them
 */

#include "set.h"

#include <stdbool.h>

/* An AVL tree of this height would have more nodes than there is memory. */
#define DEPTH_MAX 64

/* The links passed on the way down, root first. */
struct path {
        struct set_node **link[DEPTH_MAX];
        int length;
};

static bool is_before(const struct set_node *node, uint64_t high, uint64_t low)
{
        return node->high < high || (node->high == high && node->low < low);
}

static int height(const struct set_node *node)
{
        return node ? node->height : 0;
}

static void measure(struct set_node *node)
{
        int left = height(node->child[0]);
        int right = height(node->child[1]);

        node->height = (left > right ? left : right) + 1;
}

/* The child on @side comes up. */
static struct set_node *rotate(struct set_node *node, int side)
{
        struct set_node *up = node->child[side];

        node->child[side] = up->child[!side];
        up->child[!side] = node;
        measure(node);
        measure(up);
        return up;
}

static struct set_node *balance(struct set_node *node)
{
        int lean = height(node->child[1]) - height(node->child[0]);
        int side = lean > 0;
        struct set_node *child = node->child[side];

        if (lean >= -1 && lean <= 1) {
                measure(node);
                return node;
        }
        if (height(child->child[side]) < height(child->child[!side]))
                node->child[side] = rotate(child, !side);
        return rotate(node, side);
}

/* Upwards, until nothing changes. */
static void repair(struct path *path)
{
        while (path->length) {
                struct set_node **link = path->link[--path->length];
                int before;

                if (!*link)
                        continue;
                before = (*link)->height;
                *link = balance(*link);
                if ((*link)->height == before)
                        return;
        }
}

static struct set_node **descend(struct set *set, const struct set_node *node, struct path *path)
{
        struct set_node **link = &set->root;

        path->length = 0;
        while (*link && *link != node) {
                path->link[path->length++] = link;
                link = &(*link)->child[is_before(*link, node->high, node->low)];
        }
        return link;
}

void set_insert(struct set *set, struct set_node *node)
{
        struct path path;
        struct set_node **link = descend(set, node, &path);

        node->child[0] = NULL;
        node->child[1] = NULL;
        node->height = 1;
        *link = node;
        repair(&path);
}

void set_remove(struct set *set, struct set_node *node)
{
        struct path path;
        struct set_node **link = descend(set, node, &path);
        struct set_node **last;
        struct set_node *heir;
        int start;

        if (!node->child[1]) {
                *link = node->child[0];
                repair(&path);
                return;
        }
        start = path.length;
        path.link[path.length++] = link;
        last = &node->child[1];
        while ((*last)->child[0]) {
                path.link[path.length++] = last;
                last = &(*last)->child[0];
        }
        heir = *last;
        *last = heir->child[1];
        heir->child[0] = node->child[0];
        heir->child[1] = node->child[1];
        heir->height = node->height;
        *link = heir;
        /* The way went through the right child's link, which is the heir's now. */
        if (path.length > start + 1)
                path.link[start + 1] = &heir->child[1];
        repair(&path);
}

struct set_node *set_at_least(const struct set *set, uint64_t high, uint64_t low)
{
        struct set_node *node = set->root;
        struct set_node *best = NULL;

        while (node) {
                bool before = is_before(node, high, low);

                if (!before)
                        best = node;
                node = node->child[before];
        }
        return best;
}

struct set_node *set_at_most(const struct set *set, uint64_t high, uint64_t low)
{
        struct set_node *node = set->root;
        struct set_node *best = NULL;

        while (node) {
                bool after = node->high > high || (node->high == high && node->low > low);

                if (!after)
                        best = node;
                node = node->child[!after];
        }
        return best;
}
