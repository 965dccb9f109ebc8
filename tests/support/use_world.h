/* SPDX-License-Identifier: Apache-2.0 */
#ifndef USE_WORLD_H
#define USE_WORLD_H

/*
 * Use world -- a model with a pool that tracks uses, a budget, and the twin beside it
 *
 * Each function is a step in both, and compares what they say.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/model.h>

#include "use_ops.h"
#include "use_twin.h"

#define USE_OPEN   4
#define USE_STAMPS 256

/* A use between prepare and finish. */
struct use_open {
        struct use_block *block; /* NULL: none */
        int stream;
        struct spm_use use;
        struct use_set behind;
};

struct use_world {
        const uint8_t *bytes;
        size_t size;
        size_t at;
        struct use_result *result;
        bool is_exact; /* the model knows as much as the twin */

        struct spm_model *model;
        spm_context contexts[2];
        spm_stream streams[USE_STREAMS];
        spm_pool pool;
        uint32_t tags[4];
        struct spm_budget device;
        struct spm_budget budget;
        struct spm_account account;
        size_t allocations; /* of the host */
        size_t fail_at;
        int deaf; /* the stream that a wait fails for, or -1 */

        struct use_set stamps[USE_STAMPS]; /* by their number, modulo */
        struct use_open open[USE_OPEN];
        struct use_twin twin;
};

void use_world_begin(struct use_world *world, const uint8_t *bytes, size_t size,
                     struct use_result *result);
void use_world_end(struct use_world *world);

/** use_world_fail() - the first failure is the one that is told. */
void use_world_fail(struct use_world *world, const char *what);

/** use_world_must() - @status is SPM_OK, unless the host has run out of memory. Return: is it? */
bool use_world_must(struct use_world *world, enum spm_status status, const char *what);
void use_world_expect(struct use_world *world, bool holds, const char *what);

/** use_world_number() - of a stream's handle, or -1. */
int use_world_number(const struct use_world *world, spm_stream stream);

/** use_world_check() - the invariants, those of the budget, and what was served. */
void use_world_check(struct use_world *world);

void use_world_alloc(struct use_world *world, int stream, size_t size, unsigned int tag);
void use_world_free(struct use_world *world, struct use_block *block, int stream);

/** use_world_forget() - it was freed: the twin's side of that. */
void use_world_forget(struct use_world *world, struct use_block *block, int stream);

/** use_world_carry_out() - what the model asks for. */
void use_world_carry_out(struct use_world *world, const struct spm_actions *actions);

/** use_world_free_behind() - behind all uses; @ok: the waits succeed. */
void use_world_free_behind(struct use_world *world, struct use_block *block, int stream, bool ok);

/** use_world_ask() - are the waits what the twin says? Return: the streams, a bit each. */
uint32_t use_world_ask(struct use_world *world, struct use_block *block, enum spm_use_access access,
                       int stream);

/** use_world_wait() - makes the waits, where the program does so itself. Return: what they stand
 * for, where they are claimed. */
struct use_set use_world_wait(struct use_world *world, struct use_block *block,
                              enum spm_use_access access, int stream);

void use_world_order(struct use_world *world, int from, int to);
void use_world_sync(struct use_world *world, int stream, bool whole);
void use_world_launch(struct use_world *world, struct use_block **blocks,
                      const enum spm_use_access *access, unsigned int count, int stream, bool ok);

/** use_world_look() - at the life of a dead block. */
void use_world_look(struct use_world *world, struct use_block *block);

/** use_world_reap() - @deaf: the stream whose wait fails, or -1. */
void use_world_reap(struct use_world *world, int deaf);

#endif
