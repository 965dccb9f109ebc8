/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replay -- each file named on the command line, as the fuzzer would run it
 *
 * With -v in front every step is told on standard error.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "ops.h"

static bool replay(const char *path, bool trace)
{
        static uint8_t bytes[1 << 16];
        struct ops_options options = {.trace = trace};
        struct ops_result result;
        FILE *file = fopen(path, "rb");
        size_t size;

        if (!file) {
                perror(path);
                return false;
        }
        size = fread(bytes, 1, sizeof(bytes), file);
        fclose(file);
        ops_run(bytes, size, &options, &result);
        if (result.failure[0])
                fprintf(stderr, "%s: step %zu: %s\n", path, result.steps, result.failure);
        return !result.failure[0];
}

int main(int count, char **arguments)
{
        bool trace = count > 1 && !strcmp(arguments[1], "-v");
        int failed = 0;
        int i;

        for (i = trace ? 2 : 1; i < count; i++)
                failed += !replay(arguments[i], trace);
        printf("%d replayed, %d failed\n", count - (trace ? 2 : 1), failed);
        return failed || count < 2;
}
