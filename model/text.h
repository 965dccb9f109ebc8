/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_TEXT_H
#define SPM_TEXT_H

/*
 * Text -- words and numbers into a buffer, without stdio
 *
 * The buffer always ends in a zero; what does not fit is left out.
 */

#include <stddef.h>
#include <stdint.h>

struct spm_text {
        char *buffer; /* NULL: nothing is kept */
        size_t size;
        size_t used;
};

void spm_text_start(struct spm_text *text, char *buffer, size_t size);
void spm_text_word(struct spm_text *text, const char *word);
void spm_text_letter(struct spm_text *text, char letter);
/* Without a blank before it. */
void spm_text_add(struct spm_text *text, const char *word);
void spm_text_number(struct spm_text *text, uint64_t number);

void spm_text_count(struct spm_text *text, const char *label, uint64_t number);
void spm_text_address(struct spm_text *text, const char *label, uint64_t number);

#endif
