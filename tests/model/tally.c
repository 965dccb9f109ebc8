/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tally -- sums over pools, while magazines count for themselves
 *
 * The marks of a pool are exact. Those of a tally would be, too, if all
 * magazines of all its pools were settled whenever it rises; they are not, and
 * so a mark can be on either side of the true peak, within a bound that the
 * public header states. Here the peak and the bound are followed step by step.
 */

#include "bench.h"
#include "magazine.h"
#include "pool.h"
#include "state.h"

#define BASE   ((uint64_t)1 << 45)
#define GIB    ((size_t)1 << 30)
#define POOLS  2
#define BLOCKS 300
#define STEPS  40000

struct hold {
        uint64_t address; /* 0: none */
        unsigned int pool;
        spm_stream stream;
};

static struct spm_tally tally;
static struct {
        spm_pool id;
        struct spm_magazine *magazines[2]; /* of s and of t */
} pools[POOLS];
static struct hold holds[BLOCKS];
static uint64_t own;                    /* bytes of the caller's */
static uint64_t peak, most_live;        /* of all that was held, in truth */
static uint64_t most_freed, most_ended; /* by magazines alone, at once */
static uint64_t most_unseen;            /* above the mark */

static void set_up(void)
{
        unsigned int i;

        bench_set_up();
        bench.device_done = true;
        for (i = 0; i < POOLS; i++) {
                struct spm_pool_config config = {
                        .kind = SPM_POOL_ASYNC,
                        .range_base = BASE + i * 64 * GIB,
                        .range_size = 64 * GIB,
                        .tallies = {&tally},
                };

                pools[i].id = bench_pool(config);
                cr_assert_eq(
                        spm_magazine_new(bench.model, pools[i].id, bench.s, &pools[i].magazines[0]),
                        SPM_OK);
                cr_assert_eq(
                        spm_magazine_new(bench.model, pools[i].id, bench.t, &pools[i].magazines[1]),
                        SPM_OK);
        }
}

TestSuite(tally, .init = set_up, .fini = bench_tear_down);

static void keep_most(uint64_t *most, uint64_t now)
{
        if (*most < now)
                *most = now;
}

/* What magazines may rise by, and have fallen by, since they were settled. */
static void follow(void)
{
        uint64_t bytes = own, live = own != 0, may_rise = 0, may_begin = 0, freed = 0, ended = 0;
        unsigned int i, j;

        for (i = 0; i < POOLS; i++) {
                const struct spm_pool_state *pool = spm_pool_find(bench.model, pools[i].id);
                struct spm_stats stats = bench_stats(pools[i].id);

                bytes += stats.used_current;
                live += stats.live_blocks;
                may_rise += pool->used_granted;
                may_begin += pool->live_granted;
                cr_assert_leq(stats.used_current, stats.used_high, "I11");
                cr_assert_leq(pool->used_bytes + pool->used_granted, stats.used_high);
                for (j = 0; j < 2; j++) {
                        int64_t used = pools[i].magazines[j]->used;
                        int64_t count = pools[i].magazines[j]->live;

                        freed += used < 0 ? (uint64_t)-used : 0;
                        ended += count < 0 ? (uint64_t)-count : 0;
                }
        }
        keep_most(&peak, bytes);
        keep_most(&most_live, live);
        keep_most(&most_unseen, bytes > tally.bytes_high ? bytes - tally.bytes_high : 0);
        keep_most(&most_freed, freed);
        keep_most(&most_ended, ended);
        cr_assert_leq(bytes, tally.bytes_high + may_rise, "no more than was granted is unseen");
        cr_assert_leq(live, tally.count_high + may_begin);
        cr_assert_leq(tally.bytes_high, peak + most_freed, "no more than lies in magazines");
        cr_assert_leq(tally.count_high, most_live + most_ended);
}

static uint32_t draw(uint64_t *state, uint32_t below)
{
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        return (uint32_t)(*state >> 32) % below;
}

static void alloc(struct hold *hold, unsigned int pool, unsigned int which, size_t size)
{
        struct spm_magazine *magazine = pools[pool].magazines[which];
        struct spm_request request = {.pool = pools[pool].id, .size = size, .magazine = magazine};
        struct spm_allocation served;
        struct spm_actions actions;
        enum spm_status status;

        *hold = (struct hold){.pool = pool, .stream = which ? bench.t : bench.s};
        request.stream = hold->stream;
        if (!spm_magazine_alloc(magazine, size, 0, &served)) {
                do {
                        status = spm_alloc(bench.model, &request, &served, &actions);
                        bench_do(&actions, &request);
                } while (status == SPM_AGAIN);
                cr_assert_eq(status, SPM_OK);
        }
        hold->address = served.address;
}

static void give(struct hold *hold, bool at_hand)
{
        struct spm_magazine *magazine = pools[hold->pool].magazines[hold->stream == bench.t];

        if (!at_hand || !spm_magazine_free(magazine, hold->address, 0, NULL))
                bench_free(hold->address, hold->stream);
        hold->address = 0;
}

static void toggle_own(void)
{
        if (own)
                spm_tally_take(&tally, own);
        own = own ? 0 : MIB;
        if (own)
                spm_tally_add(&tally, own);
}

/* Where all blocks of one pool are freed while the other rises, and the other way round. */
static void step(uint64_t *random, unsigned int favoured)
{
        struct hold *hold = &holds[draw(random, BLOCKS)];
        unsigned int pool = draw(random, 4) ? favoured : !favoured;

        if (!draw(random, 500))
                spm_settle(bench.model);
        else if (!draw(random, 100))
                toggle_own();
        else if (!hold->address)
                alloc(hold, pool, draw(random, 2), 1 + draw(random, 20 * KIB));
        else if (hold->pool != favoured || draw(random, 2))
                give(hold, draw(random, 4));
}

Test(tally, marks_miss_the_peak_by_no_more_than_magazines_have_or_may, .timeout = 60)
{
        uint64_t random = 4711;
        unsigned int i;

        for (i = 0; i < STEPS; i++) {
                step(&random, i / 2000 % 2);
                follow();
        }
        spm_settle(bench.model);
        cr_expect_gt(most_freed, 0, "magazines have not fallen by themselves");
}

/* One pool is as full as it ever was, and the magazine of the other rises by itself. */
Test(tally, a_mark_misses_no_more_than_magazines_were_granted)
{
        unsigned int i;

        for (i = 0; i < 64; i++)
                alloc(&holds[i], 0, 0, 1000);
        follow();
        for (i = 0; i < 64; i++)
                give(&holds[i], false);
        for (i = 0; i < 128; i++) {
                alloc(&holds[i], i < 64, i >= 64, 1000);
                follow();
        }
        cr_expect_gt(most_unseen, 0, "the magazine has not risen by itself");
        for (i = 64; i < 128; i++)
                give(&holds[i], true);
        spm_settle(bench.model);
        follow();
}

Test(tally, marks_are_exact_where_magazines_are_settled)
{
        uint64_t random = 42;
        unsigned int i;

        for (i = 0; i < STEPS / 10; i++) {
                step(&random, i / 200 % 2);
                spm_settle(bench.model);
                follow();
        }
        cr_expect_eq(tally.bytes_high, peak);
        cr_expect_eq(tally.count_high, most_live);
}
