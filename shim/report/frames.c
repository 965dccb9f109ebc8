/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Frames -- the calls above a place, for people
 *
 * Where stacks are kept (track/stack.h). Lines of Python come first: they are what
 * the reader of a report can change. The frames of the interpreter that ran them,
 * and what called main() or a thread's function, are nobody's place.
 */

#include "report/inner.h"

#include <string.h>

static void add_line(struct sp_text *text, const struct sp_stack_line *line)
{
        sp_text_add(text, "%s:%u in %s", line->file, line->line, line->function);
}

void sp_place_text(struct sp_text *text, const void *site)
{
        const struct sp_stack *stack = sp_stack_of(site);

        if (stack && stack->pythons)
                add_line(text, stack->line[0]);
        else
                sp_place_native_text(text, site);
}

static bool begins(const char *text, const char *with)
{
        return text && strncmp(text, with, strlen(with)) == 0;
}

/* What called main(), or a thread's function: nobody's place. */
static unsigned int without_start(const struct sp_stack *stack)
{
        unsigned int count = stack->natives;

        if (count > 1 && begins(sp_place_of(stack->native[count - 2]).file, "libc.so"))
                count--;
        while (count && begins(sp_place_of(stack->native[count - 1]).file, "libc.so"))
                count--;
        return count;
}

unsigned int sp_place_natives(const struct sp_stack *stack)
{
        unsigned int most = without_start(stack), count = 0;

        for (; count < most; count++) {
                const char *file = sp_place_of(stack->native[count]).file;

                if (stack->pythons && (begins(file, "libpython") || begins(file, "python")))
                        break;
        }
        return count;
}

static void add_native(struct sp_text *text, const void *address, const char *indent)
{
        sp_text_add(text, "%s", indent);
        sp_place_native_text(text, address);
        sp_text_add(text, "\n");
}

void sp_place_frames(struct sp_text *text, const void *site, const char *indent)
{
        const struct sp_stack *stack = sp_stack_of(site);
        unsigned int natives = stack ? sp_place_natives(stack) : 0;

        if (stack && stack->range)
                sp_text_add(text, "%sin the range %s\n", indent, stack->range);

        for (unsigned int i = 1; stack && i < stack->pythons; i++) {
                sp_text_add(text, "%s", indent);
                add_line(text, stack->line[i]);
                sp_text_add(text, "\n");
        }
        if (stack && stack->pythons)
                add_native(text, stack->caller, indent);
        for (unsigned int i = 0; i < natives; i++)
                add_native(text, stack->native[i], indent);
}
