/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_RIPE_H
#define SPM_RIPE_H

/*
 * Ripe -- what the magazine of a synchronous pool serves, and when
 *
 * Such a magazine is one of the context's line, the stream that all of the context's work is on
 * (subject.h). What it serves may be used anywhere at once, so it has to be complete, and a block
 * that its owner frees is one of three:
 *
 *   complete     while nothing that was submitted into the context can still be running
 *                (spm_work_is_idle()): it can be served again at once
 *   waiting      for the line's end, as any synchronous block. The oldest is looked at first, and
 *                found complete by what everybody has seen of the line. Only small ones, and only
 *                where the threads that have such magazines keep one another waiting at the lock
 *                (spm_magazine_crowd()): it makes no thread faster that is alone, and takes memory,
 *                as complete blocks are laid up and frees are counted later, 0.3 to 1.4 % on traces
 *   not for it   else; above all while one stream alone has work and the device is behind: it can
 *                be served early then, in that stream's order, and who is told of that needs the
 *                lock (R1, work_sole.c)
 *
 * The owner reads without the lock which of the three it is, and where the line ends. Why is
 * neither too old? What counts is work that was submitted before the free, by the owner's thread or
 * by one that the program has put before it. Who submits it announces it first, with the lock,
 * unless it was announced in this count; so the owner sees that the context has work, and, if it
 * sees the end of the line as it was when the line was looked at last, that this look came before
 * the free. That the end is no older than the work before the free rests on the driver, too: it
 * takes a lock for whoever submits, and for whoever looks.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "magazine.h"
#include "state.h"
#include "subject.h"
#include "work.h"

#define SPM_RIPE_MAX ((size_t)8 << 10)

/** spm_ripe_now() - what a free is. Also for whoever is not inside: what is said here is the
 * magazine's own, and outlives its context. */
static inline enum spm_work_free spm_ripe_now(const struct spm_magazine *magazine)
{
        return (enum spm_work_free)atomic_load_explicit(&magazine->told, memory_order_relaxed);
}

/** spm_ripe_may_wait() - is it one that may wait here, and is there room? */
static inline bool spm_ripe_may_wait(const struct spm_magazine *magazine, size_t size, bool is_slot)
{
        return is_slot && size <= SPM_RIPE_MAX && magazine->waiting_count < SPM_MAGAZINE_WAITING;
}

/** spm_ripe_wait() - the owner has freed it, and there is room. */
static inline void spm_ripe_wait(struct spm_magazine *magazine, struct spm_block *block)
{
        uint32_t place =
                (magazine->waiting_first + magazine->waiting_count++) % SPM_MAGAZINE_WAITING;

        block->streams[0] = magazine->stream_id;
        block->positions[0] =
                atomic_load_explicit(&magazine->stream->submitted, memory_order_relaxed);
        block->dep_count = 1;
        magazine->waiting[place] = block;
        magazine->held++;
}

/** spm_ripe_oldest() - of what waits, or NULL. */
static inline struct spm_block *spm_ripe_oldest(const struct spm_magazine *magazine)
{
        return magazine->waiting_count ? magazine->waiting[magazine->waiting_first] : NULL;
}

static inline bool spm_ripe_is_complete(const struct spm_magazine *magazine,
                                        const struct spm_block *block)
{
        return block->positions[0] <=
               atomic_load_explicit(&magazine->stream->context->line_done, memory_order_acquire);
}

/** spm_ripe_take() - the oldest waits no longer. */
static inline struct spm_block *spm_ripe_take(struct spm_magazine *magazine)
{
        struct spm_block *block = magazine->waiting[magazine->waiting_first];

        magazine->waiting_first = (magazine->waiting_first + 1) % SPM_MAGAZINE_WAITING;
        magazine->waiting_count--;
        return block;
}

#endif
