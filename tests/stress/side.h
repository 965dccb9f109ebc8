/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIDE_H
#define SIDE_H

/*
 * Side -- one of two models that are told the same
 *
 * Everything is done as soon as somebody asks. Whoever is refused ends the
 * program.
 */

#include <stdbool.h>
#include <stdint.h>
#include <streampool/model.h>

#define KIB          ((size_t)1 << 10)
#define MIB          ((size_t)1 << 20)

#define SIDE_STREAMS 5
#define SIDE_LIVE    160
#define SIDE_RANGE   (4096 * MIB)
#define SIDE_UNIT    512
#define SIDE_DECAY   1000000000u

struct side {
        bool has_magazines;
        struct spm_model *model;
        spm_context context;
        spm_stream streams[SIDE_STREAMS]; /* the first is the legacy stream */
        struct spm_magazine *magazines[SIDE_STREAMS];
        spm_pool pool;
        spm_event event;
        struct spm_allocation live[SIDE_LIVE];       /* address 0: none */
        bool was_served[2 * SIDE_RANGE / SIDE_UNIT]; /* since it was obtained */
        uint64_t next_lone; /* behind the range, where a segment may be anywhere */
        uint64_t reserved;
        uint64_t reused;
        uint64_t quick; /* allocations and frees by a magazine alone */
};

enum side_end {
        SIDE_FREE, /* by whoever can */
        SIDE_FREE_LOCKED,
        SIDE_FREE_ELSEWHERE, /* on another stream */
        SIDE_FREE_SYNC,      /* on none */
        SIDE_UNDO,
};

void side_fail(const char *what, uint64_t a, uint64_t b) __attribute__((noreturn));
void side_must(enum spm_status status, const char *what);

void side_begin(struct side *side);
void side_alloc(struct side *side, unsigned int place, unsigned int stream, size_t size);
void side_end(struct side *side, unsigned int place, unsigned int stream, enum side_end how);

/** side_magazine() - the stream has one, or not; nothing where there are none. */
void side_magazine(struct side *side, unsigned int stream, bool wanted);

void side_observe(struct side *side, struct spm_scope scope, enum spm_sync how);
void side_trim(struct side *side);
void side_tick(struct side *side, uint64_t now);
void side_order(struct side *side, unsigned int stream, unsigned int waiter);
void side_capture(struct side *side, unsigned int stream, bool begins);

/** side_replace() - another stream takes its place; its blocks are freed naming no stream. */
void side_replace(struct side *side, unsigned int stream);

#endif
