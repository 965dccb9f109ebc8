/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Audit test -- the benchmark would notice if an allocator cheated
 */

#include <criterion/criterion.h>
#include <string.h>

#include "audit.h"
#include "map.h"
#include "measure.h"
#include "trace.h"
#include "workload.h"

/* A peer with a planted mistake: once in a while a block that is live already. */

#define MISTAKE_EVERY 100

static uint64_t calls;
static uint64_t last;

static uint64_t alloc_twice(struct peer *peer, uint32_t stream, size_t size)
{
        if (++calls % MISTAKE_EVERY == 0 && last)
                return last + 256;
        last = peer_torch.alloc(peer, stream, size);
        return last;
}

static void free_once(struct peer *peer, uint64_t address, size_t size, uint32_t stream)
{
        if (address % 512 == 0)
                peer_torch.free(peer, address, size, stream);
}

static void run(const struct workload *workload, struct peer *peer, struct audit *audit)
{
        struct load load;
        int i;

        load_init(&load, peer, audit, 64);
        workload->prepare(&load, 64);
        for (i = 0; i < 100; i++)
                workload->step(&load, 64);
        load_drain(&load);
}

static const struct workload *find(const char *name)
{
        size_t i;

        for (i = 0; i < workload_count; i++)
                if (!strcmp(workloads[i].name, name))
                        return &workloads[i];
        cr_assert_fail("no workload is called %s", name);
        return NULL;
}

Test(audit, catches_an_overlap_planted_in_a_peer)
{
        struct peer_options options = {0};
        struct peer *peer = peer_torch.make(&options);
        struct peer_ops planted = peer_torch;
        struct audit audit = {0};

        planted.alloc = alloc_twice;
        planted.free = free_once;
        peer->ops = &planted;
        run(find("LIFO, 32 blocks"), peer, &audit);
        cr_expect(audit.overlaps > 0, "nothing was noticed");
        peer_torch.unmake(peer);
        audit_fini(&audit);
}

Test(audit, lets_neighbours_be_and_tells_every_kind_of_overlap)
{
        static const struct {
                uint64_t address, size;
                bool overlaps;
        } row[] = {
                {1000, 100, false}, {1100, 100, false}, {900, 100, false}, {1000, 1, true},
                {1050, 10, true},   {899, 2, true},     {1199, 5, true},   {1, 5000, true},
                {1200, 1, false},   {899, 1, false},
        };
        struct audit audit = {0};
        uint64_t expected = 0;
        size_t i;

        for (i = 0; i < sizeof(row) / sizeof(*row); i++) {
                audit_add(&audit, row[i].address, row[i].size);
                expected += row[i].overlaps;
                cr_expect_eq(audit.overlaps, expected, "row %zu", i);
        }
        audit_fini(&audit);
}

Test(audit, notices_a_free_of_what_is_not_live)
{
        struct audit audit = {0};

        audit_add(&audit, 4096, 512);
        audit_take(&audit, 4096 + 256);
        cr_expect_eq(audit.unknown, 1);
        audit_take(&audit, 4096);
        audit_take(&audit, 4096);
        cr_expect_eq(audit.unknown, 2);
}

/* set and map, which the peers stand on, against plain arrays */

#define KEYS 500

Test(set, finds_the_neighbours_that_a_plain_array_has)
{
        static struct set_node node[KEYS];
        struct chance chance = {12345};
        bool in[KEYS] = {false};
        struct set set = {0};
        int i;

        for (i = 0; i < 20000; i++) {
                int k = (int)chance_below(&chance, KEYS);
                struct set_node *above = set_at_least(&set, (uint64_t)k, 0);
                struct set_node *below = set_at_most(&set, (uint64_t)k, UINT64_MAX);
                int up = k, down = k;

                while (up < KEYS && !in[up])
                        up++;
                while (down >= 0 && !in[down])
                        down--;
                cr_assert_eq(above, up < KEYS ? &node[up] : NULL, "step %d, from %d up", i, k);
                cr_assert_eq(below, down >= 0 ? &node[down] : NULL, "step %d, from %d down", i, k);
                node[k].high = (uint64_t)k;
                if (in[k])
                        set_remove(&set, &node[k]);
                else
                        set_insert(&set, &node[k]);
                in[k] = !in[k];
        }
        /* 1.44 log2(500): it is balanced, or the peers would be shown too slow. */
        cr_expect(set.root->height <= 13, "height %d", set.root->height);
}

Test(map, keeps_what_a_plain_array_keeps)
{
        void *value[KEYS] = {NULL};
        struct chance chance = {54321};
        struct map map = {0};
        int i;

        for (i = 0; i < 20000; i++) {
                int k = (int)chance_below(&chance, KEYS);
                uint64_t key = (uint64_t)(k + 1) * 512;

                cr_assert_eq(map_get(&map, key), value[k], "step %d, key %d", i, k);
                if (value[k]) {
                        cr_assert_eq(map_take(&map, key), value[k]);
                        value[k] = NULL;
                } else {
                        value[k] = &value[k];
                        map_put(&map, key, value[k]);
                }
        }
        map_fini(&map);
}

/* figures */

Test(samples, are_told_by_rank_or_not_at_all)
{
        double ns[200];
        struct samples samples = {ns, 0, 200};
        int i;

        for (i = 100; i; i--)
                samples_add(&samples, (uint64_t)i * 16, 16);
        samples_sort(&samples);
        cr_expect_eq(samples_at(&samples, 0.5), 51.0);
        cr_expect_eq(samples_at(&samples, 0.98), 99.0);
        cr_expect(samples_at(&samples, 0.999) != samples_at(&samples, 0.999), "is no number");
}
