/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses -- random programs that use blocks under a budget, and the twin beside them
 *
 *   uses [--seed N] [--programs N]
 *
 * When one fails its seed is printed: --seed N --programs 1 runs it alone.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "use_ops.h"

#define SIZE 3000

static bool read_option(int count, char **words, const char *name, unsigned long long *number)
{
        for (int i = 1; i + 1 < count; i += 2) {
                char *end;

                if (strcmp(words[i], name))
                        continue;
                *number = strtoull(words[i + 1], &end, 10);
                return end != words[i + 1] && !*end;
        }
        return true;
}

int main(int count, char **words)
{
        unsigned long long seed = 1;
        unsigned long long programs = 1000;
        struct use_result sum = {0};
        uint8_t bytes[SIZE];

        if (!read_option(count, words, "--seed", &seed) ||
            !read_option(count, words, "--programs", &programs)) {
                fprintf(stderr, "uses: a number is no number\n");
                return 2;
        }
        for (unsigned long long i = 0; i < programs; i++) {
                struct use_result result;

                use_ops_random(seed + i, bytes, sizeof(bytes));
                use_ops_run(bytes, sizeof(bytes), &result);
                if (result.failure[0]) {
                        fprintf(stderr, "uses: seed %llu, step %zu: %s\n", seed + i, result.steps,
                                result.failure);
                        return 1;
                }
                sum.steps += result.steps;
                sum.uses += result.uses;
                sum.waits += result.waits;
                sum.reused += result.reused;
                sum.refused += result.refused;
        }
        printf("uses: %zu steps, %zu uses, %zu with waits, %zu blocks of freed memory, %zu "
               "refused\n",
               sum.steps, sum.uses, sum.waits, sum.reused, sum.refused);
        if (sum.waits && sum.reused && sum.refused)
                return 0;
        fprintf(stderr, "uses: too little has happened\n");
        return 1;
}
