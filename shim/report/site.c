/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Site -- a place in the program's code
 *
 * What is kept with an allocation is the return address of the program's call:
 * storing a number costs nothing, and looking it up can wait for the report. A
 * library that was unloaded in the meantime cannot be named any more, and if another
 * lies at its address, that one is named: the same number is a call of either.
 * To tell them apart, each call would have to read how often the loader has unloaded something,
 * under a lock of the loader's; or dlclose() would have to be ours, and of the loader's
 * functions only dlsym() is.
 *
 * The offset counts from where the file believes it is loaded, so it is what
 * addr2line and nm use, also for programs that are not position-independent.
 * It is that of the last byte of the call, whose line is the call's; a return
 * address may belong to the next line, or to the next function.
 *
 * Functions and lines take files and heap, which a report at the end of a process
 * may use and a call of the program in need of memory may not. So they are there
 * only for the thread that writes a report, and not if a handler of a signal has called
 * exit(): it may have interrupted the heap, whose lock would then be waited for for ever.
 * Nor where the stack of the thread is small.
 */

#define _GNU_SOURCE

#include "report/inner.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>

#include "base/config.h"
#include "base/thread.h"
#include "track/bounds.h"
#include "track/stack.h"

/* libdw has arrays of 160 KiB there, beyond which a small stack ends in the memory of others. */
#define STACK_BYTES ((size_t)512 << 10)

static __thread bool is_open __attribute__((tls_model("initial-exec")));
static __thread struct sp_lines *lines __attribute__((tls_model("initial-exec")));

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

void sp_places_open(void)
{
        is_open = sp_config()->symbols && !sp_thread_is_in_handler() &&
                  sp_bounds_have_room(STACK_BYTES);
        if (is_open)
                lines = sp_lines_open();
}

void sp_places_close(void)
{
        sp_lines_close(lines);
        lines = NULL;
        is_open = false;
}

bool sp_places_are_known(void)
{
        return lines != NULL;
}

bool sp_places_are_open(void)
{
        return is_open;
}

unsigned int sp_place_lines(const void *site, struct sp_line *line, unsigned int most)
{
        const char *address = sp_stack_address(site);
        const char *symbol;
        unsigned int count;

        if (!is_open || !address || most == 0)
                return 0;
        count = lines ? sp_lines_at(lines, address - 1, line, most) : 0;
        if (count)
                return count;
        symbol = sp_place_of(site).symbol;
        if (!symbol)
                return 0;
        line[0] = (struct sp_line){0};
        sp_demangle(symbol, line[0].function, sizeof(line[0].function));
        return 1;
}

/* The innermost is where the call is; the last is the function that the linker knows. */
static void add_lines(struct sp_text *text, const struct sp_line *line, unsigned int count)
{
        for (unsigned int i = 0; i < count; i++) {
                if (i)
                        sp_text_add(text, ", inlined into %s", line[i].function);
                else if (line[i].function[0])
                        sp_text_add(text, " (%s)", line[i].function);
                if (line[i].line)
                        sp_text_add(text, " at %s:%u", line[i].file, line[i].line);
        }
}

/* Of its own, for the room that it takes on the stack: a thread may have only 16 KiB of that. */
static __attribute__((noinline)) bool add_lines_of(struct sp_text *text, const void *address)
{
        struct sp_line line[SP_PLACE_LINES];
        unsigned int count = sp_place_lines(address, line, SP_PLACE_LINES);

        add_lines(text, line, count);
        return count;
}

void sp_place_native_text(struct sp_text *text, const void *address)
{
        struct sp_place place = sp_place_of(address);

        if (!address)
                sp_text_add(text, "unknown");
        else if (!place.path)
                sp_text_add(text, "%p, in no library now", sp_stack_address(address));
        else
                sp_text_add(text, "%s+0x%llx", place.file, (unsigned long long)place.offset);
        if (!(is_open && add_lines_of(text, address)) && place.symbol)
                sp_text_add(text, " (%s)", place.symbol);
}
