/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STREAMPOOL_LAYOUT_H
#define STREAMPOOL_LAYOUT_H

/*
 * Layout -- how a pool cuts up its memory, if not as the default heap does
 *
 * A pool without a layout is one heap: best fit over all of its memory, segments that move, slabs
 * for what is small. That is the right one nearly always, and the other ones are measured against
 * it (tests/bench). A layout replaces it by an ordered list of shelves. Each takes blocks up to
 * some size, and has pages for them: a page is a segment of the pool that is never joined with its
 * neighbour. The first shelf that takes a size serves it, and if that is full, the next that does
 * (a spill).
 *
 *   sliced      pages of one size, cut into slices: first fit, joined again when they are free.
 *               Right where a cap has to hold whatever happens, or where short-lived small blocks
 *               are to be kept away from the rest
 *   exclusive   a block has a page to itself, and the smallest that fits is reused; pages that
 *               stay idle are given back after so many allocations. Right where sizes recur, a
 *               device cannot use a part of a buffer, or memory is to follow the program down
 *   direct      a page of exactly the size, for blocks of exactly that size. Right for a few large
 *               blocks of the same sizes again and again
 *   persistent  likewise, beside the list, for what is to stay: weights, caches. Right where
 *               long-lived blocks would otherwise pin pages among the short-lived
 *
 * A layout decides where a block lies, and when segments are obtained and given back. Stream
 * order, readiness, questions, waits, figures, tallies and the caller's actions are those of any
 * pool. Small blocks have no slabs in it, and its threads no magazines; a search walks the pages of
 * a shelf. Pages are whole grains (struct spm_pool_config): sizes of pages, and of blocks that
 * have a page to themselves, are rounded up to that, slices to the pool's alignment. (C6)
 *
 * What a pool's configuration says of growth, and of what is given back, does nothing while it has
 * a layout: growth, segment_size, initial_size, small_size, decay, keep and the release threshold.
 * Its max_size counts, and so do pending_limit, quarantine and alignments. Idle pages go by
 * spm_trim(), and before a request is refused; those that no shelf wants at synchronisations, too.
 *
 * Caps are those of one pool. The model has one pool for all streams of a device, so a cap is one
 * of the device, and not of each stream. (C7)
 *
 * Dry run (C40, C41): a pool whose provider is SPM_PROVIDER_MODEL takes the same layout, and
 * replays a program's calls without a driver; pages_peak of its shelves is what a cap needs. Of a
 * recorded program (STREAMPOOL_RECORD), `streampool plan` does that with several layouts, and finds
 * the smallest cap or limit of each.
 *
 * Sources: C and a number are here a rule of layouts, those of tests/rules/README.md, not of
 * captures as in model.h.
 *
 * Units are bytes. Threads and ownership are those of model.h: what is passed in is copied.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/action.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* what a layout is */

enum spm_shelf_kind {
        SPM_SHELF_SLICED,
        SPM_SHELF_EXCLUSIVE,
        SPM_SHELF_DIRECT,
        SPM_SHELF_PERSISTENT, /* in answers only: every layout has one, beside its list */
};

/* What the persistent shelf serves (C32). */
enum spm_persistent {
        SPM_PERSISTENT_ENABLED,    /* what is allocated inside a window, spm_persistent_enter() */
        SPM_PERSISTENT_SIZE_MATCH, /* that, and whatever has the size of one of its pages */
        SPM_PERSISTENT_DISABLED,   /* nothing: windows do not count */
        SPM_PERSISTENT_ENFORCED,   /* everything: windows do not count */
};

struct spm_shelf_config {
        enum spm_shelf_kind kind;
        /* SLICED. Without a cap, a block is also taken that is larger than a slice and leaves less
         * than a fifth of a page. (C12) */
        uint64_t page;
        uint64_t slice; /* the largest, at most a page; 0: a page (C11) */
        uint64_t cap;   /* so many whole pages as fit; 0: none (C8) */
        bool shrink;    /* a cap below a page makes the page smaller, and is no mistake (C9) */
        /* EXCLUSIVE. A new page is as large as the blocks are on average, or the block. (C18) */
        uint64_t max;    /* the largest block (C23) */
        uint64_t period; /* allocations of the pool, after which an idle page goes; 0: never. It is
                          * looked at five times in each, and goes when it was idle five times in a
                          * row, or once if it has never been used again. (C20, C21) */
        /* DIRECT */
        uint64_t reclaim; /* a watermark: idle pages go before the shelf grows above it; what is
                           * needed is served in any case. 0: none (C26, C27) */
};

#define SPM_SHELVES_MAX 254   /* (C5) */
#define SPM_PAGES_MAX   65535 /* of a shelf with a cap (C5) */

/* Lists that are made of one number, the size of the largest block they serve. */
enum spm_preset {
        SPM_PRESET_NONE,
        SPM_PRESET_SUBSLICES, /* sliced shelves, and an exclusive one for the largest (C3) */
        SPM_PRESET_EXCLUSIVE, /* 24 exclusive shelves (C4) */
};

#define SPM_PRESET_MAX ((uint64_t)1 << 30) /* where the text does not say */

struct spm_layout {
        enum spm_preset preset; /* that it was made of, and of which number */
        uint64_t preset_max;
        enum spm_persistent persistent;
        unsigned int count;
        struct spm_shelf_config shelves[SPM_SHELVES_MAX];
};

/* errors */

enum spm_layout_fault {
        SPM_LAYOUT_FINE,
        /* of a layout: permanent */
        SPM_LAYOUT_EMPTY_POOL_LIST,
        SPM_LAYOUT_TOO_MANY_POOLS,         /* value against limit */
        SPM_LAYOUT_ZERO_SIZE,              /* of field */
        SPM_LAYOUT_SLICE_LARGER_THAN_PAGE, /* value against limit, like the next two */
        SPM_LAYOUT_CAP_SMALLER_THAN_PAGE,
        SPM_LAYOUT_TOO_MANY_PAGES,
        SPM_LAYOUT_SIZE_TOO_LARGE,     /* of field: beyond what can be counted */
        SPM_LAYOUT_NO_SUCH_KIND,       /* of a shelf, or of persistent memory: field, value */
        SPM_LAYOUT_PRESET_UNAVAILABLE, /* field: its name; value below limit: nothing to make a
                                        * list of */
        /* of a text: permanent; the word is at that place */
        SPM_LAYOUT_UNKNOWN_WORD,
        SPM_LAYOUT_UNKNOWN_FIELD,
        SPM_LAYOUT_BAD_SIZE,
        SPM_LAYOUT_TWICE, /* the field was said before */
        SPM_LAYOUT_MIXED, /* a preset is a list by itself */
        /* of an installation */
        SPM_LAYOUT_POOLS_IN_USE, /* value: bytes that are live; limit: freed, and pending or sealed;
                                  * transient */
        SPM_LAYOUT_UNSUPPORTED,  /* field: what the pool has that no layout can have; permanent */
        /* of an allocation */
        SPM_LAYOUT_TOO_BIG, /* value against limit, the largest that is taken; permanent */
        SPM_LAYOUT_CAPACITY_EXCEEDED, /* value: asked for; limit: of the shelf; in_use; transient */
};

struct spm_layout_error {
        enum spm_layout_fault fault;
        unsigned int index; /* of the shelf, from 0 */
        const char *field;  /* as in the text; never NULL with a fault that names one; static */
        uint64_t value;
        uint64_t limit;
        uint64_t in_use;
        size_t at;         /* in the text */
        char word[24];     /* its beginning */
        unsigned int line; /* from 1, as the column is; of a shelf, where it begins. 0: the text has
                            * one line, or no line is at fault */
        size_t column;
};

/** spm_layout_explain() - one line: the shelf, its line in a text of several, the field, the value
 * and the rule; it always ends in a zero, and what does not fit is left out. */
void spm_layout_explain(const struct spm_layout_error *error, char *text, size_t size);

/** spm_layout_is_transient() - may the same call succeed later, as nothing is wrong with it? (C35)
 */
bool spm_layout_is_transient(enum spm_layout_fault fault);

/**
 * spm_layout_check() - can it be installed, as far as the pool does not matter?
 * @error: return argument, written on failure; may be NULL
 *
 * Return: SPM_OK, SPM_E_INVALID_VALUE. (C5)
 */
enum spm_status spm_layout_check(const struct spm_layout *layout, struct spm_layout_error *error);

/**
 * spm_layout_preset() - the list of a preset
 * @max: the largest block, in bytes
 *
 * SUBSLICES: for k = 1, 2, ... pages of @max / 4^k down to 32 MiB, with slices up to a page / 2^k,
 * the smallest first; then one exclusive shelf up to @max, with a period of 5000 * (1 + @max / 1
 * GiB). EXCLUSIVE: 24 sizes from 32 KiB to @max, each as many times the one before; the period of
 * each as above. Sizes that come out the same are one.
 *
 * Return: SPM_OK, SPM_E_INVALID_VALUE (PRESET_UNAVAILABLE: @max is below 128 MiB, or not above 32
 * KiB).
 */
enum spm_status spm_layout_preset(enum spm_preset preset, uint64_t max, struct spm_layout *layout,
                                  struct spm_layout_error *error);

/**
 * spm_layout_parse() - a layout from text, as of STREAMPOOL_LAYOUT
 *
 *   sliced:page=32M,slice=1M,cap=256M;exclusive:max=512M,period=5000;direct:reclaim=2G
 *   subslices            the preset, of 1 GiB; subslices=4G is of that
 *   exclusive            likewise, as there is nothing behind it but perhaps =4G
 *   ...;persistent=size-match
 *
 * Shelves are separated by semicolons, fields by commas; blanks around them do not count. Sizes
 * are whole numbers, with K, M, G or T for powers of 1024. Of a sliced shelf page, slice, cap and
 * the word shrink, of an exclusive one max and period, of a direct one reclaim can be said.
 * persistent is enabled, size-match, disabled or enforced.
 *
 * A text may have several lines, as in a file (STREAMPOOL_LAYOUT=@FILE). What # begins is a comment
 * up to the end of its line. The end of a line is as good as a semicolon, unless a comma, a colon
 * or a = wants more:
 *
 *   # what comes and goes
 *   sliced: page=32M, slice=1M,
 *           cap=256M
 *   direct                        # the rest
 *
 * Return: SPM_OK, SPM_E_INVALID_VALUE; then @layout is not written.
 */
enum spm_status spm_layout_parse(const char *text, struct spm_layout *layout,
                                 struct spm_layout_error *error);

/** spm_layout_print() - the text that is parsed to the same layout. Return: false if it does not
 * fit; what is there ends in a zero. */
bool spm_layout_print(const struct spm_layout *layout, char *text, size_t size);

/* layouts of pools */

/**
 * spm_pool_install() - a pool gets a layout, or another one
 * @layout: NULL for the default heap again; copied
 * @error:  return argument, written when a layout is refused (not with SPM_E_UNKNOWN,
 *          SPM_E_HOST_MEMORY); may be NULL
 * @actions: RELEASE of what is idle
 *
 * At any time, if nothing of the pool is live, pending or known outside. What is persistent does
 * not count (C36) and is taken along; but the default heap takes nothing along. High marks of
 * shelves, and their warnings, start anew (C37). A pool that is refused is as it was, but for what
 * was idle.
 *
 * Return: SPM_OK; SPM_AGAIN: carry out, call again; SPM_E_INVALID_VALUE (spm_layout_check());
 * SPM_E_IN_USE (POOLS_IN_USE, transient: C34); SPM_E_UNSUPPORTED (the pool has magazines that
 * were not retired, spm_magazine_retire(), or a large_align above its grain: permanent, C35);
 * SPM_E_UNKNOWN; SPM_E_HOST_MEMORY.
 */
enum spm_status spm_pool_install(struct spm_model *model, spm_pool pool,
                                 const struct spm_layout *layout, struct spm_layout_error *error,
                                 struct spm_actions *actions);

/**
 * spm_pool_may_install() - likewise, and nothing changes: for who installs in all of several pools
 * or in none
 *
 * Return: SPM_OK: but for SPM_E_HOST_MEMORY an installation succeeds, and asks for no action;
 * SPM_AGAIN: something that is idle has to be given back first (spm_trim()); else as above.
 */
enum spm_status spm_pool_may_install(const struct spm_model *model, spm_pool pool,
                                     const struct spm_layout *layout,
                                     struct spm_layout_error *error);

/** spm_pool_layout() - as it was installed. Return: SPM_OK, SPM_E_UNKNOWN (pool, or it has none).
 */
enum spm_status spm_pool_layout(const struct spm_model *model, spm_pool pool,
                                struct spm_layout *layout);

/**
 * spm_layout_refusal() - why the latest request that a layout has refused was: TOO_BIG, with
 * SPM_E_TOO_BIG (C2, C23), or CAPACITY_EXCEEDED, with SPM_E_OUT_OF_MEMORY, of the last shelf that
 * takes the size (C14). FINE if none was. Return: SPM_OK, SPM_E_UNKNOWN (pool, or no layout).
 */
enum spm_status spm_layout_refusal(const struct spm_model *model, spm_pool pool,
                                   struct spm_layout_error *error);

/** spm_persistent_enter(), spm_persistent_leave() - a window in which what is allocated from the
 * pool is persistent. Windows nest; to leave none does nothing. While a capture is open on the
 * pool's device (or in its context), what is entered or left counts from its end on. Return:
 * SPM_OK, SPM_E_UNKNOWN (pool, or it has no layout). (C30) */
enum spm_status spm_persistent_enter(struct spm_model *model, spm_pool pool);
enum spm_status spm_persistent_leave(struct spm_model *model, spm_pool pool);

/* figures */

struct spm_shelf_stats {
        enum spm_shelf_kind kind;
        uint64_t live_blocks; /* of these, what was asked for, and to the next alignment (C43) */
        uint64_t requested;
        uint64_t padding;
        uint64_t reserved; /* whole pages */
        uint64_t page;     /* of a sliced shelf, as it fits cap and grain; else 0 */
        uint64_t pages;
        uint64_t pages_most; /* by its cap; UINT64_MAX without one */
        /* Since the installation. */
        uint64_t pages_peak;     /* (C17) */
        uint64_t pages_unmapped; /* given back */
        uint64_t largest_alloc;  /* as asked for (C17) */
        uint64_t spills; /* blocks that the next shelves have served, as this one was full (C38) */
};

/** spm_layout_stats() - of the shelf @index; that after the last is the persistent one. Return:
 * SPM_OK, SPM_E_INVALID_VALUE (index), SPM_E_UNKNOWN (pool, or it has no layout). (C39) */
enum spm_status spm_layout_stats(const struct spm_model *model, spm_pool pool, unsigned int index,
                                 struct spm_shelf_stats *stats);

/** spm_layout_warn() - the next shelf of the pool that has spilled and was not told of: true once a
 * shelf and installation. @index: return argument (C38) */
bool spm_layout_warn(struct spm_model *model, spm_pool pool, unsigned int *index);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
