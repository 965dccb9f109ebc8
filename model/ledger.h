/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_LEDGER_H
#define SPM_LEDGER_H

/*
 * Ledger -- what is remembered of the allocations of pools that track uses
 *
 * Records of blocks are joined and split, and have no room for more than every
 * pool needs. So an allocation of a pool that tracks uses has an entry beside
 * its block, found by its generation. It stays for a while when the block was
 * freed, since the generation can still be asked about. A model without such
 * pools has no ledger, and pays nothing for it.
 *
 * An entry is made by an allocation and ended by a free, an undo, or the end
 * of its pool; none of the latter needs memory.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/model.h>

#include "pool.h"
#include "record.h"
#include "state.h"
#include "subject.h"

/* Freed allocations that are told apart from what was freed and complete long ago. */
#define SPM_LEDGER_RETIRED 4096

#define SPM_ENTRY_FEW      4

/* What one stream has done with a block: its latest read and write, 0 for none. */
struct spm_usage {
        spm_stream stream;
        uint32_t prepared; /* uses between prepare and finish, which keep it here */
        uint64_t read;
        uint64_t write;
        uint64_t serial; /* of the later of them */
};

struct spm_tag_state;

struct spm_entry {
        struct spm_entry *next; /* of the same bucket; spare */
        struct spm_block_id id;
        enum spm_life life;
        struct spm_block *block;
        uint32_t block_life; /* of its state's word: a later one is somebody else's */
        size_t size;         /* as asked for */
        struct spm_tag_state *tag;

        struct spm_usage *usages; /* LIVE: few, or memory of its own */
        uint32_t usage_count;
        uint32_t usage_room;
        union {
                struct spm_usage few[SPM_ENTRY_FEW];
                struct spm_point points[SPM_BLOCK_DEPS]; /* freed: what its memory waits for */
        };
        uint32_t point_count;
        struct spm_entry *older; /* freed */
        struct spm_entry *newer;
};

struct spm_ledger {
        struct spm_entry **buckets; /* by generation; a power of two of them */
        size_t bucket_count;
        size_t count;
        struct spm_entry *spare;
        struct spm_entry *oldest; /* freed */
        struct spm_entry *newest;
        size_t retired;
        uint64_t serial; /* of the latest use */

        /* tag.c */
        struct spm_table tags;
        struct spm_tag_state *untagged; /* what allocations without a tag are counted by */
        struct spm_tally total;         /* of all tags */
        uint64_t peaks;                 /* how often the total has had a new high */
};

/** spm_ledger_open() - there is one. Return: false without memory. */
bool spm_ledger_open(struct spm_model *model);

/** spm_ledger_forget() - the model ends. */
void spm_ledger_forget(struct spm_model *model);

/** spm_ledger_reserve() - an entry is at hand. Return: false without memory. */
bool spm_ledger_reserve(struct spm_model *model);

/** spm_ledger_start() - the entry of a block that was just served. */
void spm_ledger_start(struct spm_model *model, struct spm_block *block, struct spm_tag_state *tag);

/** spm_ledger_alloc() - spm_alloc() in a pool that tracks uses: it is served as usual, and then the
 * block gets an entry. */
enum spm_status spm_ledger_alloc(struct spm_model *model, struct spm_pool_state *pool,
                                 struct spm_request *request, struct spm_allocation *allocation,
                                 struct spm_actions *actions);

/** spm_ledger_find() - the entry of a generation, or NULL. */
struct spm_entry *spm_ledger_find(const struct spm_model *model, uint64_t generation);

/** spm_ledger_live() - the entry of a live allocation. Return: as of the functions of use.h. */
enum spm_status spm_ledger_live(const struct spm_model *model, struct spm_block_id id,
                                struct spm_entry **entry);

/** spm_ledger_free() - the block of a pool that tracks uses is LOOSE, and what it waits for by its
 * free is set; it waits for its uses, too. @stream: that it was freed on, or NULL */
void spm_ledger_free(struct spm_model *model, struct spm_block *block,
                     const struct spm_stream_state *stream);

/** spm_ledger_drop() - a live block ends without a free: with its pool, or because it is undone. */
void spm_ledger_drop(struct spm_model *model, const struct spm_block *block, bool undone);

/** spm_ledger_sweep() - forget freed entries that are complete: a few of the oldest, or all. */
void spm_ledger_sweep(struct spm_model *model, bool all);

/** spm_entry_look() - the life of an entry as of now. */
enum spm_life spm_entry_look(const struct spm_model *model, struct spm_entry *entry);

/** spm_entry_usage() - that of @stream, which is made if need be. Return: NULL without memory. */
struct spm_usage *spm_entry_usage(struct spm_model *model, struct spm_entry *entry,
                                  spm_stream stream);

/** spm_entry_tidy() - forget usages that say nothing. */
void spm_entry_tidy(struct spm_entry *entry);

/** spm_ledger_check() - its invariants. Return: NULL, or the name of the first that is broken. */
const char *spm_ledger_check(const struct spm_model *model);

#endif
