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
 */

#define _GNU_SOURCE

#include "report/inner.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>

struct sp_place sp_place_of(const void *site)
{
        uintptr_t call = (uintptr_t)site - 1;
        struct sp_place place = {.offset = call};
        struct link_map *map = NULL;
        const char *slash;
        Dl_info info;

        if (!site || !dladdr1((const void *)call, &info, (void **)&map, RTLD_DL_LINKMAP))
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

void sp_place_text(struct sp_text *text, const void *site)
{
        struct sp_place place = sp_place_of(site);

        if (!site)
                sp_text_add(text, "unknown");
        else if (!place.path)
                sp_text_add(text, "%p, in no library now", site);
        else
                sp_text_add(text, "%s+0x%llx", place.file, (unsigned long long)place.offset);
        if (place.symbol)
                sp_text_add(text, " (%s)", place.symbol);
}
