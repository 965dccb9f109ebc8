/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPS_INNER_H
#define OPS_INNER_H

/*
 * Ops -- what the files of the interpreter share
 *
 * ops_set_up.c sets up; ops.c chooses, and goes round; ops_memory.c allocates,
 * uses and frees, ops_magazine.c by way of magazines; ops_order.c makes calls in
 * two halves; ops_life.c begins and ends all the rest.
 */

#include "ops.h"
#include "world.h"

#define BLOCKS            240
#define USES              12
#define CALLS             4
#define REQUESTS          2
#define MAGAZINES         3

#define OPS_POOL_OF_MODEL 4 /* its provider makes up addresses */

#define OPS_DECAY         1000 /* nanoseconds */

struct block {
        bool used;
        struct spm_allocation allocation;
        int pool;
        int stream; /* number, TWIN_NONE for pools without streams */
        int born;   /* the absorbed allocation */
        int uses[USES];
        int use_count;
        bool exported;
};

enum call_kind { CALL_NONE, CALL_RECORD, CALL_WAIT, CALL_SYNC };

/* A driver call of another thread, begun and not ended. */
struct call {
        enum call_kind kind;
        struct spm_ticket ticket;
        struct spm_scope scope;
        int number; /* of its stream or context */
        int event;
        int node;      /* of the event, as the driver saw it */
        bool captured; /* its stream was capturing when it began */
        bool made;     /* the driver was called already */
        bool ok;
        enum spm_sync how;
        int targets[TWIN_STREAMS]; /* ends to be executed */
        int target_count;
};

struct pending_request {
        bool used;
        struct spm_request request;
        int pool;
        int stream;
        int steps;
};

/* What a program of a profile may do besides the ordinary. */
enum {
        OPS_CAPTURES = 1,
        OPS_STREAMS_END = 2,
        OPS_EXPORTS = 4,
        OPS_POOLS_END = 8, /* and contexts */
        OPS_ALL = 15,
        OPS_BIG = 16,     /* ten times the blocks, fifteen times the memory, rarely checked */
        OPS_WATCHED = 32, /* what is submitted is announced */
        OPS_LAYOUT = 64,  /* pools have layouts, and get others */
};

/* The first byte narrows the program down, so that streams meet at the same memory, and calls at
 * the same event, more often. */
struct profile {
        int pools[4]; /* to choose from */
        int sizes;    /* how many, from the front of the list */
        int streams[8];
        int stream_count;
        int events;
        int whole;      /* of 8 calls, how many concern a whole context */
        unsigned extra; /* OPS_... */
};

struct magazine {
        struct spm_magazine *it; /* NULL: none */
        int pool;
        int stream;
        bool retired;
};

struct ops {
        struct world world;
        const struct profile *profile;
        size_t host_allocs;
        struct block blocks[BLOCKS];
        int block_count; /* that the program may hold */
        struct call calls[CALLS];
        struct pending_request requests[REQUESTS];
        struct ops_result *result;
        const struct ops_options *options;
        uint64_t used[WORLD_POOLS]; /* what the program holds, as it counts itself */
        uint64_t count[WORLD_POOLS];
        uint64_t used_high[WORLD_POOLS];
        uint64_t count_high[WORLD_POOLS];
        struct magazine magazines[MAGAZINES];
        uint64_t time;  /* nanoseconds */
        int first_size; /* of the list: sizes are counted from there */
        struct spm_allocation last_freed;
        bool tainted[WORLD_EVENTS]; /* for ever: whoever records it now says nothing */
        uint64_t freed_until[2];    /* when the last block was freed that R1 is about; by context */
};

#define OPS_NO_CAUSE ((struct world_cause){.self = TWIN_NONE})

static inline uint64_t ops_mix(uint64_t hash, uint64_t number)
{
        return (hash ^ number) * 0x100000001b3u + (hash >> 29);
}

/** ops_choose_profile() - the first choice; ops_set_up(): false if the host is short of memory. */
void ops_choose_profile(struct ops *ops);
bool ops_set_up(struct ops *ops);

/* choices */

int ops_choose(struct ops *ops, int count);

/** ops_may_use() - may the program use the stream now? On the legacy stream not while a blocking
 * one captures. */
bool ops_may_use(const struct ops *ops, int stream);

/** ops_announce() - the program is about to submit something to @stream. */
void ops_announce(struct ops *ops, int stream);

/** ops_forget_announced() - streams of a context have to be announced again. */
void ops_forget_announced(struct ops *ops, int context);

/** ops_note_freed(), ops_note_early() - the blocks that R1 is about. */
void ops_note_freed(struct ops *ops, const struct spm_allocation *allocation, int pool);
void ops_note_early(struct ops *ops, const struct spm_allocation *allocation, int pool);
void ops_blur(struct ops *ops, int context);
void ops_blur_others(struct ops *ops, int context);
void op_work(struct ops *ops);

/** ops_choose_number() - any stream of the profile, or the one that took its place;
 * ops_choose_stream(): TWIN_NONE if the chosen one may not be used. */
int ops_choose_number(struct ops *ops);
int ops_choose_stream(struct ops *ops);

/** ops_choose_block() - NULL if the program has none. */
struct block *ops_choose_block(struct ops *ops);

struct world_cause ops_on_behalf_of(int stream);

/** ops_expect() - SPM_OK, or that the host is short of memory when it may be. */
void ops_expect(struct ops *ops, const char *what, enum spm_status status);

/** ops_add_stream() - false if the host is short of memory; nothing where there are enough. */
bool ops_add_stream(struct ops *ops, int context, enum spm_stream_kind kind);

static inline bool ops_is_async(int pool)
{
        return pool < 2;
}

/* Of a context's own, and for no stream. */
static inline bool ops_is_sync(int pool)
{
        return pool == 2 || pool == 3;
}

/* blocks */

/** ops_count_alloc() - a block was served, whether the program gets it or not. */
void ops_count_alloc(struct ops *ops, int pool, size_t size);

/** ops_own() - the program has got it, and may it? @stream: TWIN_NONE for a synchronous one. */
void ops_own(struct ops *ops, const struct spm_allocation *allocation, int pool, int stream);

/* magazines: NULL or false if there is none for it, or nothing comes of it */

struct spm_magazine *ops_magazine_of(struct ops *ops, int pool, int stream);
void ops_retire(struct ops *ops, int pool);
bool ops_magazine_alloc(struct ops *ops, int pool, int stream, size_t size);
bool ops_magazine_free(struct ops *ops, const struct block *block, int stream,
                       struct spm_allocation *freed);

/** ops_magazine_flush() - now and then the pool gets what waits in that of a synchronous one. */
void ops_magazine_flush(struct ops *ops, int pool);

/** ops_install() - the pool gets a layout, or none. */
void ops_install(struct ops *ops, int pool);

/* what a step may be */

void op_magazine(struct ops *ops);

void op_alloc(struct ops *ops);
void op_continue(struct ops *ops);
void op_use(struct ops *ops);
void op_free(struct ops *ops);
void op_bad_free(struct ops *ops);
void op_export(struct ops *ops);
void op_end(struct ops *ops);
void op_taint(struct ops *ops);
void op_replace_event(struct ops *ops);
void op_capture(struct ops *ops);
void op_stream(struct ops *ops);
void op_pool(struct ops *ops);
void op_tick(struct ops *ops);
void op_layout(struct ops *ops);
void op_remove_context(struct ops *ops);
void op_destroy_pool(struct ops *ops);
void ops_begin_call(struct ops *ops, enum call_kind kind);
void ops_end_call(struct ops *ops, struct call *call);

#endif
