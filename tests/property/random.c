/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random -- no program makes the model break its word
 *
 * Programs of random bytes, against the graph of all that was submitted. A
 * failure prints its seed; trace_one_seed, below, tells its steps on standard
 * error when SEED is defined.
 */

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>

#include "ops.h"

#define SIZE  4000
#define SEEDS 400

static struct ops_result run(uint64_t seed, size_t size, const struct ops_options *options)
{
        uint8_t *bytes = malloc(size);
        struct ops_result result;

        cr_assert_not_null(bytes);
        ops_random(seed, bytes, size);
        ops_run(bytes, size, options, &result);
        free(bytes);
        return result;
}

Test(random, no_two_owners_meet_and_every_invariant_holds)
{
        struct ops_options options = {0};
        size_t steps = 0;
        size_t reused = 0;
        uint64_t seed;

        for (seed = 1; seed <= SEEDS; seed++) {
                struct ops_result result = run(seed, SIZE, &options);

                cr_assert_eq(result.failure[0], 0, "seed %llu, step %zu: %s",
                             (unsigned long long)seed, result.steps, result.failure);
                steps += result.steps;
                reused += result.reused;
        }
        cr_expect_gt(steps, 100000, "enough steps to mean something: %zu", steps);
        cr_expect_gt(reused, 5000, "memory does change hands: %zu", reused);
}

Test(random, equal_programs_get_equal_addresses)
{
        struct ops_options options = {.unchecked = true};
        uint64_t seed;

        for (seed = 1; seed <= 40; seed++) {
                struct ops_result first = run(seed, SIZE, &options);
                struct ops_result second = run(seed, SIZE, &options);

                cr_expect_eq(first.hash, second.hash, "A19: seed %llu", (unsigned long long)seed);
                cr_expect_neq(first.hash, run(seed + 1000, SIZE, &options).hash);
        }
}

Test(random, a_host_without_memory_is_survived)
{
        struct ops_options options = {0};
        size_t at;

        for (at = 1; at <= 600; at++) {
                struct ops_result result;

                options.fail_host_at = at;
                result = run(at % 16 + 1, 600, &options);
                cr_assert_eq(result.failure[0], 0, "allocation %zu fails, step %zu: %s", at,
                             result.steps, result.failure);
        }
}

#ifdef SEED
Test(random, trace_one_seed)
{
        struct ops_options options = {.trace = true};
        struct ops_result result = run(SEED, SIZE, &options);

        cr_assert_eq(result.failure[0], 0, "step %zu: %s", result.steps, result.failure);
}
#endif
