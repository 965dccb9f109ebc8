/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STREAMPOOL_WITNESS_H
#define STREAMPOOL_WITNESS_H

/*
 * Witness -- was this use, or this free, in the order of the program's streams?
 *
 * The model knows of less order than there is, which is right for who serves memory. A
 * witness knows of more, which is right for who blames a program: whatever could order two
 * pieces of work does, and nothing is a hazard unless there is no way at all from the earlier
 * one to the later one. A hazard that is missed is accepted, a false one is not.
 *
 * It stands apart from struct spm_model and shares nothing with it; handles are the caller's
 * own numbers, which have to be new for every new stream, event and context. It holds no lock,
 * reads no clock and knows no CUDA: the caller serialises all calls, and the same calls get the
 * same answers. All memory is taken by spm_witness_new(); what does not fit is forgotten, and
 * what was forgotten is blamed for nothing.
 *
 * Order between calls
 *   stream    work runs behind earlier work of its stream
 *   legacy    the legacy stream runs behind all that blocking streams of its context were given,
 *             and they behind it
 *   event     who waits runs behind all that the event's record was behind
 *   host      what any thread has seen complete is complete for all that anybody submits later
 *
 * What cannot be followed silences the witness: a stream that waits for a value in memory can wait
 * for anything, also for what is submitted later. From spm_witness_mute() until the host has seen
 * the end of that, nothing is blamed, and then everything submitted so far counts as complete.
 *
 * What is not seen at all: a kernel that waits in a loop for what another stream writes; and a host
 * that does, or asks for the time between two events, while the stream has more to do.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/order.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct spm_witness;

struct spm_witness_config {
        /* As in struct spm_config. */
        void *(*alloc)(size_t count, size_t size, void *user);
        void (*free)(void *memory, void *user);
        void *user;
        /* How many are known at a time; 0 means the default. */
        unsigned int streams; /* default 128 */
        unsigned int events;  /* default 2048 */
        unsigned int blocks;  /* default 8192, rounded up to a multiple of eight */
};

/** spm_witness_new() - one that has seen nothing; @config: NULL for all defaults, copied. Return:
 * NULL if there is no memory. */
struct spm_witness *spm_witness_new(const struct spm_witness_config *config);

/** spm_witness_free() - NULL is accepted. */
void spm_witness_free(struct spm_witness *witness);

/* Whose call it is. A stream is known from its first call on, and is the same in all of them. */
struct spm_actor {
        uint32_t stream; /* never 0 */
        uint32_t context;
        enum spm_stream_kind kind;
};

/* order */

/** spm_witness_submit() - work is given to a stream; also an allocation or a free in its order. */
void spm_witness_submit(struct spm_witness *witness, struct spm_actor actor);

/** spm_witness_record() - the driver has recorded @event; spm_witness_record_context(): for all
 * streams of a context. */
void spm_witness_record(struct spm_witness *witness, uint32_t event, struct spm_actor actor);
void spm_witness_record_context(struct spm_witness *witness, uint32_t event, uint32_t context);

/** spm_witness_taint() - @event may stand for anything: until it is recorded, or, if others can
 * record it and wait for it, for ever. */
void spm_witness_taint(struct spm_witness *witness, uint32_t event, bool forever);

/** spm_witness_wait() - a stream waits for an event; one that is not known may be anything.
 * spm_witness_wait_context(): all streams of a context, those to come too. */
void spm_witness_wait(struct spm_witness *witness, struct spm_actor actor, uint32_t event);
void spm_witness_wait_context(struct spm_witness *witness, uint32_t context, uint32_t event);

/** spm_witness_signal() - the host can learn by itself that all the stream was given is complete.
 */
void spm_witness_signal(struct spm_witness *witness, struct spm_actor actor);

/** spm_witness_mute() - the stream is given something that can wait for anything: told before the
 * driver hears of it, and once more behind it. */
void spm_witness_mute(struct spm_witness *witness, struct spm_actor actor);

/** spm_witness_blur() - all that was submitted counts as complete. */
void spm_witness_blur(struct spm_witness *witness);

/** spm_witness_give_up() - nothing is blamed any more. */
void spm_witness_give_up(struct spm_witness *witness);

/*
 * What the host has seen: a wait has returned, or a question was answered with "done". It began at
 * some moment (spm_witness_now()), and what has been muted since was not waited for.
 */

uint64_t spm_witness_now(const struct spm_witness *witness);
void spm_witness_saw_stream(struct spm_witness *witness, struct spm_actor actor, uint64_t since);
void spm_witness_saw_context(struct spm_witness *witness, uint32_t context, uint64_t since);

/** spm_witness_version() - of an event when the wait for it begins, for spm_witness_saw_event():
 * if it was recorded again meanwhile, any of its records may have been meant. */
uint64_t spm_witness_version(const struct spm_witness *witness, uint32_t event);
void spm_witness_saw_event(struct spm_witness *witness, uint32_t event, uint64_t version);

/* memory */

/* An allocation: where it begins, and which of those that were there. Nobody asks about one that
 * was freed, so that is not told. */
struct spm_seen_life {
        uint64_t address;
        uint64_t number;
};

/* A place in the program; the caller's own, and handed back as it is. */
struct spm_spot {
        const void *site;
        const char *function;
};

enum spm_touch_kind {
        SPM_TOUCH_READ,
        SPM_TOUCH_WRITE,
        SPM_TOUCH_ARGUMENT, /* it was given: to be read, written, or neither */
        SPM_TOUCH_KINDS,
};

/* Bytes [from, to) of an allocation. */
struct spm_touch {
        enum spm_touch_kind kind;
        uint64_t from, to;
        struct spm_spot spot;
};

enum spm_hazard {
        SPM_HAZARD_NONE,
        SPM_HAZARD_USE_BEFORE_ALLOC, /* on a stream that is not behind the allocation */
        SPM_HAZARD_RACE,             /* of two uses of a byte one writes, and neither is behind */
        SPM_HAZARD_FREE_BEFORE_ALLOC,
        SPM_HAZARD_FREE_BEFORE_USE,
        SPM_HAZARD_SYNC_FREE, /* at once, or behind one context, and a use is not complete then */
};

/* What is not ordered before. */
struct spm_verdict {
        enum spm_hazard hazard;
        uint32_t stream; /* whose work the earlier one is */
        bool is_alloc;   /* the earlier one is the allocation; else a use */
        enum spm_touch_kind kind;
        struct spm_spot spot;
};

/** spm_witness_alloc() - memory was allocated in the order of a stream, by what it submitted last.
 * Memory that was not is known from its first use. */
void spm_witness_alloc(struct spm_witness *witness, struct spm_actor actor,
                       struct spm_seen_life life, struct spm_spot spot);

/** spm_witness_look() - would what the stream submitted last be a hazard if it touched this?
 * Changes nothing. */
struct spm_verdict spm_witness_look(const struct spm_witness *witness, struct spm_actor actor,
                                    struct spm_seen_life life, const struct spm_touch *touch);

/** spm_witness_touch() - it does touch this. */
void spm_witness_touch(struct spm_witness *witness, struct spm_actor actor,
                       struct spm_seen_life life, const struct spm_touch *touch);

/** spm_witness_look_free() - would it be a hazard to free this by what the stream submitted last?
 * spm_witness_look_sync_free(): at once, when all that @context was given is complete; 0 waits for
 * nothing. */
struct spm_verdict spm_witness_look_free(const struct spm_witness *witness, struct spm_actor actor,
                                         struct spm_seen_life life);
struct spm_verdict spm_witness_look_sync_free(const struct spm_witness *witness, uint32_t context,
                                              struct spm_seen_life life);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
