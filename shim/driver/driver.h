/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_DRIVER_H
#define SP_DRIVER_H

/*
 * Driver -- the real functions of libcuda
 *
 * sp_driver holds one typed pointer per row of entry_points.def, named like the
 * exported symbol: sp_driver.cuMemAllocAsync_ptsz(...). A pointer is NULL where
 * the installed driver lacks the symbol.
 *
 * Finding the driver takes no lock and may happen in several threads at once;
 * the first one to finish publishes what it found. From then on nothing changes
 * until the process ends: the library is never closed.
 */

#include <stdbool.h>
#include <stdint.h>

#include "driver/entry_points.h"

struct sp_driver {
#define SP_EACH_HOOK(api, symbol, since, suffix, params, raw_args, args)                           \
        SP_TYPE(api, since, suffix) * symbol##suffix;
#define SP_EACH_RETRY(api, symbol, since, suffix, params, raw_args)                                \
        SP_TYPE(api, since, suffix) * symbol##suffix;
#define SP_EACH_SUBMIT(api, symbol, since, suffix, kind, params, raw_args, stream)                 \
        SP_TYPE(api, since, suffix) * symbol##suffix;
#define SP_EACH_CALL(api, symbol, since, suffix) SP_TYPE(api, since, suffix) * symbol##suffix;
#include "driver/entry_points.def"
};

/* Written once, before sp_driver_is_loaded() answers true. */
extern struct sp_driver sp_driver;

/* True once the real functions are known. One load. */
bool sp_driver_is_loaded(void);

/**
 * sp_driver_load() - find libcuda.so.1 for a program that called us directly
 *
 * Prefers a copy that the process has loaded already, and loads one otherwise.
 * May be called at any time, without any lock held; does nothing once loaded.
 *
 * Return: true if the real functions are known.
 */
bool sp_driver_load(void);

/**
 * sp_driver_adopt() - take the library that an address belongs to as the driver
 * @address:    what the real dlsym() returned to the program
 *
 * The first libcuda.so* of the base namespace that the program is seen to use is
 * the driver, unless a libcuda.so.1 is there beside it.
 *
 * Return: true if the real functions are known, of this library or of an earlier one.
 */
bool sp_driver_adopt(const void *address);

/* Is it in the library that is the driver? */
bool sp_driver_contains(const void *address);

/* What a row is, in words; for reports and diagnostics. */
enum sp_entry_kind { SP_ROW_HOOK, SP_ROW_RETRY, SP_ROW_SUBMIT, SP_ROW_CALL };

struct sp_entry_info {
        const char *api;    /* the name of cuda.h: cuMemAlloc */
        const char *symbol; /* the exported name: cuMemAlloc_v2 */
        int since;          /* the CUDA version it appeared in: 3020 */
        enum sp_entry_kind kind;
};

extern const struct sp_entry_info sp_entry_info[SP_ENTRY_COUNT];

/* The real function of a row as an address, or NULL. */
void *sp_driver_address(enum sp_entry entry);

/* Where the driver was found, e.g. "/usr/lib/x86_64-linux-gnu/libcuda.so.1"; "" before. */
const char *sp_driver_path(void);

#endif
