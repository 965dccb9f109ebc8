/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STREAMPOOL_REAP_H
#define STREAMPOOL_REAP_H

/*
 * Reap -- what was freed and is not complete, and how to wait for it
 *
 * A free moves a block's bytes from live to pending, in one step; what is complete is pending no
 * more. Both together are outstanding: what the program holds, or the device may still touch. Of
 * pools of every kind, with magazines or without.
 *
 * Units: bytes as taken from segments. Threads: as in model.h, none; the callback of a reap is
 * called with the caller's lock held, so it is for programs that have nothing else to do then.
 * Others wait in a way of their own, and tell it by spm_sync_begin() and spm_sync_end(). Sources:
 * rules B16 to B27 of tests/rules/README.md.
 */

#include <stdbool.h>
#include <stdint.h>
#include <streampool/action.h>
#include <streampool/order.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct spm_outstanding {
        uint64_t live_bytes;
        uint64_t pending_bytes;
        uint64_t stream_bytes;      /* of these, the sum over streams and contexts; the rest is in
                                     * magazines and in quarantine */
        uint64_t outstanding_bytes; /* live and pending (B20) */
};

/** spm_outstanding() - of @pool, or of all if it is 0. spm_check() has stream_bytes, magazines and
 * quarantine sum up to pending_bytes (B18, B19). Return: SPM_OK, SPM_E_UNKNOWN. */
enum spm_status spm_outstanding(const struct spm_model *model, spm_pool pool,
                                struct spm_outstanding *figures);

/** spm_each_pending() - the bytes that wait for each stream first, or for a whole context, of
 * @pool or of all if it is 0; until @visit returns false. A stream of several pools is told once
 * for each. Return: SPM_OK, SPM_E_UNKNOWN. */
enum spm_status spm_each_pending(const struct spm_model *model, spm_pool pool,
                                 bool (*visit)(struct spm_scope where, uint64_t bytes, void *user),
                                 void *user);

struct spm_reaped {
        uint64_t bytes;          /* that are pending no more */
        unsigned int waits;      /* that succeeded */
        struct spm_scope failed; /* the one that did not; its id is 0 if there was none */
};

/**
 * spm_reap_pending() - wait for what is pending, stream by stream
 * @pool:    or all, if it is 0
 * @wait:    waits on the host for a stream, or for a context where the stream has ended or is not
 *           known, and says whether that succeeded; must not call the model
 * @reaped:  return argument, always written unless the pool is unknown
 * @actions: RELEASE and DROP
 *
 * Only what was waited for is complete; the first wait that fails ends the reap, and what it and
 * those behind it stood for is pending as before, for a later one (B23, B24). Streams and contexts
 * that capture are left out, and so is what is in magazines and in quarantine.
 *
 * Return: SPM_OK, SPM_E_DRIVER (a wait failed), SPM_E_UNKNOWN, SPM_E_HOST_MEMORY.
 */
enum spm_status spm_reap_pending(struct spm_model *model, spm_pool pool,
                                 bool (*wait)(struct spm_scope what, void *user), void *user,
                                 struct spm_reaped *reaped, struct spm_actions *actions);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
