/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_PATTERN_H
#define SP_PATTERN_H

/*
 * Pattern -- is this what somebody means who writes a part of it, and a * for the rest?
 *
 * A star stands for any characters, or none. Nothing is tried twice: the leftmost place for
 * each part leaves the most room for the next, so a text is read once, whatever the pattern.
 */

#include <stdbool.h>
#include <stddef.h>

/** sp_pattern_is_in() - does @pattern, of @length characters, stand in @text; at its start, and up
 * to its end, where that is asked for? */
bool sp_pattern_is_in(const char *text, const char *pattern, size_t length, bool at_start,
                      bool at_end);

#endif
