/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Site -- a place in the program's code
 *
 * What is kept with an allocation is the return address of the program's call:
 * storing a number costs nothing, and looking it up can wait for the report. A
 * library that was unloaded in the meantime cannot be named any more.
 *
 * The offset counts from where the file believes it is loaded, so it is what
 * addr2line and nm use, also for programs that are not position-independent.
 * It is that of the last byte of the call, whose line is the call's; a return
 * address may belong to the next line, or to the next function.
 *
 * Where stacks are kept (track/stack.h), the frames above it are told, too. Those
 * of an interpreter of Python are its own affair once the program's lines are known.
 */

#define _GNU_SOURCE

#include "report/inner.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>

#include "track/stack.h"

struct sp_place sp_place_of(const void *site)
{
        const void *address = sp_stack_address(site);
        uintptr_t call = (uintptr_t)address - 1;
        struct sp_place place = {.offset = call};
        struct link_map *map = NULL;
        const char *slash;
        Dl_info info;

        if (!address || !dladdr1((const void *)call, &info, (void **)&map, RTLD_DL_LINKMAP))
                return place;
        if (map)
                place.offset -= map->l_addr;
        /* The program itself goes by the name it was started with. */
        place.path = info.dli_fname && *info.dli_fname ? info.dli_fname : program_invocation_name;
        slash = strrchr(place.path, '/');
        place.file = slash ? slash + 1 : place.path;
        place.symbol = info.dli_sname;
        return place;
}

static void add_address(struct sp_text *text, const void *address)
{
        struct sp_place place = sp_place_of(address);

        if (!address)
                sp_text_add(text, "unknown");
        else if (!place.path)
                sp_text_add(text, "%p, in no library now", address);
        else
                sp_text_add(text, "%s+0x%llx", place.file, (unsigned long long)place.offset);
        if (place.symbol)
                sp_text_add(text, " (%s)", place.symbol);
}

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
                add_address(text, sp_stack_address(site));
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
        add_address(text, address);
        sp_text_add(text, "\n");
}

/* Lines of Python first: they are what the reader of a report can change. */
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
