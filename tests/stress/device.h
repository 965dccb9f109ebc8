/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DEVICE_H
#define DEVICE_H

/*
 * Device -- work that is done late, and the memory that it touches
 *
 * Streams are counters: so much work was submitted, and so much is done, which is no more than
 * what somebody has waited for. Beside it stands, for every unit of memory, who has it, and the
 * last work of each stream that its earlier owners have submitted for it. A unit with two owners,
 * and work that can run beside that of an earlier owner, is found at once.
 *
 * All is atomic, and needs no lock.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <streampool/model.h>

#define KIB            ((size_t)1 << 10)
#define MIB            ((size_t)1 << 20)

#define DEVICE_STREAMS 4
#define DEVICE_BASE    ((uint64_t)1 << 40)
#define DEVICE_RANGE   (32 * MIB)
#define DEVICE_RANGES  32
#define DEVICE_UNIT    ((size_t)512)

/* What somebody knows of each stream: so much of its work. */
struct device_view {
        uint64_t work[DEVICE_STREAMS];
};

extern _Atomic(unsigned int) device_failures;
extern _Atomic(uint64_t) device_early; /* units used before earlier work is done, and behind it */

/** device_fail() - say what is wrong; after many times, end the program. */
void device_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* work */

/** device_submit() - Return: the number of that work. */
uint64_t device_submit(unsigned int stream);

/** device_look() - all that was submitted; device_look_at(): that a stream runs behind. */
struct device_view device_look(void);
struct device_view device_look_at(unsigned int stream);

/** device_finish() - so much is done, now. */
void device_finish(const struct device_view *view);
bool device_is_done(const struct device_view *view);

/** device_wait() - what is submitted next to @stream runs behind that. */
void device_wait(unsigned int stream, const struct device_view *view);

/* stamps, of which the oldest are forgotten */

void device_record(spm_stamp stamp, const struct device_view *view);
bool device_find(spm_stamp stamp, struct device_view *view);

/* memory */

/** device_hand() - the block is no longer @from's, but @to's; 0: nobody's. */
void device_hand(const struct spm_allocation *block, uint32_t from, uint32_t to);

/** device_use() - its owner submits work on @stream for it. */
void device_use(const struct spm_allocation *block, unsigned int stream);

/** device_leave() - its owner is about to free it. @uses: what was submitted for it. */
void device_leave(const struct spm_allocation *block, const struct device_view *uses);

#endif
