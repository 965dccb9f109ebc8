/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_WITNESS_H
#define SPM_WITNESS_H

/*
 * Witness, inside -- what its files share
 *
 *   witness.c         order: streams, events, the host
 *   witness_room.c    where everything is, and who has a seat
 *   witness_memory.c  allocations and their uses
 *
 * A stream has a seat, and work on it a position there. A clock is an array of positions,
 * one a seat, and stands for these and everything before them.
 *
 * A seat is taken by another stream when there is none left: then the host counts as having
 * seen all that the first one was given. Positions go on, so that what older clocks say of the
 * seat stays true.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/witness.h>

#define SPM_WITNESS_WAYS  8  /* blocks whose addresses hash alike */
#define SPM_WITNESS_USERS 8  /* streams of which the uses of a block are known */
#define SPM_WITNESS_BASES 16 /* contexts that were made to wait */

struct spm_seat {
        uint32_t stream; /* 0: nobody has it */
        uint32_t context;
        enum spm_stream_kind kind;
        uint64_t position; /* of what was submitted last */
        uint64_t muted;    /* of the last that can still wait for anything; 0 is none */
        uint64_t muted_at; /* when that was told */
        uint64_t age;      /* when it was last of use */
        uint64_t *next;    /* what its next work is behind */
};

struct spm_mark {
        uint32_t event; /* 0: nobody has it */
        bool is_known;
        bool is_shared; /* others can record it, and wait for it */
        uint64_t version;
        uint64_t first;    /* when it got the place */
        uint32_t seat;     /* of its last record */
        uint64_t position; /* there; 0: of a whole context */
        uint64_t *clock;   /* of its last record */
        uint64_t *ever;    /* of all its records */
};

/* What all streams of a context wait for, those to come too. */
struct spm_base {
        uint32_t context; /* 0: nobody has it */
        uint64_t *clock;
};

/* The last of its kind by one stream; position 0: none. */
struct spm_last {
        uint64_t position;
        uint64_t from, to;
        struct spm_spot spot;
};

struct spm_user {
        uint32_t seat;
        uint64_t age; /* 0: nobody has it */
        struct spm_last last[SPM_TOUCH_KINDS];
};

struct spm_witnessed {
        struct spm_seen_life life;
        uint64_t age; /* 0: nobody has it */
        uint32_t seat;
        uint64_t position; /* of the allocation; 0: in no stream's order, or long complete */
        struct spm_spot spot;
        struct spm_user user[SPM_WITNESS_USERS];
};

struct spm_witness {
        struct spm_witness_config config;
        void *room;     /* all arrays */
        uint32_t seats; /* that were ever taken */
        uint64_t age;
        bool is_lost;
        bool is_muted;
        struct spm_seat *seat;
        struct spm_mark *mark;
        struct spm_witnessed *block;
        uint64_t *host; /* complete, as the host has seen or can have seen */
        struct spm_base base[SPM_WITNESS_BASES];
};

/** spm_witness_join() - @clock is behind @other, too. */
void spm_witness_join(const struct spm_witness *witness, uint64_t *clock, const uint64_t *other);

/** spm_witness_sit() - the seat of a stream, which it is given if it has none; NULL if there is
 * none to be had, and then the witness is lost. */
struct spm_seat *spm_witness_sit(struct spm_witness *witness, struct spm_actor actor);

/** spm_witness_seat() - likewise, if it has one. */
const struct spm_seat *spm_witness_seat(const struct spm_witness *witness, uint32_t stream);

/** spm_witness_base() - what a context waits for; NULL if that is nothing. */
const uint64_t *spm_witness_base(const struct spm_witness *witness, uint32_t context);

static inline bool spm_witness_is_silent(const struct spm_witness *witness)
{
        return witness->is_lost || witness->is_muted;
}

#endif
