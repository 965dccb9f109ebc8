/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walk -- random programs, one after the other, for as many steps as asked
 *
 *   walk [--seed N] [--steps N] [--bytes N] [--trace]
 *
 * Programs of @bytes bytes, of the seeds from N on, until they have made
 * that many steps together; every invariant is checked after each step. A
 * failure prints its seed, and --trace tells its steps on standard error. The
 * last line says what was done, with a hash of all addresses and final states:
 * equal arguments print equal lines.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"

struct walk {
        uint64_t seed;
        uint64_t steps;
        uint64_t bytes;
        bool trace;
};

static bool parse(struct walk *walk, int count, char **arguments)
{
        int i;

        for (i = 1; i < count; i++) {
                const char *name = arguments[i];
                uint64_t *number = !strcmp(name, "--seed")    ? &walk->seed
                                   : !strcmp(name, "--steps") ? &walk->steps
                                   : !strcmp(name, "--bytes") ? &walk->bytes
                                                              : NULL;

                if (!strcmp(name, "--trace"))
                        walk->trace = true;
                else if (number && i + 1 < count)
                        *number = strtoull(arguments[++i], NULL, 0);
                else
                        return false;
        }
        return true;
}

int main(int count, char **arguments)
{
        struct walk walk = {.seed = 1, .steps = 1000000, .bytes = 4000};
        struct ops_options options = {0};
        struct ops_result sum = {0};
        uint64_t programs = 0;
        uint8_t *bytes;

        if (!parse(&walk, count, arguments)) {
                fprintf(stderr, "usage: walk [--seed N] [--steps N] [--bytes N] [--trace]\n");
                return 2;
        }
        bytes = malloc(walk.bytes);
        if (!bytes)
                return 2;
        options.trace = walk.trace;
        for (; sum.steps < walk.steps; programs++) {
                struct ops_result result;

                ops_random(walk.seed + programs, bytes, walk.bytes);
                ops_run(bytes, walk.bytes, &options, &result);
                if (result.failure[0]) {
                        printf("seed %" PRIu64 ", step %zu: %s\n", walk.seed + programs,
                               result.steps, result.failure);
                        return 1;
                }
                sum.steps += result.steps;
                sum.allocs += result.allocs;
                sum.early += result.early;
                sum.reused += result.reused;
                sum.hash = (sum.hash ^ result.hash) * 0x100000001b3u + (sum.hash >> 29);
        }
        free(bytes);
        printf("%" PRIu64
               " programs, %zu steps, %zu allocations, %zu of them reused, %zu early, hash "
               "%016" PRIx64 "\n",
               programs, sum.steps, sum.allocs, sum.reused, sum.early, sum.hash);
        /* Memory has to change hands for a walk to mean something. */
        return sum.reused < sum.allocs / 4;
}
