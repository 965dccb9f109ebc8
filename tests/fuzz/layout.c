/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layout -- the fuzzer's way to layouts' texts
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
        char *text = malloc(size + 1);
        const char *wrong;
        int read;

        if (!text)
                return 0;
        memcpy(text, bytes, size);
        text[size] = '\0';
        wrong = layout_text_check(text, &read);
        if (wrong) {
                fprintf(stderr, "%s: %s\n", text, wrong);
                abort();
        }
        free(text);
        return 0;
}
