/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses -- random programs that use blocks under a budget, and the twin beside them
 *
 *   uses [--seed N] [--programs N]
 *
 * Of every hundred one is run again and again, on a host that is short of memory.
 *
 * When one fails its seed is printed: --seed N --programs 1 runs it alone.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "use_ops.h"

#define SIZE  3000
#define SHORT 800

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

static bool has_failed(const struct use_result *result, unsigned long long seed, size_t fail_at)
{
        if (result->failure[0])
                fprintf(stderr, "uses: seed %llu, host allocation %zu, step %zu: %s\n", seed,
                        fail_at, result->steps, result->failure);
        return result->failure[0] != '\0';
}

/* Every host allocation of a program fails once, and every 7th after it. */
static bool run_short(unsigned long long seed)
{
        struct use_result result;
        uint8_t bytes[SHORT];
        size_t fail_at = 0;

        use_ops_random(seed, bytes, sizeof(bytes));
        do {
                use_ops_run(bytes, sizeof(bytes), ++fail_at, &result);
                if (has_failed(&result, seed, fail_at))
                        return false;
        } while (result.host_failures);
        if (fail_at > 20)
                return true;
        fprintf(stderr, "uses: seed %llu makes too few host allocations\n", seed);
        return false;
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
                use_ops_run(bytes, sizeof(bytes), 0, &result);
                if (has_failed(&result, seed + i, 0))
                        return 1;
                sum.steps += result.steps;
                sum.uses += result.uses;
                sum.waits += result.waits;
                sum.reused += result.reused;
                sum.refused += result.refused;
        }
        printf("uses: %zu steps, %zu uses, %zu with waits, %zu blocks of freed memory, %zu "
               "refused\n",
               sum.steps, sum.uses, sum.waits, sum.reused, sum.refused);
        for (unsigned long long i = 0; i < programs / 100; i++)
                if (!run_short(seed + i))
                        return 1;
        if (sum.waits && sum.reused && sum.refused)
                return 0;
        fprintf(stderr, "uses: too little has happened\n");
        return 1;
}
