/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_RANGES_H
#define SP_TRACK_RANGES_H

/*
 * Ranges -- in which of its own phases is the program?
 *
 * Programs name what they do for profilers, by NVTX: "forward", "load batch". Where
 * NVTX_INJECTION64_PATH names this library, as scripts/streampool --ranges has it, NVTX
 * tells us of the ranges that each thread pushes and pops, in all domains, and a
 * place (track/stack.h) has the innermost of them. Only one library can be told, so
 * a profiler that takes the variable has the ranges, and we have none.
 */

/** sp_ranges_innermost() - of the calling thread; NULL if there is none. Kept for ever. */
const char *sp_ranges_innermost(void);

/* NVTX's own name for it (nvtxDetail/nvtxTypes.h). Return: 1, or 0 if we can do nothing with it. */
int InitializeInjectionNvtx2(const void *(*get_export_table)(unsigned int number));

#endif
