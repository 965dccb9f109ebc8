/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_LOOKUP_H
#define SP_LOOKUP_H

/*
 * Look-up -- which of our functions stands for this function of the driver?
 *
 * A program reaches the driver by the address that dlsym() or cuGetProcAddress()
 * gave it. Both are asked first, with the program's own arguments; then the
 * answer is replaced if, and only if, it is the address of a function that we
 * wrap. No name, version or flag is interpreted here, so an old or a new driver,
 * a missing symbol and a second copy of the driver need no rule (D2).
 */

#include <stdatomic.h>
#include <stdbool.h>

/*
 * The real dlsym: the next one in the process after ours. Atomic, NULL until it
 * is found; dlsym.S reads it.
 */
extern _Atomic(void *) sp_real_dlsym;

/* Finds it; never NULL. Takes no lock of ours and allocates nothing. */
void *sp_real_dlsym_find(void);

/* The two ways to find it: in the libraries' tables, and with the loader's help. */
void *sp_real_dlsym_next(void);
void *sp_real_dlsym_versioned(void);

/* A look-up by the shim itself. Never `dlsym` by name, which is our own. */
void *sp_dlsym(void *handle, const char *name);

/* Where dlsym.S goes with a name like a driver function's (route/on_lookup.c). */
void *sp_on_dlsym(void *handle, const char *name);

/* Our function for one of the driver's; the address itself if we have none. */
void *sp_lookup_wrapper(void *address);

/* Is another copy of this library in front of us? Then it does the work and we do nothing (P19). */
bool sp_lookup_is_second(void);

/* For driver.c: the table for what sp_driver holds now. Once, before it is published. */
void sp_lookup_fill(void);

#endif
