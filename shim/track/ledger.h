/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_LEDGER_H
#define SP_LEDGER_H

/*
 * Ledger -- what does the program hold, and what did it give back wrongly?
 *
 * The entries of what the driver serves. What the pools serve the model knows
 * (held.h); questions and figures here are about both.
 *
 * Callers keep this order around a free (E2):
 *
 *   sp_ledger_take()      before the driver hears of it: the address may be
 *                         given out again before the driver's call returns
 *   sp_ledger_freed()     it succeeded, or
 *   sp_ledger_put_back()  it failed, and
 *   sp_ledger_bad_free()  if it failed for what was passed: what was wrong?
 *
 * The last three are sp_ledger_free_ended() for most callers.
 *
 * Nothing here calls the driver and nothing here can fail for the caller: when
 * the host's memory runs out, an entry is not written and is counted as such;
 * what it counts for against a limit, it counts for ever.
 * All functions take the model's lock, and may be called from any thread that
 * does not hold it. So figures of memory from both sources are of one moment.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/pool.h>

enum sp_kind {
        SP_KIND_DEVICE,     /* cuMemAlloc */
        SP_KIND_ASYNC,      /* cuMemAllocAsync, cuMemAllocFromPoolAsync */
        SP_KIND_PITCH,      /* cuMemAllocPitch */
        SP_KIND_MANAGED,    /* cuMemAllocManaged */
        SP_KIND_ARRAY,      /* cuArrayCreate, cuArray3DCreate */
        SP_KIND_MIPMAP,     /* cuMipmappedArrayCreate */
        SP_KIND_VMM,        /* cuMemCreate: the physical memory */
        SP_KIND_PINNED,     /* cuMemAllocHost, cuMemHostAlloc */
        SP_KIND_REGISTERED, /* cuMemHostRegister: memory of the program's own */
        SP_KIND_IMPORTED,   /* a pointer to memory of somebody else */
        SP_KIND_SHARED,     /* cuMemImportFromShareableHandle: a handle to such memory */
        SP_KIND_MAPPED,     /* cuMemMap: an address range, no memory of its own */
        SP_KIND_COUNT,
};

/* An address means something in one space only; the space follows from the kind. Unified
 * addressing makes equal numbers in the first two the same memory; elsewhere they have nothing to
 * do with each other. */
enum sp_space {
        SP_SPACE_DEVICE,
        SP_SPACE_HOST,
        SP_SPACE_ARRAY,
        SP_SPACE_MIPMAP,
        SP_SPACE_HANDLE, /* cuMemCreate's */
        SP_SPACE_MAPPED, /* start of a mapping */
        SP_SPACE_ORPHAN, /* physical memory without a handle, by sequence: it is mapped still */
        SP_SPACE_COUNT,
};

struct sp_ledger_entry {
        uint64_t address;
        size_t bytes;    /* as asked for */
        size_t reserved; /* as taken, 0 if not known */
        size_t counted;  /* against the limit of @device, until the entry's memory is gone */
        enum sp_kind kind;
        bool pooled;       /* served by us */
        int device;        /* -1 if not known */
        uint32_t context;  /* sp_context.model; 0 if not known */
        uint64_t stream;   /* its handle; of a pooled one the model's number */
        const void *site;  /* return address into the program */
        uint64_t sequence; /* of the allocation in this process, from 1 */
        uint64_t shadow;   /* the caller's own */
};

/* entries */

/**
 * sp_ledger_add() - an allocation succeeded
 *
 * If @entry->site is NULL it is sp_caller, if @entry->sequence is 0 the next
 * number. An entry that lives at the same address was freed where we did not
 * see it, and is retired as lost (B10). Memory that is imported again counts
 * its imports, and lives until it is freed as often.
 */
void sp_ledger_add(const struct sp_ledger_entry *entry);

/** sp_ledger_take() - remove a live entry; false if there is none. */
bool sp_ledger_take(enum sp_space space, uint64_t address, struct sp_ledger_entry *entry);
void sp_ledger_put_back(const struct sp_ledger_entry *entry);

/** sp_ledger_is_fatal() - would the driver die of cuMemFree(@address)? It does where the memory was
 * of cuMemAlloc and cuMemFreeAsync has freed it (580.159 on an H200); other second frees it
 * refuses. */
bool sp_ledger_is_fatal(uint64_t address);

/** sp_ledger_freed() - what was taken is gone; @function, a literal, is named if it is freed again.
 */
void sp_ledger_freed(const struct sp_ledger_entry *entry, const char *function);

/** sp_ledger_keep_counted() - what was taken stays where it is: what it counts for against a limit,
 * which is returned, is the caller's to give back. */
size_t sp_ledger_keep_counted(const struct sp_ledger_entry *entry);

/**
 * sp_ledger_free_ended() - the rest of a free, by what it returned
 * @entry:  what was taken, or NULL if nothing was
 * @result: CUresult as the program sees it
 *
 * A free that comes when the driver has shut down (CUDA_ERROR_DEINITIALIZED) counts as made: the
 * program did give the memory back.
 */
void sp_ledger_free_ended(const struct sp_ledger_entry *entry, enum sp_space space,
                          uint64_t address, const char *function, int result);

/** sp_ledger_find() - a live entry or block that starts at @address; false if there is none. */
bool sp_ledger_find(enum sp_space space, uint64_t address, struct sp_ledger_entry *entry);

/** sp_ledger_context_gone() - what dies with a context is released, not leaked (L2, E8). Contexts
 * that end because the process does release nothing: what is held then has leaked. */
void sp_ledger_context_gone(uint32_t context);

/* physical memory (E14): lives while it has a handle or a mapping */

/** sp_ledger_retain() - cuMemRetainAllocationHandle returned @handle for @address. */
void sp_ledger_retain(uint64_t handle, uint64_t address);
void sp_ledger_map(uint64_t address, size_t bytes, uint64_t handle);

/** sp_ledger_unmap() - every mapping within the range has ended. */
void sp_ledger_unmap(uint64_t address, size_t bytes);

/** sp_ledger_below_peak() - with @more bytes, what is cuMemCreate memory on @device below the most
 * that ever was? */
uint64_t sp_ledger_below_peak(int device, uint64_t more);

/* misuse */

/* Worst first. */
enum sp_finding_kind {
        SP_FINDING_USE_AFTER_FREE,   /* has no block if that was long ago, or there never was one */
        SP_FINDING_OUT_OF_BOUNDS,    /* past the end of its block */
        SP_FINDING_USE_BEFORE_ALLOC, /* used on a stream that is not behind its allocation */
        SP_FINDING_RACE,             /* used on two streams, and neither use is behind the other */
        SP_FINDING_OVERLAP,          /* copied to where it is copied from, but for some bytes */
        SP_FINDING_OVERRUN,          /* written past its end, as was seen when it was freed */
        SP_FINDING_FREE_BEFORE_USE,  /* freed on a stream that is not behind a use */
        SP_FINDING_FREE_BEFORE_ALLOC,   /* freed on a stream that is not behind its allocation */
        SP_FINDING_SYNC_FREE,           /* freed at once, and a use is not complete */
        SP_FINDING_DOUBLE_FREE,         /* has no block if that was long ago */
        SP_FINDING_WRONG_KIND,          /* alive, but not freed by this function */
        SP_FINDING_INTERIOR,            /* inside a live allocation */
        SP_FINDING_AFTER_CONTEXT,       /* its context was destroyed before */
        SP_FINDING_FOREIGN,             /* never seen */
        SP_FINDING_ARGUMENT_AFTER_FREE, /* given to a kernel, which may not have used it */
        SP_FINDING_COUNT,
};

/* What is not behind what. */
enum sp_earlier_kind {
        SP_EARLIER_NONE,
        SP_EARLIER_ALLOC,
        SP_EARLIER_READ,
        SP_EARLIER_WRITE,
        SP_EARLIER_ARGUMENT, /* it was given, and perhaps not used */
};

/* A block that an address was in, at another time. */
struct sp_reuse {
        uint64_t address;
        size_t bytes;
        enum sp_kind kind;
        const void *site;     /* of the allocation */
        const char *freed_by; /* NULL while it lives */
        const void *freed_at;
};

struct sp_finding {
        enum sp_finding_kind kind;
        uint64_t address; /* of the first time */
        int result;       /* what the program was told; of what is noted before, 0 */
        const char *function;
        const void *site;
        uint64_t times;               /* from the same place, about the same place */
        bool has_block;               /* the next three mean something */
        struct sp_ledger_entry block; /* the allocation it is about */
        const char *freed_by;         /* NULL while it lives */
        const void *freed_at;
        /* Of what was freed before: who has its address now, or had it before @block. */
        bool has_reuse;
        struct sp_reuse reuse;
        /* Of uses; else 0. */
        uint64_t touched; /* bytes in all */
        bool is_write;
        bool is_argument; /* given, and perhaps not used */
        /* Of the order of streams; else 0. Handles of streams, 0 for the host. */
        enum sp_earlier_kind earlier;
        uint64_t stream, earlier_stream;
        const char *earlier_by;
        const void *earlier_at;
        /* OUT_OF_BOUNDS and OVERRUN; else 0. */
        uint64_t outside; /* the first byte that is not the block's, from its start */
        uint64_t beyond;  /* how many bytes behind the block's end the last one is */
        /* OVERLAP; else 0. */
        uint64_t source; /* first byte that is read */
        uint64_t shared; /* first byte that is both read and written */
        /* ARGUMENT_AFTER_FREE; else 0. */
        unsigned int argument; /* which one, from 1 */
        const char *kernel;    /* kept for ever, mangled if it is of C++; NULL if not known */
};

/** sp_finding_is_use() - of memory that was touched? The others are of frees. */
static inline bool sp_finding_is_use(const struct sp_finding *finding)
{
        return finding->kind <= SP_FINDING_OVERLAP;
}

/** sp_finding_is_order() - of the order of streams? Noted before the driver hears of the call. */
static inline bool sp_finding_is_order(const struct sp_finding *finding)
{
        return finding->earlier != SP_EARLIER_NONE;
}

/** sp_finding_is_argument() - of a launch? */
static inline bool sp_finding_is_argument(const struct sp_finding *finding)
{
        return finding->kind == SP_FINDING_ARGUMENT_AFTER_FREE;
}

/** sp_ledger_overrun() - what lies behind @block was written, as is seen at its free by @function
 * at @site; @outside and @beyond as in the finding. */
void sp_ledger_overrun(const struct sp_ledger_entry *block, const char *function, const void *site,
                       uint64_t outside, uint64_t beyond);

/**
 * sp_ledger_bad_free() - a free was refused
 * @result: CUresult as the program sees it
 *
 * Records a finding if @result blames what was passed, not the state of the
 * device. A null pointer is none. Which finding it is, is said from what the
 * ledger knows. An address that was given out again and is freed by who had it
 * before cannot be told from a free of the new block: that is refused nothing.
 * When the new block's owner frees it, too, the earlier life is told.
 */
void sp_ledger_bad_free(enum sp_space space, uint64_t address, const char *function, int result);

/** sp_ledger_heed - is told of each finding, where it is made and without the model's lock; its
 * `times` are all so far. Written once, before the shim is on; NULL if nobody wants to know. */
extern void (*sp_ledger_heed)(const struct sp_finding *finding);

/* uses: whose memory is it? @finding is given its block and, where it was freed, its kind and how
 * that came */

enum sp_pooled {
        SP_POOLED_NOT,  /* not the pools' */
        SP_POOLED_LIVE, /* in a block */
        SP_POOLED_FREE, /* in memory of the pools, and in no block */
};

enum sp_pooled sp_ledger_pooled(uint64_t address, struct sp_finding *finding);

/** sp_ledger_block() - of the driver's: the live one that starts at @base. False for what is no
 * device memory in one piece of a known size. */
bool sp_ledger_block(uint64_t base, struct sp_finding *finding);

/** sp_ledger_was_unmapped() - did the program map memory at exactly @base, and unmap it? What the
 * driver has there is what we keep (vmm.h). */
bool sp_ledger_was_unmapped(uint64_t base, struct sp_finding *finding);

/** sp_ledger_was_freed() - was device memory at @address freed, whoever had served it? Nothing is
 * there now that the driver knows of. */
bool sp_ledger_was_freed(uint64_t address, struct sp_finding *finding);

/** sp_ledger_add_finding() - counts it, and lists it unless it is one that is there. */
void sp_ledger_add_finding(const struct sp_finding *finding);

/** sp_ledger_find_lost() - an entry in whose memory the driver has served a later one was freed
 * where we did not see it, and counts as lost. Walks over all entries: for a report. */
void sp_ledger_find_lost(void);

/* figures: each call returns false if another thread keeps the ledger for longer than a while */

struct sp_kind_totals {
        struct spm_tally tally;
        uint64_t released; /* ended with their context */
        uint64_t lost;     /* freed where we did not see it */
        uint64_t pooled;   /* of those made: served by us */
};

#define SP_LEDGER_DEVICES  64  /* those above share the last one's figures */
#define SP_LEDGER_FINDINGS 256 /* different ones; more are only counted */

struct sp_ledger_totals {
        struct sp_kind_totals kind[SP_KIND_COUNT];
        struct spm_tally device[SP_LEDGER_DEVICES]; /* device memory of all kinds */
        uint64_t findings[SP_FINDING_COUNT];        /* every time, also when the list is full */
        uint64_t unwritten;                         /* no host memory for the entry */
        uint64_t unlisted;                          /* findings that did not fit the list */
};

bool sp_ledger_totals(struct sp_ledger_totals *totals);

/** sp_ledger_each_live() - @visit must not call the ledger, nor the model. */
bool sp_ledger_each_live(void (*visit)(const struct sp_ledger_entry *entry, void *user),
                         void *user);
bool sp_ledger_each_finding(void (*visit)(const struct sp_finding *finding, void *user),
                            void *user);

/** sp_ledger_reset_peaks() - every high becomes the current value. */
void sp_ledger_reset_peaks(void);

/* words */

const char *sp_kind_name(enum sp_kind kind);            /* "device", "pinned", ... */
const char *sp_finding_name(enum sp_finding_kind kind); /* "double_free", ... */

/** sp_kind_leaks() - is memory of this kind the program's to give back? */
bool sp_kind_leaks(enum sp_kind kind);

#endif
