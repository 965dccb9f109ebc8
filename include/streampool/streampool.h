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
 * driver. None calls the driver. Before the process uses CUDA there is nothing
 * to tell: figures are refused, and no report is written.
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

#ifdef __cplusplus
}
#endif

#endif
