/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_RUNTIME_H
#define SP_RUNTIME_H

/*
 * Runtime -- does a call come from NVIDIA's runtime library, and from whom behind it?
 *
 * A program whose libcudart is a shared one (nvcc -cudart shared, PyTorch, CuPy) calls
 * the driver from there, whatever its own line is. That library asks the driver
 * for its functions before it calls any, which is when it becomes known here. Whoever
 * called it is whose memory it is, unless that is PyTorch's allocator (libc10_cuda), which
 * serves the program and libraries alike: then it is who called that one.
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

/** sp_runtime_note() - @caller has looked up a function of the driver; with no lock held. Keeps
 * errno. */
void sp_runtime_note(const void *caller);

/** sp_runtime_start() - from now on calls that come from one have their stack taken. */
void sp_runtime_start(void);

/** sp_runtime_has() - is it in one? False as well if there is no unwinder. */
bool sp_runtime_has(const void *address);

/** sp_runtime_passes() - is it in one, or in an allocator that stands behind it, and is known? */
bool sp_runtime_passes(const void *address);

/** sp_runtime_learn() - @address has called one; with no lock held. Return: true if it is in an
 * allocator that was not known. */
bool sp_runtime_learn(const void *address);

#endif
