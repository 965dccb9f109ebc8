/* SPDX-License-Identifier: Apache-2.0 */

/* Words -- values of JSON, as the forms of the report that are JSON write them */

#include "report/words.h"

#define STRING_MAX 1000 /* a mangled name can be longer */

void sp_words_string(struct sp_text *text, const char *string)
{
        size_t room = STRING_MAX;

        if (!string) {
                sp_text_add(text, "null");
                return;
        }
        sp_text_add(text, "\"");
        for (; *string && room > 0; string++, room--) {
                unsigned char byte = (unsigned char)*string;

                if (byte == '"' || byte == '\\')
                        sp_text_add(text, "\\%c", byte);
                else if (byte < 0x20 || byte >= 0x7f)
                        sp_text_add(text, "\\u%04x", byte);
                else
                        sp_text_add(text, "%c", byte);
        }
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
