/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STAGE_H
#define STAGE_H

/*
 * Stage -- one block, three streams, and a way back
 *
 * Where short programs are played exhaustively: a model, the graph it is
 * checked against, and the device. All of it lies in one piece, the model's
 * records included, so that a player goes back to where it came from by
 * copying.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/model.h>

#include "world.h"

#define STAGE_STREAMS 3
#define STAGE_USES    8
#define STAGE_ARENA   98304

/* What the three streams are. The first one is in the first context. */
struct stage_scene {
        const char *name;
        enum spm_stream_kind kinds[STAGE_STREAMS];
        int contexts[STAGE_STREAMS];
        bool whole; /* records and waits of the last stream are those of its context */
};

struct stage {
        struct world world;
        struct spm_allocation block;
        int born; /* the block's allocation, on stream 0 */
        int uses[STAGE_USES];
        int use_count;
        bool freed;
        size_t used;
        _Alignas(16) unsigned char arena[STAGE_ARENA];
};

extern struct stage stage;
extern uint64_t stage_served; /* blocks, in answer to questions */

/** stage_set_up() - the block is allocated, and all memory there is. */
void stage_set_up(const struct stage_scene *scene);

/** stage_save() - Return: to @place; stage_restore(): from there. */
void stage_save(struct stage *place);
void stage_restore(const struct stage *place);

struct world_cause stage_cause(int stream);
struct spm_scope stage_scope(const struct stage_scene *scene, int stream);

/** stage_may_use() - by the order set up so far; likewise to free. */
bool stage_may_use(int stream);
bool stage_may_free(int stream);
void stage_use(int stream);
void stage_free(int stream);

/**
 * stage_ask() - ask for the block on each stream, without and with host waits
 *
 * It is served where the graph agrees or not at all; with host waits it is served. The stage is as
 * before.
 *
 * Return: what is wrong, or NULL; the stream in *@asked.
 */
const char *stage_ask(int *asked);

/** stage_must() - end the process if @status is not SPM_OK. */
void stage_must(enum spm_status status);

#endif
