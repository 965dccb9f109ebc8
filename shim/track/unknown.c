/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Unknown -- did the program get a function that may give a stream work unseen?
 *
 * Of a driver that is newer than the headers we were built with, or of one that
 * exports what no header has. Look-ups come at any time, also before the shim is
 * on, and from many threads; the first such name is kept.
 */

#include "track/submit.h"

#include <string.h>

#define NAME_MAX_BYTES 64

enum { NONE, WRITING, WRITTEN };

/* Atomic: stage. Written once, before WRITTEN: first. */
static atomic_uint stage;
static char first[NAME_MAX_BYTES];

static const char *const others[] = {
#define SP_OTHER(api, class) #api,
#include "driver/other_calls.def"
};

/* The length of "cuMemcpy2D" in "cuMemcpy2D_v2_ptds". */
static size_t base_length(const char *symbol)
{
        size_t length = strlen(symbol);

        if (length > 5 && (strcmp(symbol + length - 5, "_ptsz") == 0 ||
                           strcmp(symbol + length - 5, "_ptds") == 0))
                length -= 5;
        if (length > 3 && symbol[length - 3] == '_' && symbol[length - 2] == 'v' &&
            symbol[length - 1] >= '0' && symbol[length - 1] <= '9')
                length -= 3;
        return length;
}

/* Negative, 0 or positive, as a name of this length stands to another one. */
static int compare(const char *name, size_t length, const char *other)
{
        int order = strncmp(name, other, length);

        return order ? order : -(other[length] != '\0');
}

bool sp_submit_is_other(const char *symbol)
{
        size_t length = base_length(symbol);
        size_t low = 0, high = sizeof(others) / sizeof(others[0]);

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                int order = compare(symbol, length, others[middle]);

                if (order == 0)
                        return true;
                if (order < 0)
                        high = middle;
                else
                        low = middle + 1;
        }
        return false;
}

static bool is_of_the_driver(const char *symbol)
{
        return symbol[0] == 'c' && symbol[1] == 'u' && symbol[2] >= 'A' && symbol[2] <= 'Z';
}

bool sp_submit_unknown(const char *symbol)
{
        unsigned int expected = NONE;

        if (!is_of_the_driver(symbol) || sp_submit_is_other(symbol) ||
            !atomic_compare_exchange_strong(&stage, &expected, WRITING))
                return false;
        strncpy(first, symbol, sizeof(first) - 1);
        atomic_store(&stage, WRITTEN);
        return true;
}

bool sp_submit_is_complete(void)
{
        return atomic_load_explicit(&stage, memory_order_relaxed) == NONE;
}

const char *sp_submit_first_unknown(void)
{
        return atomic_load(&stage) == WRITTEN ? first : NULL;
}
