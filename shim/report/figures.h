/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_FIGURES_H
#define SP_FIGURES_H

/*
 * Figures -- what the pools tell the report
 *
 * The report knows neither pools nor driver. Whoever does fills this in.
 */

#include <stdbool.h>
#include <stdint.h>
#include <streampool/model.h>

#include "track/layout.h"

#define SP_FIGURES_POOLS   64
#define SP_FIGURES_SHELVES 128
#define SP_FIGURES_LAYOUTS 9   /* that of all, and of so many devices less one */
#define SP_FIGURES_LAYOUT  512 /* of its text */

enum sp_pool_class {
        SP_CLASS_SYNC,  /* serves cuMemAlloc */
        SP_CLASS_ASYNC, /* serves cuMemAllocAsync */
        SP_CLASS_HOST,  /* serves pinned host memory */
        SP_CLASS_COUNT
};

/* Bytes where nothing else is said. */
struct sp_pool_figures {
        spm_pool pool; /* 0: the sum of pools that are no more */
        int device;
        enum sp_pool_class class;
        uint64_t requested, requested_high; /* in use by the program, as it asked */
        uint64_t rounded;                   /* the same, as taken from the pool */
        uint64_t reserved, reserved_high;   /* obtained from the driver */
        uint64_t pending;                   /* freed, the device may still be using it */
        uint64_t ready;                     /* free for anyone */
        uint64_t largest_ready;
        uint64_t live;          /* allocations */
        uint64_t allocs, frees; /* calls */
        uint64_t hits;          /* of @allocs: from memory that had been freed before */
        uint64_t grows, releases, moves;
};

/* Of a pool with a layout, each pool of its list that was ever asked. */
struct sp_shelf_figures {
        unsigned int pool;  /* index of the pool here */
        unsigned int index; /* in the list */
        struct spm_shelf_stats stats;
};

struct sp_layout_figures {
        int device;                   /* SP_LAYOUT_ALL: those of which nothing else is said */
        enum sp_layout_source source; /* who said it */
        char text[SP_FIGURES_LAYOUT]; /* empty for the default heap */
};

struct sp_figures {
        bool observing; /* the pools are a mirror: the driver served everything */
        bool off;       /* gave up on the way, see the log */
        const char *
                backing; /* what pools are made of, "mapped chunks"; NULL if nothing was obtained */
        const char *driver_path; /* NULL if not known */
        int driver_version;      /* as of cuDriverGetVersion; 0 if not known */
        unsigned int pools;
        unsigned int pools_left_out; /* that did not fit */
        struct sp_pool_figures pool[SP_FIGURES_POOLS];
        unsigned int layouts; /* in force, that of all first; 0: nothing was said */
        struct sp_layout_figures layout[SP_FIGURES_LAYOUTS];
        unsigned int shelves;
        unsigned int shelves_left_out;
        struct sp_shelf_figures shelf[SP_FIGURES_SHELVES];
};

/**
 * sp_route_figures() - fill in @figures, which is all zero
 *
 * Calls no driver, and gives up on locks that are not free after a while: then there are fewer
 * pools.
 */
void sp_route_figures(struct sp_figures *figures);

/** sp_route_survey() - how sizes and free memory are spread in the pool behind @figures. Walks all
 * of its blocks, under the model's lock. False if it is no more, or somebody keeps the lock. */
bool sp_route_survey(const struct sp_pool_figures *figures, struct spm_survey *survey);

/** sp_route_stream_handle() - of a stream that the model knows by @number; 0 once it is destroyed.
 */
uint64_t sp_route_stream_handle(uint64_t number);

/** sp_route_reset_peaks() - of all pools. */
void sp_route_reset_peaks(void);

#endif
