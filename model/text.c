/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text -- words and numbers into a buffer, without stdio
 */

#include "text.h"

void spm_text_start(struct spm_text *text, char *buffer, size_t size)
{
        text->buffer = size ? buffer : NULL;
        text->size = size;
        text->used = 0;
        if (text->buffer)
                text->buffer[0] = '\0';
}

static void put(struct spm_text *text, char c)
{
        if (!text->buffer || text->used + 1 >= text->size)
                return;
        text->buffer[text->used++] = c;
        text->buffer[text->used] = '\0';
}

void spm_text_word(struct spm_text *text, const char *word)
{
        if (text->used)
                put(text, ' ');
        spm_text_add(text, word);
}

void spm_text_add(struct spm_text *text, const char *word)
{
        while (*word)
                put(text, *word++);
}

static void number_in(struct spm_text *text, uint64_t number, unsigned int base)
{
        char digits[20];
        unsigned int count = 0;

        do {
                digits[count++] = "0123456789abcdef"[number % base];
                number /= base;
        } while (number);
        while (count)
                put(text, digits[--count]);
}

void spm_text_number(struct spm_text *text, uint64_t number)
{
        number_in(text, number, 10);
}

void spm_text_count(struct spm_text *text, const char *label, uint64_t number)
{
        spm_text_word(text, label);
        put(text, ' ');
        number_in(text, number, 10);
}

void spm_text_address(struct spm_text *text, const char *label, uint64_t number)
{
        spm_text_word(text, label);
        put(text, ' ');
        put(text, '0');
        put(text, 'x');
        number_in(text, number, 16);
}

void spm_text_letter(struct spm_text *text, char letter)
{
        put(text, letter);
}
