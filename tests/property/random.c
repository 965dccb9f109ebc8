/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random -- equal programs, and programs on a host without memory
 *
 * walk.c is the long way: here are short programs of every profile, run more
 * than once.
 */

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>

#include "ops.h"

#define SIZE     4000
#define PROFILES 15 /* the first byte chooses one; more of them are the first ones again */
#define LAYOUTS  24 /* of these two, pools have layouts */

static struct ops_result run(uint64_t seed, int profile, size_t size,
                             const struct ops_options *options)
{
        uint8_t *bytes = malloc(size);
        struct ops_result result;

        cr_assert_not_null(bytes);
        ops_random(seed, bytes, size);
        if (profile >= 0)
                bytes[0] = (uint8_t)profile;
        ops_run(bytes, size, options, &result);
        free(bytes);
        return result;
}

Test(random, equal_programs_get_equal_addresses)
{
        struct ops_options options = {.unchecked = true};
        uint64_t seed;

        for (seed = 1; seed <= 40; seed++) {
                struct ops_result first = run(seed, -1, SIZE, &options);
                struct ops_result second = run(seed, -1, SIZE, &options);

                cr_expect_eq(first.hash, second.hash, "A19: seed %llu", (unsigned long long)seed);
                cr_expect_neq(first.hash, run(seed + 1000, -1, SIZE, &options).hash);
        }
}

/* Every host allocation of a program fails once, and in a second round every 7th after it does
 * too, until the program makes so few that none fails. */
static void fail_each(int profile, bool again)
{
        struct ops_options options = {.fail_host_again = again};
        struct ops_result result;

        do {
                options.fail_host_at++;
                result = run((uint64_t)profile + 1, profile, 1500, &options);
                cr_assert_eq(result.failure[0], 0, "profile %d, allocation %zu fails, step %zu: %s",
                             profile, options.fail_host_at, result.steps, result.failure);
        } while (result.host_failures);
        cr_expect_gt(options.fail_host_at, 40, "profile %d: enough to mean something", profile);
}

Test(random, a_host_without_memory_is_survived)
{
        int profile;

        for (profile = 0; profile < PROFILES; profile++) {
                fail_each(profile, false);
                fail_each(profile, true);
        }
        for (profile = LAYOUTS; profile < LAYOUTS + 2; profile++) {
                fail_each(profile, false);
                fail_each(profile, true);
        }
}
