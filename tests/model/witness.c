/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Witness -- each kind of hazard once, and what is forgotten where there is no room
 *
 * What orders what is tried by tests/property/witness.c.
 */

#include <criterion/criterion.h>
#include <stdlib.h>
#include <streampool/witness.h>

static const struct spm_actor a = {1, 1, SPM_STREAM_NON_BLOCKING};
static const struct spm_actor b = {2, 1, SPM_STREAM_NON_BLOCKING};
static const struct spm_seen_life block = {0x7f0000000000, 1};
static const struct spm_touch reads = {SPM_TOUCH_READ, 0, 64, {&reads, "read"}};
static const struct spm_touch writes = {SPM_TOUCH_WRITE, 0, 64, {&writes, "write"}};
static const struct spm_touch given = {SPM_TOUCH_ARGUMENT, 0, 64, {&given, "launch"}};
static const struct spm_spot made = {&made, "alloc"};

static struct spm_witness *witness;

static void set_up(void)
{
        witness = spm_witness_new(NULL);
        cr_assert_not_null(witness);
}

static void tear_down(void)
{
        spm_witness_free(witness);
}

TestSuite(witness, .init = set_up, .fini = tear_down);

static struct spm_verdict use(struct spm_actor actor, const struct spm_touch *touch)
{
        struct spm_verdict verdict;

        spm_witness_submit(witness, actor);
        verdict = spm_witness_look(witness, actor, block, touch);
        spm_witness_touch(witness, actor, block, touch);
        return verdict;
}

static void alloc(struct spm_actor actor)
{
        spm_witness_submit(witness, actor);
        spm_witness_alloc(witness, actor, block, made);
}

static struct spm_verdict free_on(struct spm_actor actor)
{
        spm_witness_submit(witness, actor);
        return spm_witness_look_free(witness, actor, block);
}

static void order(struct spm_actor before, struct spm_actor after)
{
        spm_witness_record(witness, 7, before);
        spm_witness_wait(witness, after, 7);
}

/* what is blamed, and for what */

Test(witness, a_use_that_is_not_behind_the_allocation_is_told_where_that_was)
{
        struct spm_verdict verdict;

        alloc(a);
        cr_expect_eq(use(a, &writes).hazard, SPM_HAZARD_NONE);
        verdict = use(b, &given);
        cr_expect_eq(verdict.hazard, SPM_HAZARD_USE_BEFORE_ALLOC);
        cr_expect(verdict.is_alloc);
        cr_expect_eq(verdict.stream, a.stream);
        cr_expect_eq(verdict.spot.site, &made);
        order(a, b);
        cr_expect_eq(use(b, &given).hazard, SPM_HAZARD_NONE);
}

Test(witness, a_race_is_told_the_use_that_it_is_with)
{
        struct spm_verdict verdict;

        use(a, &writes);
        verdict = use(b, &reads);
        cr_expect_eq(verdict.hazard, SPM_HAZARD_RACE);
        cr_expect_eq(verdict.kind, SPM_TOUCH_WRITE);
        cr_expect_not(verdict.is_alloc);
        cr_expect_eq(verdict.spot.site, &writes);
}

Test(witness, what_is_only_given_races_with_nothing)
{
        use(a, &writes);
        cr_expect_eq(use(b, &given).hazard, SPM_HAZARD_NONE);
        cr_expect_eq(use((struct spm_actor){3, 1, SPM_STREAM_NON_BLOCKING}, &given).hazard,
                     SPM_HAZARD_NONE);
}

Test(witness, a_free_is_told_what_is_proven_first)
{
        alloc(a);
        order(a, b);
        use(b, &given);
        cr_expect_eq(free_on(a).kind, SPM_TOUCH_ARGUMENT);
        use(b, &reads);
        cr_expect_eq(free_on(a).kind, SPM_TOUCH_READ);
        cr_expect_eq(free_on(a).hazard, SPM_HAZARD_FREE_BEFORE_USE);
        cr_expect_eq(free_on(b).hazard, SPM_HAZARD_NONE);
}

Test(witness, a_free_on_a_stream_that_is_not_behind_the_allocation)
{
        alloc(a);
        cr_expect_eq(free_on(b).hazard, SPM_HAZARD_FREE_BEFORE_ALLOC);
        cr_expect_eq(free_on(a).hazard, SPM_HAZARD_NONE);
}

Test(witness, a_synchronous_free_waits_for_one_context)
{
        use(a, &reads);
        cr_expect_eq(spm_witness_look_sync_free(witness, 1, block).hazard, SPM_HAZARD_NONE);
        cr_expect_eq(spm_witness_look_sync_free(witness, 2, block).hazard, SPM_HAZARD_SYNC_FREE);
        cr_expect_eq(spm_witness_look_sync_free(witness, 0, block).hazard, SPM_HAZARD_SYNC_FREE);
        spm_witness_saw_stream(witness, a, spm_witness_now(witness));
        cr_expect_eq(spm_witness_look_sync_free(witness, 0, block).hazard, SPM_HAZARD_NONE);
}

/* silence */

Test(witness, nothing_is_blamed_until_the_host_has_seen_what_can_wait_for_anything)
{
        use(a, &writes);
        spm_witness_mute(witness, b);
        cr_expect_eq(use(b, &writes).hazard, SPM_HAZARD_NONE);
        spm_witness_saw_stream(witness, a, spm_witness_now(witness));
        use(a, &writes);
        cr_expect_eq(use(b, &writes).hazard, SPM_HAZARD_NONE);
        spm_witness_saw_stream(witness, b, spm_witness_now(witness));
        cr_expect_eq(use(a, &writes).hazard, SPM_HAZARD_NONE, "all that was before is complete");
        cr_expect_eq(use(b, &writes).hazard, SPM_HAZARD_RACE);
}

Test(witness, all_that_was_submitted_can_be_taken_for_complete)
{
        use(a, &writes);
        spm_witness_blur(witness);
        cr_expect_eq(use(b, &writes).hazard, SPM_HAZARD_NONE);
        cr_expect_eq(use(a, &writes).hazard, SPM_HAZARD_RACE);
}

Test(witness, who_has_given_up_says_nothing_any_more)
{
        use(a, &writes);
        spm_witness_give_up(witness);
        cr_expect_eq(use(b, &writes).hazard, SPM_HAZARD_NONE);
        cr_expect_eq(spm_witness_look_sync_free(witness, 0, block).hazard, SPM_HAZARD_NONE);
        spm_witness_saw_context(witness, 1, spm_witness_now(witness));
        use(a, &writes);
        cr_expect_eq(use(b, &writes).hazard, SPM_HAZARD_NONE);
}

/* room */

static void start_with(struct spm_witness_config config)
{
        spm_witness_free(witness);
        witness = spm_witness_new(&config);
        cr_assert_not_null(witness);
}

Test(witness, an_event_whose_place_was_taken_can_be_anything)
{
        start_with((struct spm_witness_config){.events = 4});
        use(a, &writes);
        spm_witness_record(witness, 7, a);
        spm_witness_record(witness, 11, a);
        spm_witness_wait(witness, b, 7);
        cr_expect_eq(use(b, &writes).hazard, SPM_HAZARD_NONE);
}

Test(witness, of_many_streams_the_oldest_counts_as_seen)
{
        start_with((struct spm_witness_config){.streams = 2});
        use(a, &writes);
        spm_witness_submit(witness, b);
        cr_expect_eq(use((struct spm_actor){3, 1, SPM_STREAM_NON_BLOCKING}, &writes).hazard,
                     SPM_HAZARD_NONE);
        cr_expect_eq(use(b, &writes).hazard, SPM_HAZARD_RACE);
}

Test(witness, where_no_stream_can_be_forgotten_it_gives_up)
{
        start_with((struct spm_witness_config){.streams = 1});
        spm_witness_mute(witness, a);
        spm_witness_submit(witness, b);
        spm_witness_saw_stream(witness, a, spm_witness_now(witness));
        use(a, &writes);
        cr_expect_eq(use(b, &writes).hazard, SPM_HAZARD_NONE);
}

Test(witness, of_many_blocks_the_oldest_is_forgotten)
{
        struct spm_seen_life other = {.number = 1};

        start_with((struct spm_witness_config){.blocks = 8});
        use(a, &writes);
        for (int i = 0; i < 8; i++) {
                other.address += 4096;
                spm_witness_touch(witness, a, other, &writes);
        }
        cr_expect_eq(spm_witness_look(witness, b, block, &writes).hazard, SPM_HAZARD_NONE);
        spm_witness_submit(witness, b);
        cr_expect_eq(spm_witness_look(witness, b, other, &writes).hazard, SPM_HAZARD_RACE);
}

Test(witness, of_many_streams_that_use_a_block_the_oldest_is_forgotten)
{
        for (uint32_t i = 0; i < 9; i++) {
                struct spm_actor each = {10 + i, 1, SPM_STREAM_NON_BLOCKING};

                use(each, &reads);
                if (i == 0)
                        spm_witness_record(witness, 1, each);
                else
                        spm_witness_saw_stream(witness, each, spm_witness_now(witness));
        }
        cr_expect_eq(use(a, &writes).hazard, SPM_HAZARD_NONE);
}

Test(witness, memory_that_was_given_out_again_is_no_ones_yet)
{
        struct spm_seen_life next = {block.address, 2};

        use(a, &writes);
        spm_witness_submit(witness, b);
        cr_expect_eq(spm_witness_look(witness, b, next, &writes).hazard, SPM_HAZARD_NONE);
        spm_witness_touch(witness, b, next, &writes);
        cr_expect_eq(spm_witness_look(witness, b, block, &writes).hazard, SPM_HAZARD_NONE);
}

/* host memory */

static unsigned int left;
static int held;

static void *take(size_t count, size_t size, void *user)
{
        (void)user;
        if (left-- == 0)
                return NULL;
        held++;
        return calloc(count, size);
}

static void give(void *memory, void *user)
{
        (void)user;
        held--;
        free(memory);
}

Test(witness, without_memory_there_is_none)
{
        struct spm_witness_config config = {.alloc = take, .free = give};
        struct spm_witness *other;

        for (unsigned int i = 0; i < 2; i++) {
                left = i;
                cr_expect_null(spm_witness_new(&config));
                cr_expect_eq(held, 0);
        }
        left = 2;
        other = spm_witness_new(&config);
        cr_expect_not_null(other);
        spm_witness_free(other);
        cr_expect_eq(held, 0);
        spm_witness_free(NULL);
}
