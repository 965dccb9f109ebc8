/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_H
#define BENCH_H

/*
 * Bench -- a model with a context and a few streams, and a patient caller
 *
 * Actions are carried out at once and logged, one letter each, so that a test
 * can say in a word what it expects to be asked:
 *
 *   R record   W wait on a stream   C wait of the context   P poll   p poll a stream
 *   H host wait   h bounded   b brief   S context sync   G grow   D drop
 *   X release   M release of what moves
 */

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/model.h>

#define KIB        ((size_t)1 << 10)
#define MIB        ((size_t)1 << 20)

#define BENCH_SEEN 4096

struct bench {
        struct spm_model *model;
        spm_context context;
        spm_stream legacy;
        spm_stream blocking;
        spm_stream s; /* these two do not block */
        spm_stream t;
        spm_pool async;
        spm_pool sync;
        uint64_t next_base; /* of memory that is handed out when a pool grows, if it may be anywhere
                             */
        bool no_memory;     /* growth is refused */
        bool thrifty;       /* growth is refused but as the last resort */
        int grants;         /* so many growths are granted, the rest refused; 0: all */
        bool device_done;   /* what polls are told */
        spm_stamp done_below; /* or of older stamps only */
        bool no_records;      /* records fail */
        spm_stamp stamp;      /* the last one recorded */
        spm_stream stamped;   /* and where; 0 is the whole context */
        uint64_t grown_at;    /* of the last growth: where; 0: anywhere */
        size_t grown;         /* ... bytes asked for */
        size_t preferred;
        /* GROW and RELEASE since the log started anew */
        struct spm_action seen[BENCH_SEEN];
        unsigned int seen_count;
        spm_stamp waited[8]; /* for on the host, since the log started anew */
        unsigned int waited_count;
        char log[256];
};

extern struct bench bench;

/* Fixtures. */
void bench_set_up(void);
void bench_tear_down(void);

spm_pool bench_pool(struct spm_pool_config config);

/** bench_add_blocking() - another blocking stream in the context. */
spm_stream bench_add_blocking(void);

/** bench_give() - memory on the caller's own account. Return: where. */
uint64_t bench_give(spm_pool pool, size_t size);

/** bench_do() - carry out and log; @request may be NULL. */
void bench_do(const struct spm_actions *actions, struct spm_request *request);

/** bench_try() - an allocation with all its steps; the log starts anew. */
enum spm_status bench_try(spm_pool pool, spm_stream stream, size_t size, bool may_wait,
                          struct spm_allocation *allocation);

/** bench_alloc() - one that has to succeed. Return: its address. */
uint64_t bench_alloc(spm_pool pool, spm_stream stream, size_t size);

/** bench_alloc_filling() - likewise, and @magazine is filled on the way, and let go if it may. */
struct spm_allocation bench_alloc_filling(spm_pool pool, spm_stream stream, size_t size,
                                          struct spm_magazine *magazine);

/** bench_check() - spm_check() has nothing to say. */
void bench_check(void);

/** bench_climb() - one on s that may be refused. Return: its address; 0 if it was. */
uint64_t bench_climb(spm_pool pool, size_t size);

/** bench_seen() - bytes of all that was seen of the kind. */
size_t bench_seen(enum spm_action_kind kind);

/** bench_free() - one that has to succeed; @stream 0 is cuMemFree(). The log starts anew. */
void bench_free(uint64_t address, spm_stream stream);

spm_event bench_record(spm_stream stream);
void bench_wait(spm_stream stream, spm_event event);

/** bench_watch() - submissions are announced, and nothing was submitted before. */
void bench_watch(void);

/** bench_submit() - announce one; the log starts anew. */
void bench_submit(spm_stream stream);

/** bench_sync() - the log starts anew. */
void bench_sync(enum spm_scope_kind kind, uint32_t id, enum spm_sync how);

struct spm_stats bench_stats(spm_pool pool);

#endif
