/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Result -- how a CUresult is called, and which one is meant by a name
 *
 * The driver knows the names, too (cuGetErrorName), but a call of it is no part of
 * reading an option, and an older driver lacks the newer ones.
 */

#include "track/result.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#define PREFIX "CUDA_ERROR_"

static const struct {
        const char *name;
        int number;
} results[] = {
#define SP_RESULT(name, number) {PREFIX #name, number},
#include "track/results.def"
#undef SP_RESULT
};

#define RESULTS (sizeof(results) / sizeof(results[0]))

const char *sp_result_name(int result)
{
        for (size_t i = 0; i < RESULTS; i++) {
                if (results[i].number == result)
                        return results[i].name;
        }
        return NULL;
}

bool sp_result_named(const char *name, int *result)
{
        const size_t prefix = strlen(PREFIX);
        size_t skipped = strncasecmp(name, PREFIX, prefix) == 0 ? prefix : 0;

        for (size_t i = 0; i < RESULTS; i++) {
                if (strcasecmp(results[i].name + prefix, name + skipped) == 0) {
                        *result = results[i].number;
                        return true;
                }
        }
        return false;
}
