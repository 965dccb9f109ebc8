/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_STATE_H
#define SPM_STATE_H

/*
 * State -- everything a model knows
 *
 * Owned by model.c; the modules below it work on the part that bears their
 * name. Nothing is guarded here: the caller serialises.
 */

#include <streampool/model.h>

#include "host.h"
#include "table.h"
#include "tree.h"

struct spm_block;
struct spm_snapshot;
struct spm_stamp_state;

struct spm_model {
        struct spm_config config;

        /* table.c: of a table that became empty, for the next one */
        void *spare_table;
        void *spare_buckets;

        /* subject.c */
        struct spm_table contexts;
        struct spm_table streams;
        struct spm_table events;
        uint64_t proofs; /* grows when more is known to be complete by the program (H_sync) */

        /* order.c */
        struct spm_snapshot *snapshots; /* unused ones, linked by next */

        /* stamp.c */
        struct spm_table stamps;
        struct spm_stamp_state *dropped; /* finished, not yet reported by SPM_ACT_DROP */
        struct spm_stamp_state **dropped_end;
        struct spm_stamp_state *spare_stamps; /* unused records, linked by next */
        unsigned int spare_stamp_count;

        /* pool.c */
        struct spm_table pools;
        unsigned int closed_pools; /* destroyed, and still holding memory */

        /* segment.c */
        struct spm_table segments;
        struct spm_tree areas;   /* segments by base */
        struct spm_tree live;    /* live blocks by address */
        struct spm_block *spare; /* records without memory, linked by next */
        unsigned int spares;
        size_t blocks;       /* records with memory */
        uint64_t next_base;  /* of a made-up segment */
        uint64_t generation; /* of the latest allocation */

        /* limbo.c */
        struct spm_block *strays; /* pending blocks whose lane could not be had */

        /* check.c */
        size_t unchecked; /* steps since the last check of a debug build */
};

#endif
