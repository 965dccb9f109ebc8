/* SPDX-License-Identifier: Apache-2.0 */

/* Words -- values of JSON, as the forms of the report that are JSON write them */

#include "report/words.h"

#define STRING_MAX 1000 /* a mangled name can be longer */

/* Bytes of the UTF-8 letter that begins here; 0 if it is none. */
static size_t letter_at(const char *string)
{
        const unsigned char *at = (const unsigned char *)string;
        size_t length = *at >= 0xf0 ? 4 : *at >= 0xe0 ? 3 : 2;
        uint32_t letter = *at & (0xff >> (length + 1));
        static const uint32_t least[] = {[2] = 0x80, [3] = 0x800, [4] = 0x10000};

        if (*at < 0xc2 || *at > 0xf4)
                return 0;
        for (size_t i = 1; i < length; i++) {
                if ((at[i] & 0xc0) != 0x80)
                        return 0;
                letter = letter << 6 | (at[i] & 0x3f);
        }
        if (letter < least[length] || letter > 0x10ffff || (letter >= 0xd800 && letter <= 0xdfff))
                return 0;
        return length;
}

/* A byte that is no letter is shown as the one with its number. */
static size_t add_letter(struct sp_text *text, const char *string)
{
        unsigned char byte = (unsigned char)*string;
        size_t length = letter_at(string);

        if (length) {
                sp_text_add(text, "%.*s", (int)length, string);
                return length;
        }
        if (byte == '"' || byte == '\\')
                sp_text_add(text, "\\%c", byte);
        else if (byte < 0x20 || byte >= 0x7f)
                sp_text_add(text, "\\u%04x", byte);
        else
                sp_text_add(text, "%c", byte);
        return 1;
}

void sp_words_string(struct sp_text *text, const char *string)
{
        const char *begin = string;

        if (!string) {
                sp_text_add(text, "null");
                return;
        }
        sp_text_add(text, "\"");
        while (*string && string - begin < STRING_MAX)
                string += add_letter(text, string);
        sp_text_add(text, "\"");
}

void sp_words_text(struct sp_text *text, const char *name, const char *string)
{
        sp_text_add(text, "\"%s\": ", name);
        sp_words_string(text, string);
}

void sp_words_number(struct sp_text *text, const char *name, uint64_t number)
{
        sp_text_add(text, "\"%s\": %llu", name, (unsigned long long)number);
}

void sp_words_next(struct sp_text *text, const char *name, uint64_t number)
{
        sp_text_add(text, ", ");
        sp_words_number(text, name, number);
}
