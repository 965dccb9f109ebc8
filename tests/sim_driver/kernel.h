/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_KERNEL_H
#define SIM_KERNEL_H

/*
 * Kernel -- the few kernels that the simulated device can run
 *
 * A kernel is known by its name, whatever image it was loaded from:
 *
 *   spin(u64 nanoseconds)
 *   fill(u32 *p, u64 count, u32 value)
 *   add(u32 *p, u64 count, u32 value)
 *   check(const u32 *p, u64 count, u32 expected, u32 *mismatches)
 *   watch(const u32 *p, u64 count, u32 expected, u64 nanoseconds, u32 *mismatches)
 *   copy(u32 *to, const u32 *from, u64 count)
 *   hold(const u32 *flag, u32 wanted, u64 nanoseconds, u32 *gave_up)
 *   meet(u32 *mine, const u32 *other, u32 value, u64 nanoseconds, u32 *gave_up)
 *   visit(u8 *p, u64 count, u32 before, u32 after, u32 *mismatches)
 *   second(struct { u32 *other, *p; } at, u32 value)
 *   look(u32 number, void *p)
 *
 * hold and meet wait for a word as long as it takes: what a real device would end
 * in vain is a wait here that nothing can end. check and watch add the number
 * of mismatches they saw; watch looks again and again until its time is over.
 * visit, which no image has, uses all bytes as far as the oracle knows and looks at
 * two, so that blocks of any size cost the host nothing: the first and the last one
 * hold the value before, or anything if that is 0, and then the one after.
 * second writes to one of two addresses, which it gets as one parameter; look does nothing.
 */

#include "operation.h"

#pragma GCC visibility push(hidden)

#define SIM_PARAMETERS 5

struct sim_kernel {
        const char *name;
        size_t count;                           /* of parameters */
        unsigned char bytes[SIM_PARAMETERS];    /* size of each */
        void (*prepare)(struct sim_work *work); /* its words are the arguments */
};

/* Behind a CUmodule and a CUlibrary, which share it. */
struct sim_module {
        struct sim_handle handle;
        struct sim_context *context; /* null: a library, of no context */
        struct sim_function *functions;
        struct sim_module *next;
};

/* Behind a CUfunction and a CUkernel. Lives as long as its module. */
struct sim_function {
        struct sim_function *next;
        const struct sim_kernel *kernel;
        struct sim_module *module;
        bool is_kernel; /* a CUkernel, which is no CUfunction */
};

const struct sim_kernel *sim_kernel_find(const char *name);  /* null: unknown */
const struct sim_kernel *sim_kernel_nth(unsigned int index); /* null: past the last */

/* Where a parameter is in one buffer with all of them; false past the last one. */
bool sim_kernel_parameter(const struct sim_kernel *kernel, size_t index, size_t *offset,
                          size_t *bytes);

/* Work from a launch's two ways of passing arguments; 1 if neither or both are given. */
CUresult sim_kernel_work(struct sim_work *work, CUfunction function, void **parameters,
                         void **extra);

#pragma GCC visibility pop

#endif
