/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses -- the fuzzer's way into use tracking and budgets
 *
 * The same interpreter as the property test; with -DREPLAY a program that runs the
 * files named on its command line as the fuzzer would.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "use_ops.h"

static size_t run(const uint8_t *bytes, size_t size, const char *name)
{
        struct use_result result;

        use_ops_run(bytes, size, 0, &result);
        if (!result.failure[0])
                return result.steps;
        fprintf(stderr, "%s: step %zu: %s\n", name, result.steps, result.failure);
        return 0;
}

#ifndef REPLAY

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
        if (size > 1 && !run(bytes, size, "uses"))
                abort();
        return 0;
}

#else

int main(int count, char **paths)
{
        static uint8_t bytes[1 << 16];
        int failed = 0;

        for (int i = 1; i < count; i++) {
                FILE *file = fopen(paths[i], "rb");

                if (!file) {
                        perror(paths[i]);
                        failed++;
                        continue;
                }
                failed += !run(bytes, fread(bytes, 1, sizeof(bytes), file), paths[i]);
                fclose(file);
        }
        printf("%d replayed, %d failed\n", count - 1, failed);
        return failed || count < 2;
}

#endif
