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

#include "area.h"
#include "host.h"
#include "table.h"

struct spm_ledger;
struct spm_records;
struct spm_snapshot;
struct spm_stamp_state;

struct spm_model {
        struct spm_config config;
        uint64_t host_bytes; /* of all records; see host.c */

        /* table.c: of a table that became empty, for the next one */
        void *spare_table;
        void *spare_buckets;

        /* subject.c */
        struct spm_table contexts;
        struct spm_table streams;
        unsigned int stream_count; /* that the program can use */
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
        unsigned int unfinished;   /* pools of which not all was given back that should be */
        unsigned int closed_pools; /* destroyed, and still holding memory */

        /* area.c */
        struct spm_area **areas; /* ascending by base */
        size_t area_count;
        size_t area_room;
        struct spm_area *near; /* of the latest free, or NULL */

        /* record.c */
        struct spm_records *records;
        struct spm_block *spare; /* records without memory, linked by next */
        unsigned int spares;
        struct spm_extra *extra; /* spare */
        unsigned int extras;
        size_t blocks; /* records with memory */

        /* magazine.c */
        struct spm_magazine *orphans; /* their pools are gone */

        /* slab.c */
        struct spm_slab *slabs; /* spare */

        /* segment.c */
        struct spm_table segments;
        uint64_t next_base; /* of a made-up range */

        /* ledger.c */
        struct spm_ledger *ledger; /* NULL until a pool tracks uses */

        /* serve.c */
        uint64_t generation; /* of the latest allocation */

        /* limbo.c */
        struct spm_block *strays; /* pending blocks whose lane could not be had, linked by newer */

        /* tick.c */
        uint64_t now;

        /* check.c */
        size_t unchecked; /* steps since the last check of a debug build */
};

#endif
