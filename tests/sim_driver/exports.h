/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_EXPORTS_H
#define SIM_EXPORTS_H

/*
 * Exports -- every symbol of the driver, implemented or not
 *
 * generate.py turns exports.tsv into one SIM_STUB() and one SIM_ROW() a symbol.
 * A stub is weak: a file that implements the function replaces it at link time,
 * so the library always exports all names and cuGetProcAddress() always returns
 * what dlsym() returns.
 *
 * This header knows no CUDA types, because cuda.h renames functions by macro.
 */

#include <stdbool.h>
#include <stddef.h>

/* Written once, by the linker. */
struct sim_export {
        const char *base;      /* name for cuGetProcAddress; NULL: not known to it */
        int introduced;        /* CUDA version, 12050 is 12.5 */
        bool per_thread;       /* a _ptds or _ptsz variant */
        const char *symbol;    /* exported name */
        void (*address)(void); /* what dlsym() returns */
        void (*twin)(void);    /* jumps to it; for SIM_GPA_DIFFERENT */
        void (*stub)(void);    /* equals `address` where nobody implements the function */
};

#pragma GCC visibility push(hidden)

extern const struct sim_export sim_exports[];
extern const int sim_export_count;

/* The version of the driver: what was built, or an older one by SIM_AGE. */
extern const int sim_age_built;
int sim_age(void);

/* Counts the call of a symbol without implementation; CUDA_ERROR_NOT_SUPPORTED. */
int sim_stub(int index);

#pragma GCC visibility pop

#if defined(__x86_64__)
#define SIM_JUMP "jmp"
#elif defined(__aarch64__)
#define SIM_JUMP "b"
#else
#error "no jump instruction known for this processor"
#endif

#define SIM_STUB(symbol, index)                                                                    \
        int symbol(void);                                                                          \
        __attribute__((visibility("hidden"))) void sim_twin_of_##symbol(void);                     \
        static int sim_stub_of_##symbol(void)                                                      \
        {                                                                                          \
                return sim_stub(index);                                                            \
        }                                                                                          \
        __attribute__((weak, alias("sim_stub_of_" #symbol))) int symbol(void);                     \
        __asm__(".pushsection .text\n.hidden sim_twin_of_" #symbol "\n.globl sim_twin_of_" #symbol \
                "\n.type sim_twin_of_" #symbol ", %function\nsim_twin_of_" #symbol ": " SIM_JUMP   \
                " " #symbol "\n.popsection\n");

#define SIM_ROW(base, introduced, per_thread, symbol)                                              \
        {                                                                                          \
                base, introduced, per_thread, #symbol, (void (*)(void))symbol,                     \
                        sim_twin_of_##symbol, (void (*)(void))sim_stub_of_##symbol                 \
        }

#endif
