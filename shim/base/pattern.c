/* SPDX-License-Identifier: Apache-2.0 */

/* Pattern -- is this what somebody means who writes a part of it, and a * for the rest? */

#define _GNU_SOURCE

#include "base/pattern.h"

#include <string.h>

/* Where @text goes on after @part; NULL if it is not there. */
static const char *after_part(const char *text, const char *part, size_t length, bool at_start,
                              bool at_end)
{
        size_t room = strlen(text);
        const char *found = text;

        if (length > room || (at_start && at_end && length != room))
                return NULL;
        if (at_end)
                found = text + room - length;
        else if (!at_start)
                found = memmem(text, room, part, length);
        if (!found || memcmp(found, part, length) != 0)
                return NULL;
        return found + length;
}

bool sp_pattern_is_in(const char *text, const char *pattern, size_t length, bool at_start,
                      bool at_end)
{
        const char *end = pattern + length;

        while (text) {
                const char *star = memchr(pattern, '*', (size_t)(end - pattern));
                const char *part_end = star ? star : end;

                text = after_part(text, pattern, (size_t)(part_end - pattern), at_start,
                                  at_end && !star);
                if (!star)
                        break;
                at_start = false;
                pattern = star + 1;
        }
        return text != NULL;
}
