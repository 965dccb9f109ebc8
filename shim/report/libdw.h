/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_LIBDW_H
#define SP_LIBDW_H

/*
 * libdw -- elfutils' reader of debug information, if it is there
 *
 * What we use of its headers is declared here, under its own names: they are its
 * stable interface, and so neither building nor loading the shim needs elfutils.
 */

#include <elf.h>
#include <stdint.h>
#include <sys/types.h>

/* elfutils/libdwfl.h, elfutils/libdw.h, gelf.h */

typedef struct Dwfl Dwfl;
typedef struct Dwfl_Module Dwfl_Module;
typedef struct Dwarf_Line_s Dwarf_Line;
typedef struct Dwarf_Files_s Dwarf_Files;
typedef struct Elf Elf;

typedef struct {
        int (*find_elf)(Dwfl_Module *, void **, const char *, uint64_t, char **, Elf **);
        int (*find_debuginfo)(Dwfl_Module *, void **, const char *, uint64_t, const char *,
                              const char *, uint32_t, char **);
        int (*section_address)(Dwfl_Module *, void **, const char *, uint64_t, const char *,
                               uint32_t, const Elf64_Shdr *, uint64_t *);
        char **debuginfo_path;
} Dwfl_Callbacks;

typedef struct {
        void *addr;
        void *cu;
        void *abbrev;
        long padding__;
} Dwarf_Die;

typedef struct {
        unsigned int code;
        unsigned int form;
        unsigned char *valp;
        void *cu;
} Dwarf_Attribute;

/* elf_begin() is libelf's, which libdw needs and so has brought. */
#define SP_LIBDW_FUNCTIONS(F)                                                                      \
        F(int, dwarf_child, "0.122", (Dwarf_Die *, Dwarf_Die *))                                   \
        F(int, dwarf_siblingof, "0.122", (Dwarf_Die *, Dwarf_Die *))                               \
        F(int, dwarf_getsrcfiles, "0.122", (Dwarf_Die *, Dwarf_Files **, size_t *))                \
        F(const char *, dwarf_filesrc, "0.122", (Dwarf_Files *, size_t, uint64_t *, uint64_t *))   \
        F(Dwarf_Line *, dwarf_getsrc_die, "0.122", (Dwarf_Die *, uint64_t))                        \
        F(int, dwarf_lineno, "0.122", (Dwarf_Line *, int *))                                       \
        F(const char *, dwarf_linesrc, "0.122", (Dwarf_Line *, uint64_t *, uint64_t *))            \
        F(int, dwarf_haspc, "0.122", (Dwarf_Die *, uint64_t))                                      \
        F(int, dwarf_tag, "0.122", (Dwarf_Die *))                                                  \
        F(Dwarf_Attribute *, dwarf_attr_integrate, "0.122",                                        \
          (Dwarf_Die *, unsigned int, Dwarf_Attribute *))                                          \
        F(const char *, dwarf_formstring, "0.122", (Dwarf_Attribute *))                            \
        F(int, dwarf_formudata, "0.122", (Dwarf_Attribute *, uint64_t *))                          \
        F(int, dwelf_elf_gnu_build_id, "0.159", (Elf *, const void **))                            \
        F(Dwfl *, dwfl_begin, "0.122", (const Dwfl_Callbacks *))                                   \
        F(void, dwfl_end, "0.122", (Dwfl *))                                                       \
        F(int, dwfl_linux_proc_report, "0.122", (Dwfl *, pid_t))                                   \
        F(int, dwfl_linux_proc_find_elf, "0.122",                                                  \
          (Dwfl_Module *, void **, const char *, uint64_t, char **, Elf **))                       \
        F(int, dwfl_report_end, "0.122",                                                           \
          (Dwfl *, int (*)(Dwfl_Module *, void *, const char *, uint64_t, void *), void *))        \
        F(Dwfl_Module *, dwfl_addrmodule, "0.122", (Dwfl *, uint64_t))                             \
        F(Dwarf_Die *, dwfl_module_addrdie, "0.122", (Dwfl_Module *, uint64_t, uint64_t *))        \
        F(Dwarf_Die *, dwfl_module_nextcu, "0.122", (Dwfl_Module *, Dwarf_Die *, uint64_t *))      \
        F(const char *, dwfl_module_addrinfo, "0.158",                                             \
          (Dwfl_Module *, uint64_t, uint64_t *, Elf64_Sym *, uint32_t *, Elf **, uint64_t *))      \
        F(int, dwfl_module_build_id, "0.138", (Dwfl_Module *, const unsigned char **, uint64_t *)) \
        F(int, dwfl_build_id_find_debuginfo, "0.130",                                              \
          (Dwfl_Module *, void **, const char *, uint64_t, const char *, const char *, uint32_t,   \
           char **))

#define SP_LIBELF_FUNCTIONS(F)                                                                     \
        F(Elf *, elf_begin, "1.0", (int, int, Elf *))                                              \
        F(int, elf_end, "1.0", (Elf *))

enum { ELF_C_READ_MMAP = 8 }; /* libelf.h */

/* dwarf.h */
enum {
        DW_TAG_class_type = 0x02,
        DW_TAG_lexical_block = 0x0b,
        DW_TAG_structure_type = 0x13,
        DW_TAG_inlined_subroutine = 0x1d,
        DW_TAG_module = 0x1e,
        DW_TAG_catch_block = 0x25,
        DW_TAG_subprogram = 0x2e,
        DW_TAG_try_block = 0x32,
        DW_TAG_namespace = 0x39,
        DW_AT_name = 0x03,
        DW_AT_comp_dir = 0x1b,
        DW_AT_call_file = 0x58,
        DW_AT_call_line = 0x59,
        DW_AT_linkage_name = 0x6e,
        DW_AT_MIPS_linkage_name = 0x2007, /* what it was before DWARF 4 */
};

#define SP_LIBDW_MEMBER(result, name, version, arguments) result(*name) arguments;
struct sp_libdw {
        SP_LIBDW_FUNCTIONS(SP_LIBDW_MEMBER)
        SP_LIBELF_FUNCTIONS(SP_LIBDW_MEMBER)
};
#undef SP_LIBDW_MEMBER

/** sp_libdw() - its functions, the same at every call; NULL if it cannot be loaded. */
const struct sp_libdw *sp_libdw(void);

/** sp_libdw_find_debuginfo() - where @file has no debug information of its own: for Dwfl_Callbacks.
 *
 * Without @file it looks for what several such files share.
 */
int sp_libdw_find_debuginfo(Dwfl_Module *module, void **user, const char *name, uint64_t base,
                            const char *file, const char *link, uint32_t sum, char **found);

#endif
