/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_REPORT_WORDS_H
#define SP_REPORT_WORDS_H

/*
 * Words -- values of JSON, as the forms of the report that are JSON write them
 *
 * No function writes a comma or a space around what it writes.
 */

#include <stdint.h>

#include "base/text.h"

/** sp_words_string() - text with what has to be escaped, cut where it is very long; NULL is null.
 */
void sp_words_string(struct sp_text *text, const char *string);

/** sp_words_text() - "name": "string". */
void sp_words_text(struct sp_text *text, const char *name, const char *string);

/** sp_words_number() - "name": 17. */
void sp_words_number(struct sp_text *text, const char *name, uint64_t number);

/** sp_words_next() - likewise, behind a comma. */
void sp_words_next(struct sp_text *text, const char *name, uint64_t number);

/** sp_words_site() - "name": a place in the program's code with what called it; NULL is null. */
void sp_words_site(struct sp_text *text, const char *name, const void *site);

#endif
