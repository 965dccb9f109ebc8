/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_RECORD_H
#define SP_TRACK_RECORD_H

/*
 * Record -- every call of the program's that matters to an allocator, one a line
 *
 * STREAMPOOL_RECORD. The form, version 1: a first line "# streampool recording 1", then one event a
 * line, fields apart by a blank. A reader skips lines that begin with # and events that it does not
 * know.
 *
 *   a t tid ptr size rc           cuMemAlloc
 *   f t tid ptr                   cuMemFree
 *   A t tid ptr size rc stream    cuMemAllocAsync, cuMemAllocFromPoolAsync
 *   F t tid ptr stream            cuMemFreeAsync
 *   s t tid stream                a wait for a stream, which has succeeded
 *   c t tid                       for a context
 *   e t tid event                 for an event
 *   Q t tid stream rc             a question about a stream; 600 is "not ready"
 *   q t tid event rc              about an event
 *   r t tid event stream          an event recorded
 *   w t tid stream event          a stream that waits for an event
 *   x t tid event                 an event destroyed
 *   + t tid stream flags          a stream made; flag 1 is "non-blocking"
 *   - t tid stream                and destroyed
 *   k stream n                    n kernels or copies in a row that were submitted to a stream
 *   m t tid HtoD|DtoH bytes       cuMemcpyHtoD, cuMemcpyDtoH, for which the host waits; other
 *                                 copies without a stream are work on stream 0
 *   h t tid ptr size              page-locked memory allocated
 *   H t tid ptr                   and freed
 *
 * t is in microseconds and never less than on the line before; tid is 0 for the main thread, and
 * others are counted as they come; addresses and handles are hexadecimal, sizes decimal; rc is the
 * driver's code. What has no rc has succeeded. Of a failed allocation ptr is 0; sizes of 0 and
 * frees of 0 are there as they were.
 *
 * Stream 0 is the legacy default stream. The per-thread one of a thread is a stream like any other,
 * with a handle that no real one has, made with flag 0 when it is first used; a stream that was
 * made out of sight appears likewise, with flag 1. Streams of different contexts are not told
 * apart, nor are devices and memory pools.
 *
 * The order of lines is one in which the calls could have happened: what takes something back is
 * written before the driver hears of it, what gives something out afterwards. A free that fails
 * leaves no line, if that line was still in memory.
 *
 * Not recorded: other kinds of memory and that of graphs, whose frees are frees of addresses that
 * are unknown; that blocks end with their context; what whole contexts wait for; and while a stream
 * captures, what is submitted to any stream, allocated on it, recorded on it, and waited for by it.
 *
 * Lines are in memory until there are SP_RECORD_LINES of them: so many at most are lost when the
 * process is killed, or ends by _exit(). They are written at the end, and on every occasion that
 * has or could have a report: an error that a context does not survive, abort() and a signal where
 * STREAMPOOL_REPORT_ON names them.
 */

#include <stdbool.h>
#include <stdint.h>

#include "driver/driver.h"

#define SP_RECORD_LINES 1024

/* Written once, before the shim is on. */
extern bool sp_record_is_on;

/* One call: what it was given, and where it says what it has made. */
struct sp_record_call {
        char kind;       /* as above; 0: it is not recorded */
        const void *out; /* of an address or a handle; NULL: @handle is it */
        uint64_t handle;
        uint64_t number; /* bytes, flags, or the direction of a copy */
        CUstream stream; /* never 0, for kinds that have one */

        uint64_t line; /* inside: what was written when it began */
};

enum { SP_RECORD_TO_DEVICE, SP_RECORD_TO_HOST };

/** sp_record_start() - by what the option says; if the file cannot be had that is said, and nothing
 * is recorded. */
void sp_record_start(void);

/*
 * Around a call, with no lock held, and only if sp_record_is_on. @result is what the program gets.
 * Neither calls the driver, takes memory from the heap or changes errno.
 */
void sp_record_begin(struct sp_record_call *call);
void sp_record_end(const struct sp_record_call *call, CUresult result);

/** sp_record_work() - something was submitted to @stream. */
void sp_record_work(CUstream stream, CUresult result);

/** sp_record_flush() - what is in memory goes to the file, unless somebody keeps the lock. */
void sp_record_flush(void);

/** sp_record_finish() - likewise, and nothing is recorded any more; says what was lost. */
void sp_record_finish(void);

#endif
