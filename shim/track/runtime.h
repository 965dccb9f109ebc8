/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_RUNTIME_H
#define SP_RUNTIME_H

/*
 * Runtime -- does a call come from NVIDIA's runtime library?
 *
 * A program whose libcudart is a shared one (nvcc -cudart shared, PyTorch, CuPy) calls
 * the driver from there, whatever its own line is. That library asks the driver
 * for its functions before it calls any, which is when it becomes known here.
 *
 * Its callers cost some 10 ns a call (tests/e2e/apps/between.c measures that), all others a
 * comparison.
 *
 * It is known by its addresses for as long as the process lives. Another library,
 * loaded there after it was unloaded, has its callers for places, not itself.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the code of one is. */
struct sp_runtime {
        uintptr_t begin;
        size_t size;
};

static inline bool sp_runtime_has(const struct sp_runtime *runtime, const void *address)
{
        return (uintptr_t)address - runtime->begin < runtime->size;
}

/** sp_runtime_note() - @caller has looked up a function of the driver; with no lock held. Keeps
 * errno. */
void sp_runtime_note(const void *caller);

/** sp_runtime_start() - from now on calls that come from one have their stack taken. */
void sp_runtime_start(void);

/** sp_runtime_of() - the one that an address is in; NULL if it is in none, or there is no unwinder.
 */
const struct sp_runtime *sp_runtime_of(const void *address);

#endif
