/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_LIFE_H
#define SP_LIFE_H

/*
 * Life -- may the shim act now?
 *
 *   NEW --first successful cuInit--> STARTING --> ON --fail open--> OFF
 *                                       |          \---- exit ----> LEAVING
 *                                       v
 *                                     IDLE: switched off by the environment,
 *                                     or a child of fork()
 *
 * Before ON, and for ever in IDLE, hooks hand their calls to the driver
 * untouched. From ON on, whatever happens, handlers are asked: the program
 * holds addresses that only we can free. So a handler that would give out
 * something new asks sp_life_is_on() first; one that takes something back does
 * not.
 *
 * In LEAVING the driver may be gone already (CUDA_ERROR_DEINITIALIZED), while
 * static destructors and detached threads of the program still call.
 */

#include <stdatomic.h>
#include <stdbool.h>

/* The order matters: see sp_life_has_begun(). */
enum sp_life {
        SP_LIFE_NEW,
        SP_LIFE_STARTING,
        SP_LIFE_IDLE,
        SP_LIFE_ON,
        SP_LIFE_OFF,
        SP_LIFE_LEAVING,
};

/* Alone on its page, which the kernel clears in children that no handler of ours is told of. */
union sp_life_page {
        atomic_uint state; /* enum sp_life */
        char bytes[4096];
};

extern union sp_life_page sp_life_page;

/* Where in the program's code the hook was called from. Written by every hook, read by its
 * handler; per thread, because hooks run in all threads at once. */
extern __thread const void *sp_caller __attribute__((tls_model("initial-exec")));

static inline enum sp_life sp_life_state(void)
{
        return (enum sp_life)atomic_load_explicit(&sp_life_page.state, memory_order_relaxed);
}

/* May we give out something of our own? */
static inline bool sp_life_is_on(void)
{
        return sp_life_state() == SP_LIFE_ON;
}

/* Was it ever ON in this process? Then handlers are asked. Acquires what the start wrote. */
static inline bool sp_life_has_begun(void)
{
        return atomic_load_explicit(&sp_life_page.state, memory_order_acquire) >= SP_LIFE_ON;
}

/* Is this a forked child of a process that was ON? Its driver answers every call with 3. */
bool sp_life_is_child(void);

/**
 * sp_life_start() - go from NEW to ON, unless the environment says otherwise
 *
 * Called where the driver is known to be initialised, with no lock held; entry/start.c
 * carries it out. Threads that come while another one starts do not wait.
 *
 * Return: sp_life_has_begun().
 */
bool sp_life_start(void);

/* Fails open: says why, once; from now on nothing new is given out. */
void sp_life_off(const char *reason);

/* The process ends. */
void sp_life_leaving(void);

/* the steps of a start; for entry/start.c and tests */

/* True for the one caller that has to start. */
bool sp_life_begin(void);
void sp_life_settle(bool on);

/* In the child, after fork(). */
void sp_life_child(void);

#endif
