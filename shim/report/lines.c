/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lines -- which function, source file and line is this address of?
 *
 * The unit that has the address says the line, and its functions, which lie inside
 * of each other where they were inlined, say the names. Without debug information
 * there is the name in the symbol table.
 */

#define _GNU_SOURCE

#include "report/lines.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "report/libdw.h"

/* Large libraries take milliseconds a place, and a report can have a thousand places. */
#define PATIENCE_NS 3000000000

#define SCOPES_MAX  128 /* functions and blocks inside of each other */

/* Far more than any look-up takes, and nothing that is used. */
#define ROOM_BYTES ((size_t)1 << 30)

struct sp_lines {
        const struct sp_libdw *dw;
        Dwfl_Callbacks callbacks;
        Dwfl *dwfl;
        uint64_t spent_ns; /* in sp_lines_at() */
};

/* words */

static void copy(char *bytes, size_t size, const char *source)
{
        struct sp_text text;

        if (size == 0)
                return;
        sp_text_init(&text, bytes, size);
        sp_text_add(&text, "%s", source);
        if (text.cut && size > 3)
                memcpy(bytes + size - 4, "...", 4);
}

/* Names of Rust before its own mangling have the form of C++ and end in a hash. */
static bool is_of_rust(const char *symbol)
{
        size_t length = strlen(symbol);
        const char *hash = symbol + length - 20;

        return length > 20 && strncmp(hash, "17h", 3) == 0 &&
               strspn(hash + 3, "0123456789abcdef") == 16 && hash[19] == 'E';
}

void sp_demangle(const char *symbol, char *text, size_t size)
{
        char *(*demangle)(const char *, char *, size_t *, int *);
        char *name = NULL;
        void *found = NULL;

        if (strncmp(symbol, "_Z", 2) == 0 && !is_of_rust(symbol)) {
                void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);

                found = library ? dlvsym(library, "__cxa_demangle", "CXXABI_1.3") : NULL;
        }
        if (found) {
                memcpy(&demangle, &found, sizeof(found));
                name = demangle(symbol, NULL, NULL, NULL);
        }
        copy(text, size, name ? name : symbol);
        free(name);
}

/* looking up */

static const char *string_of(const struct sp_libdw *dw, Dwarf_Die *die, unsigned int name)
{
        Dwarf_Attribute attribute;

        return dw->dwarf_attr_integrate(die, name, &attribute) ? dw->dwarf_formstring(&attribute)
                                                               : NULL;
}

static uint64_t number_of(const struct sp_libdw *dw, Dwarf_Die *die, unsigned int name)
{
        Dwarf_Attribute attribute;
        uint64_t number;

        if (!dw->dwarf_attr_integrate(die, name, &attribute) ||
            dw->dwarf_formudata(&attribute, &number) != 0)
                return 0;
        return number;
}

static void copy_function(const struct sp_libdw *dw, Dwarf_Die *die, struct sp_line *line)
{
        const char *name = string_of(dw, die, DW_AT_linkage_name);

        if (!name)
                name = string_of(dw, die, DW_AT_MIPS_linkage_name);
        if (name)
                sp_demangle(name, line->function, sizeof(line->function));
        else if ((name = string_of(dw, die, DW_AT_name)))
                copy(line->function, sizeof(line->function), name);
}

/* Compilers write a name as they were given it, and the folder they ran in. Where the file is
 * there, its path needs no dots. */
static void copy_source(const struct sp_libdw *dw, Dwarf_Die *unit, const char *file,
                        uint64_t number, struct sp_line *line)
{
        const char *folder = string_of(dw, unit, DW_AT_comp_dir);
        char joined[PATH_MAX], resolved[PATH_MAX];
        struct sp_text path;

        if (!file || number == 0 || number > UINT_MAX)
                return;
        sp_text_init(&path, joined, sizeof(joined));
        if (file[0] != '/' && folder)
                sp_text_add(&path, "%s/", folder);
        sp_text_add(&path, "%s", file);
        copy(line->file, sizeof(line->file),
             strstr(joined, "/.") && realpath(joined, resolved) ? resolved : joined);
        line->line = (unsigned int)number;
}

static void copy_statement(const struct sp_libdw *dw, Dwarf_Die *unit, uint64_t address,
                           struct sp_line *line)
{
        Dwarf_Line *source = dw->dwarf_getsrc_die(unit, address);
        int number = 0;

        if (source && dw->dwarf_lineno(source, &number) == 0 && number > 0)
                copy_source(dw, unit, dw->dwarf_linesrc(source, NULL, NULL), (uint64_t)number,
                            line);
}

static void copy_call(const struct sp_libdw *dw, Dwarf_Die *unit, Dwarf_Die *inlined,
                      struct sp_line *line)
{
        uint64_t file = number_of(dw, inlined, DW_AT_call_file);
        Dwarf_Files *files;

        if (dw->dwarf_getsrcfiles(unit, &files, NULL) == 0)
                copy_source(dw, unit, dw->dwarf_filesrc(files, file, NULL, NULL),
                            number_of(dw, inlined, DW_AT_call_line), line);
}

/* The list of which unit has which addresses is optional, and clang leaves it out. That is why
 * lines are asked of the unit: what dwfl_module_getsrc() knows is that list. */
static Dwarf_Die *unit_at(const struct sp_libdw *dw, Dwfl_Module *module, uint64_t address,
                          uint64_t *bias)
{
        Dwarf_Die *unit = dw->dwfl_module_addrdie(module, address, bias);

        if (unit)
                return unit;
        while ((unit = dw->dwfl_module_nextcu(module, unit, bias))) {
                if (dw->dwarf_haspc(unit, address - *bias) == 1)
                        return unit;
        }
        return NULL;
}

/* A step inwards, to the part of @die that has @address. Namespaces and classes have none, and
 * functions inside. */
static bool step_into(const struct sp_libdw *dw, Dwarf_Die *die, uint64_t address)
{
        Dwarf_Die child;

        if (dw->dwarf_child(die, &child) != 0)
                return false;
        do {
                Dwarf_Die inner = child;
                bool found = false;

                switch (dw->dwarf_tag(&child)) {
                case DW_TAG_subprogram:
                case DW_TAG_inlined_subroutine:
                case DW_TAG_lexical_block:
                case DW_TAG_try_block:
                case DW_TAG_catch_block:
                        found = dw->dwarf_haspc(&child, address) == 1;
                        break;
                case DW_TAG_namespace:
                case DW_TAG_module:
                case DW_TAG_class_type:
                case DW_TAG_structure_type:
                        found = step_into(dw, &inner, address);
                }
                if (found) {
                        *die = inner;
                        return true;
                }
        } while (dw->dwarf_siblingof(&child, &child) == 0);
        return false;
}

/*
 * dwarf_getscopes() would find the scopes, too, but not where a function was
 * inlined from another unit, as optimisation at link time does.
 */
static unsigned int look_in_unit(const struct sp_libdw *dw, Dwarf_Die *unit, uint64_t address,
                                 struct sp_line *line, unsigned int most)
{
        Dwarf_Die scope[SCOPES_MAX];
        Dwarf_Die inner = *unit;
        unsigned int count = 0;
        unsigned int scopes = 0;

        while (scopes < SCOPES_MAX && step_into(dw, &inner, address))
                scope[scopes++] = inner;
        while (scopes > 0 && count < most) {
                Dwarf_Die *function = &scope[--scopes];
                int tag = dw->dwarf_tag(function);

                if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
                        continue;
                copy_function(dw, function, &line[count++]);
                if (tag == DW_TAG_subprogram)
                        break;
                if (count < most)
                        copy_call(dw, unit, function, &line[count]);
        }
        return count;
}

/* Static functions too, unless the file is stripped. */
static void copy_symbol(const struct sp_libdw *dw, Dwfl_Module *module, uint64_t address,
                        struct sp_line *line)
{
        uint64_t offset = 0;
        Elf64_Sym symbol = {0};
        const char *name =
                dw->dwfl_module_addrinfo(module, address, &offset, &symbol, NULL, NULL, NULL);

        /* The nearest one before it need not reach as far. */
        if (name && offset < symbol.st_size)
                sp_demangle(name, line->function, sizeof(line->function));
}

/* sessions */

/* Short of memory, libdw ends the process: by exit(), by an assertion, or by a null pointer. */
static bool has_room(void)
{
        void *room =
                mmap(NULL, ROOM_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        return room != MAP_FAILED && munmap(room, ROOM_BYTES) == 0;
}

struct sp_lines *sp_lines_open(void)
{
        const struct sp_libdw *dw = has_room() ? sp_libdw() : NULL;
        struct sp_lines *lines = dw ? calloc(1, sizeof(*lines)) : NULL;

        if (!lines)
                return NULL;
        lines->dw = dw;
        lines->callbacks.find_elf = dw->dwfl_linux_proc_find_elf;
        lines->callbacks.find_debuginfo = sp_libdw_find_debuginfo;
        lines->dwfl = dw->dwfl_begin(&lines->callbacks);
        if (lines->dwfl && dw->dwfl_linux_proc_report(lines->dwfl, getpid()) == 0 &&
            dw->dwfl_report_end(lines->dwfl, NULL, NULL) == 0)
                return lines;
        sp_lines_close(lines);
        return NULL;
}

static uint64_t now_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static unsigned int look_in_module(const struct sp_libdw *dw, Dwfl_Module *module, uint64_t address,
                                   struct sp_line *line, unsigned int most)
{
        unsigned int count = 0;
        Dwarf_Die *unit;
        uint64_t bias;

        memset(line, 0, most * sizeof(*line));
        unit = unit_at(dw, module, address, &bias);
        if (unit) {
                copy_statement(dw, unit, address - bias, line);
                count = look_in_unit(dw, unit, address - bias, line, most);
        }
        if (!line->function[0])
                copy_symbol(dw, module, address, line);
        if (count == 0 && (line->function[0] || line->line))
                count = 1;
        return count;
}

unsigned int sp_lines_at(struct sp_lines *lines, const void *address, struct sp_line *line,
                         unsigned int most)
{
        uint64_t at = (uintptr_t)address;
        uint64_t began = now_ns();
        Dwfl_Module *module;
        unsigned int count = 0;

        if (most == 0 || lines->spent_ns > PATIENCE_NS || !has_room())
                return 0;
        module = lines->dw->dwfl_addrmodule(lines->dwfl, at);
        if (module)
                count = look_in_module(lines->dw, module, at, line, most);
        lines->spent_ns += now_ns() - began;
        return count;
}

void sp_lines_close(struct sp_lines *lines)
{
        if (!lines)
                return;
        if (lines->dwfl)
                lines->dw->dwfl_end(lines->dwfl);
        free(lines);
}
