/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STREAMPOOL_H
#define STREAMPOOL_H

/*
 * streampool -- talk to the library that may be preloaded into this process
 *
 * A program needs nothing of this: it runs the same with and without. One that
 * wants a report between two phases, or figures for its own log, includes this
 * header and links nothing. The functions are weak symbols, which are null
 * where the library is not loaded, so a call is written
 *
 *     if (streampool_write_report)
 *             streampool_write_report();
 *
 * All of them may be called from any thread, but not from a callback of the
 * driver. None calls the driver but streampool_set_layout(), which may have memory
 * to give back to it and waits for what was freed. Before the process uses CUDA
 * (a successful cuInit) there is nothing to tell, and no pool to change: figures and
 * layouts are refused, and no report is written. Nothing that is passed in is kept.
 *
 * Sources: C and a number are a rule of layouts, as in streampool/layout.h.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STREAMPOOL_VERSION "0.1.0"

#ifndef STREAMPOOL_API
#define STREAMPOOL_API __attribute__((weak))
#endif

/* Bytes where nothing else is said; a `_high` is the largest value since the last
 * streampool_reset_peaks(). New fields are added at the end. */
struct streampool_figures {
        size_t size; /* set by the caller: sizeof(struct streampool_figures) */

        /* what the program holds, device memory of all kinds and devices */
        uint64_t live_allocations; /* count */
        uint64_t live;
        uint64_t live_high; /* sum of the devices' peaks */

        /* what the pools hold */
        uint64_t requested;      /* in use by the program, as it asked */
        uint64_t requested_high; /* sum of the pools' peaks, as the next but one */
        uint64_t reserved;       /* obtained from the driver */
        uint64_t reserved_high;
        uint64_t pending;     /* freed, the device may still be using it */
        uint64_t ready;       /* free for anyone */
        uint64_t allocations; /* calls the pools have answered */
        uint64_t reused;      /* of these: from memory that had been freed before */

        uint64_t findings; /* wrong frees so far */
};

/** streampool_version() - of the library, e.g. "0.1.0". */
STREAMPOOL_API const char *streampool_version(void);

/** streampool_write_report() - what the report at exit would say now, to where it would go; the
 * report at exit is written all the same, and replaces a file of the same name. */
STREAMPOOL_API void streampool_write_report(void);

/** streampool_reset_peaks() - every `_high` becomes the current value, in the report too. */
STREAMPOOL_API void streampool_reset_peaks(void);

/**
 * streampool_get_figures()
 * @figures: @figures->size says how much of it the caller knows; the rest is written
 *
 * Return: true; false if there is nothing to tell, or another thread kept the books for too long:
 * then nothing is written.
 */
STREAMPOOL_API bool streampool_get_figures(struct streampool_figures *figures);

/* layouts */

enum streampool_status {
        STREAMPOOL_OK,
        STREAMPOOL_INVALID,     /* an argument: permanent */
        STREAMPOOL_IN_USE,      /* transient: the same call may succeed later */
        STREAMPOOL_UNSUPPORTED, /* permanent */
        STREAMPOOL_NO_MEMORY,   /* of the host, for what has to be remembered: transient */
        STREAMPOOL_NOTHING,     /* the library does nothing in this process, or not yet */
};

/**
 * streampool_set_layout() - how pools of device memory are cut up from now on (C34, C35)
 * @text:   as of STREAMPOOL_LAYOUT (streampool/layout.h); NULL or "pool" for the default heap
 * @device: by its number; -1 for all devices, whatever was said of one of them before
 * @why:    return argument: one line on what is wrong, if anything is, else nothing; may be NULL
 * @size:   of @why, in bytes; the line is cut there, and always ends in a zero
 *
 * All pools of the device get it, or none: those behind cuMemAlloc, of each context, and those
 * behind cuMemAllocAsync. Pools that are made later begin with it. As a pool is cut up anew when
 * nothing of it is in use, all memory from pools has to be freed before; what is persistent does
 * not count, unless the default heap is asked for. What was freed is waited for, up to a second for
 * each context (but with STREAMPOOL_MODE=observe, and while something captures), and what the pools
 * hold idle goes back to the driver.
 *
 * Memory that is not from pools, pinned host memory among it, is not concerned.
 *
 * Return: OK; INVALID: @why names the field, the value and the rule; IN_USE: @why has the bytes,
 * and all pools are as they were, but for what was idle; NO_MEMORY, likewise; UNSUPPORTED: @why
 * says what a pool has that no layout can have, or that the library has given up; NOTHING.
 */
STREAMPOOL_API enum streampool_status streampool_set_layout(const char *text, int device, char *why,
                                                            size_t size);

/**
 * streampool_persistent_enter(), streampool_persistent_leave() - a window in which what is
 * allocated is persistent (C30): it lies on pages of its own, apart from what comes and goes
 * @device: by its number; -1 for all devices
 *
 * In pools that have a layout, and in those that get one inside the window; the default heap makes
 * no difference. Windows nest, and are the process's, not a thread's; to leave one that was not
 * entered with the same @device does nothing. While something captures, what is entered or left
 * counts from the end of that on.
 *
 * Return: OK; INVALID: there is no such device; UNSUPPORTED: the library has given up; NOTHING.
 */
STREAMPOOL_API enum streampool_status streampool_persistent_enter(int device);
STREAMPOOL_API enum streampool_status streampool_persistent_leave(int device);

#ifdef __cplusplus
}
#endif

#endif
