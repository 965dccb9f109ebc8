/* SPDX-License-Identifier: Apache-2.0 */

/* Report as JSON, places -- where something was called, and what called that */

#include "report/inner.h"
#include "report/words.h"

/* Of the innermost of the functions that were inlined into each other, or of one of those around.
 */
static void add_line(struct sp_text *text, const struct sp_line *line)
{
        sp_words_text(text, "function", line->function[0] ? line->function : NULL);
        sp_text_add(text, ", ");
        sp_words_text(text, "source", line->line ? line->file : NULL);
        if (line->line)
                sp_text_add(text, ", \"line\": %u", line->line);
        else
                sp_text_add(text, ", \"line\": null");
}

/* Of its own, for the room that it takes on the stack. */
static __attribute__((noinline)) void add_lines(struct sp_text *text, const void *site)
{
        struct sp_line line[SP_PLACE_LINES] = {0};
        unsigned int count = sp_place_lines(site, line, SP_PLACE_LINES);

        add_line(text, &line[0]);
        sp_text_add(text, ", \"inlined_into\": [");
        for (unsigned int i = 1; i < count; i++) {
                sp_text_add(text, "%s{", i > 1 ? ", " : "");
                add_line(text, &line[i]);
                sp_text_add(text, "}");
        }
        sp_text_add(text, "]");
}

static void add_frame(struct sp_text *text, const void *site)
{
        struct sp_place place = sp_place_of(site);

        sp_words_text(text, "path", place.path);
        sp_text_add(text, ", \"offset\": \"0x%llx\", ", (unsigned long long)place.offset);
        sp_words_text(text, "symbol", place.symbol);
        sp_text_add(text, ", ");
        if (sp_places_are_open())
                add_lines(text, site);
        else
                sp_text_add(text, "\"function\": null, \"source\": null, \"line\": null, "
                                  "\"inlined_into\": []");
}

static void add_python(struct sp_text *text, const struct sp_stack_line *line)
{
        sp_text_add(text, "{");
        sp_words_text(text, "file", line->file);
        sp_text_add(text, ", \"line\": %u, ", line->line);
        sp_words_text(text, "function", line->function);
        sp_text_add(text, "}");
}

/* Above the place itself, innermost first; empty where no stack was kept. */
static void add_stack(struct sp_text *text, const struct sp_stack *stack)
{
        unsigned int natives = stack ? sp_place_natives(stack) : 0;

        sp_text_add(text, ", ");
        sp_words_text(text, "range", stack ? stack->range : NULL);
        sp_text_add(text, ", \"native\": [");
        for (unsigned int i = 0; i < natives; i++) {
                sp_text_add(text, "%s{", i ? ", " : "");
                add_frame(text, stack->native[i]);
                sp_text_add(text, "}");
        }
        sp_text_add(text, "], \"python\": [");
        for (unsigned int i = 0; stack && i < stack->pythons; i++) {
                sp_text_add(text, "%s", i ? ", " : "");
                add_python(text, stack->line[i]);
        }
        sp_text_add(text, "]");
}

void sp_words_site(struct sp_text *text, const char *name, const void *site)
{
        sp_text_add(text, "\"%s\": ", name);
        if (!site) {
                sp_text_add(text, "null");
                return;
        }
        sp_text_add(text, "{");
        add_frame(text, site);
        add_stack(text, sp_stack_of(site));
        sp_text_add(text, "}");
}
