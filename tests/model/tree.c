/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tree -- ordered sets whose nodes live in the things they order
 */

#include "tree.h"

#include <criterion/criterion.h>

#define COUNT 500

static struct spm_node nodes[COUNT];

/* Keys 0, 7, 14, ... in an order that is neither up nor down. */
static void fill(struct spm_tree *tree)
{
        size_t i;

        for (i = 0; i < COUNT; i++) {
                nodes[i] = (struct spm_node){.major = (i * 263) % COUNT * 7, .minor = i};
                spm_tree_insert(tree, &nodes[i]);
        }
}

Test(tree, walks_in_order_and_stays_balanced)
{
        struct spm_tree tree = {0};
        struct spm_node *node;
        uint64_t expected = 0;
        size_t count;

        fill(&tree);
        for (node = spm_tree_first(&tree); node; node = spm_tree_after(&tree, node)) {
                cr_expect_eq(node->major, expected);
                expected += 7;
        }
        cr_expect_eq(expected, COUNT * 7);
        cr_expect(spm_tree_check(&tree, &count));
        cr_expect_eq(count, COUNT);
        cr_expect_eq(spm_tree_last(&tree)->major, (COUNT - 1) * 7);
}

Test(tree, finds_the_neighbours_of_a_key_that_is_absent)
{
        struct spm_tree tree = {0};

        fill(&tree);
        cr_expect_eq(spm_tree_at_least(&tree, 8, 0)->major, 14);
        cr_expect_eq(spm_tree_at_most(&tree, 8, 0)->major, 7);
        cr_expect_eq(spm_tree_before(&tree, spm_tree_at_least(&tree, 8, 0))->major, 7);
        cr_expect_null(spm_tree_at_least(&tree, COUNT * 7, 0));
        cr_expect_null(spm_tree_before(&tree, spm_tree_first(&tree)));
        cr_expect_null(spm_tree_after(&tree, spm_tree_last(&tree)));
}

Test(tree, removal_leaves_the_others)
{
        struct spm_tree tree = {0};
        size_t count;
        size_t i;

        fill(&tree);
        for (i = 0; i < COUNT; i += 2)
                spm_tree_remove(&tree, &nodes[i]);
        cr_expect(spm_tree_check(&tree, &count));
        cr_expect_eq(count, COUNT / 2);
        for (i = 1; i < COUNT; i += 2)
                cr_expect_eq(spm_tree_at_least(&tree, nodes[i].major, 0), &nodes[i]);
}

Test(tree, equal_sets_have_equal_shapes)
{
        struct spm_tree tree = {0};
        struct spm_node *root;
        size_t i;

        fill(&tree);
        root = tree.root;
        for (i = 0; i < COUNT / 2; i++)
                spm_tree_remove(&tree, &nodes[i]);
        for (i = 0; i < COUNT / 2; i++)
                spm_tree_insert(&tree, &nodes[COUNT / 2 - 1 - i]);
        cr_expect_eq(tree.root, root);
}
