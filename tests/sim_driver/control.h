/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_CONTROL_H
#define SIM_CONTROL_H

/*
 * Control -- what a test may ask of, and do to, the simulated driver
 *
 * Link these functions or find them with dlsym(RTLD_DEFAULT, "sim_..."); a
 * program that finds none runs on a real driver. They take the driver's lock
 * themselves, may be called from any thread at any time, and are no CUDA
 * calls: they are neither counted nor captured nor made to fail.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- time (SIM_TIME=virtual unless said otherwise) ---- */

/* Nanoseconds since the driver was loaded: of the virtual clock, or real ones with
 * SIM_TIME=threads. */
uint64_t sim_now_ns(void);

/* Lets the next operation finish, moving the clock to its end; false: nothing runs. */
bool sim_step(void);

/* Moves the clock by so much; what ends until then finishes. */
void sim_advance(uint64_t nanoseconds);

/* Lets everything finish that can; operations left behind wait for the host. */
void sim_run_all(void);

/* Operations enqueued and not finished. */
size_t sim_pending(void);

/* What a query answering "not ready" adds to the clock, so that polling ends; 1000 at first. */
void sim_poll_cost(uint64_t nanoseconds);

/* ---- calls ---- */

/* How often the exported symbol was called (by its full name, as "cuMemAlloc_v2"). */
uint64_t sim_calls(const char *symbol);
uint64_t sim_calls_all(void);
void sim_calls_reset(void);

/* Does the exported symbol do something, or only answer CUDA_ERROR_NOT_SUPPORTED? */
bool sim_is_simulated(const char *symbol);

/* The nth call from now (1: the next) of the symbol answers `code` and does nothing; "*": any. */
void sim_fail(const char *symbol, unsigned int nth, int code);
void sim_fail_none(void);

/* Makes every later call in the current context answer `code` (as after an illegal access). */
void sim_poison(int code);

/* ---- the oracle ---- */

/*
 * The program owns these bytes from now on, until it says otherwise. Once told,
 * the oracle judges accesses to them by these owners and not by the driver's own
 * allocations. Call it after an allocation returns, and before its free is
 * called.
 */
void sim_oracle_alloc(uint64_t address, size_t bytes);
void sim_oracle_free(uint64_t address);

/* Accesses judged so far: a test that proves silence proves first that something was seen. */
uint64_t sim_oracle_judged(void);

/* ---- state ---- */

size_t sim_live_allocations(void); /* of the driver, of every kind */
size_t sim_open_captures(void);

/* The most physical memory that was in use on the device at once, since the last reset. */
size_t sim_memory_high(int device);
void sim_memory_high_reset(int device);

#ifdef __cplusplus
}
#endif

#endif
