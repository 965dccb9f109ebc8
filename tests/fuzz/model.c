/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Model -- the fuzzer's way in
 *
 * The same interpreter as the property tests; a crash becomes a file of the
 * corpus.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "ops.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
        struct ops_options options = {0};
        struct ops_result result;

        ops_run(bytes, size, &options, &result);
        if (result.failure[0]) {
                fprintf(stderr, "step %zu: %s\n", result.steps, result.failure);
                abort();
        }
        return 0;
}
