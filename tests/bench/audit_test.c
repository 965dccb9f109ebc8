/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Audit test -- the benchmark would notice if an allocator cheated
 */

#include <criterion/criterion.h>
#include <string.h>

#include "audit.h"
#include "device.h"
#include "map.h"
#include "measure.h"
#include "records.h"
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
                workload->step(&load, 64, 16);
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

/* segments */

Test(audit, knows_where_memory_is)
{
        static const struct {
                uint64_t address, size;
                bool is_mapped;
        } row[] = {
                {1000, 100, true}, {1000, 200, true}, {1050, 100, true},  {1199, 1, true},
                {999, 1, false},   {999, 2, false},   {1150, 51, false},  {1200, 1, false},
                {1250, 10, false}, {900, 1, false},   {1000, 301, false}, {1300, 100, true},
        };
        size_t i;

        for (i = 0; i < sizeof(row) / sizeof(*row); i++) {
                struct audit audit = {0};

                audit_map(&audit, 1000, 100);
                audit_map(&audit, 1100, 100);
                audit_map(&audit, 1300, 100);
                audit_add(&audit, row[i].address, row[i].size);
                cr_expect_eq(audit_is_clean(&audit), row[i].is_mapped, "row %zu", i);
                audit_fini(&audit);
        }
}

Test(audit, notices_segments_that_overlap_or_are_none)
{
        struct audit audit = {0};

        audit_map(&audit, 1000, 100);
        audit_map(&audit, 1099, 100);
        cr_expect_eq(audit.overlaps, 1);
        audit_unmap(&audit, 1000, 50);
        cr_expect_eq(audit.unknown, 1, "only a part of it");
        audit_unmap(&audit, 1000, 100);
        cr_expect_eq(audit.unknown, 2, "it is gone");
        audit_fini(&audit);
}

Test(audit, notices_a_release_under_a_live_block)
{
        struct audit audit = {0};

        audit_map(&audit, 1000, 100);
        audit_map(&audit, 1100, 100);
        audit_add(&audit, 1090, 20);
        audit_unmap(&audit, 1100, 100);
        cr_expect_eq(audit.unmapped, 1);
        audit_take(&audit, 1090);
        audit_add(&audit, 1090, 20);
        cr_expect_eq(audit.unmapped, 2, "half of it has no memory");
        audit_fini(&audit);
}

/* the device, told what a model would tell it */

static void tell(struct pool_peer *peer, struct spm_action action)
{
        struct spm_actions actions = {.count = 1, .item = {action}};
        struct spm_request request = {0};

        device_perform(peer, &actions, &request);
}

Test(device, grows_where_it_is_told_and_counts_moves)
{
        struct audit audit = {0};
        struct peer_options options = {.has_device = true, .audit = &audit, .capacity = 8 * MIB};
        struct pool_peer *peer = (struct pool_peer *)peer_model.make(&options);
        uint64_t place = device_range(SPM_POOL_ASYNC) + 6 * MIB;
        struct spm_action grow = {SPM_ACT_GROW, .pool = peer->async, .address = place};
        struct spm_action release = {SPM_ACT_RELEASE, .address = place, .size = 4 * MIB};

        grow.size = 4 * MIB;
        tell(peer, grow);
        cr_expect_eq(peer->peer.figures.reserved, 4 * MIB);
        audit_add(&audit, place, 4 * MIB);
        cr_expect(audit_is_clean(&audit));
        audit_take(&audit, place);
        release.moves = true;
        tell(peer, release);
        cr_expect_eq(peer->peer.figures.moves, 1);
        cr_expect_eq(peer->peer.figures.releases, 1);
        cr_expect_eq(peer->peer.figures.reserved, 0);
        cr_expect(audit_is_clean(&audit));
        grow.address = 8 * DEVICE_RANGE;
        tell(peer, grow);
        cr_expect_eq(audit.misplaced, 1, "that is in nobody's range");
        cr_expect_eq(peer->peer.figures.reserved_high, 4 * MIB);
        audit_fini(&audit);
        peer_model.unmake(&peer->peer);
}

static uint64_t reserved(const struct pool_peer *peer, spm_pool pool)
{
        struct spm_stats stats;

        cr_assert_eq(spm_stats(peer->model, pool, &stats), SPM_OK);
        return stats.reserved_current;
}

Test(device, that_is_full_takes_from_the_other_pool)
{
        struct peer_options options = {.has_device = true, .keep = 64 * MIB};
        struct pool_peer *peer = (struct pool_peer *)peer_model.make(&options);
        const struct peer_ops *ops = peer->peer.ops;
        struct spm_action grow = {SPM_ACT_GROW, .pool = peer->async, .size = 2 * MIB};
        uint64_t own;

        ops->order(&peer->peer, PEER_STREAM_MADE, 1, 1);
        ops->free(&peer->peer, ops->alloc(&peer->peer, 1, 8 * MIB), 8 * MIB, 1);
        ops->free(&peer->peer, ops->alloc(&peer->peer, PEER_ANYWHERE, 8 * MIB), 8 * MIB,
                  PEER_ANYWHERE);
        ops->order(&peer->peer, PEER_SYNC_ALL, 0, 0);
        own = reserved(peer, peer->async);
        cr_assert(own && reserved(peer, peer->sync));
        peer->options.capacity = peer->peer.figures.reserved;
        grow.address = device_range(SPM_POOL_ASYNC) + GIB;
        tell(peer, grow);
        cr_expect_eq(reserved(peer, peer->sync), 0);
        cr_expect_eq(reserved(peer, peer->async), own + 2 * MIB, "it keeps what it had");
        peer_model.unmake(&peer->peer);
}

Test(records, are_counted_as_asked_for_and_zeroed)
{
        struct records records = {0};
        unsigned char *first = records_new(3, 100, &records);
        void *second = records_new(1, 50, &records);
        int i;

        for (i = 0; i < 300; i++)
                cr_assert_eq(first[i], 0);
        records_free(first, &records);
        cr_expect_eq(records.bytes, 50);
        cr_expect_eq(records.high, 350);
        records_free(NULL, &records);
        records_free(second, &records);
        cr_expect_eq(records.bytes, 0);
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
