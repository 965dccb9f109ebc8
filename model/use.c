/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Use -- which streams work with a block, and what has to wait for them
 *
 * A use is an operation of its stream and has a point of it like any other, so
 * whether somebody has to wait for it is a question to the clocks (order.h).
 */

#include "use.h"

#include <assert.h>

#include "front.h"
#include "ledger.h"
#include "limbo.h"

/* identity and life */

struct spm_block_id spm_block_id(const struct spm_allocation *allocation)
{
        return (struct spm_block_id){
                .address = allocation->address,
                .generation = allocation->generation,
                .stream = allocation->stream,
                .device = allocation->device,
        };
}

bool spm_life_may_become(enum spm_life from, enum spm_life to)
{
        static const bool edges[4][4] = {
                [SPM_LIFE_LIVE] = {[SPM_LIFE_RETIRED] = true},
                [SPM_LIFE_RETIRED] = {[SPM_LIFE_QUARANTINED] = true, [SPM_LIFE_FREED] = true},
                [SPM_LIFE_QUARANTINED] = {[SPM_LIFE_FREED] = true},
        };

        return (unsigned int)from < 4 && (unsigned int)to < 4 && edges[from][to];
}

const char *spm_life_name(enum spm_life life)
{
        static const char *const names[] = {
                [SPM_LIFE_LIVE] = "live",
                [SPM_LIFE_RETIRED] = "retired",
                [SPM_LIFE_QUARANTINED] = "quarantined",
                [SPM_LIFE_FREED] = "freed",
        };

        return (unsigned int)life < 4 ? names[life] : "unknown life";
}

enum spm_status spm_life_of(struct spm_model *model, struct spm_block_id id, enum spm_life *life)
{
        struct spm_entry *entry = spm_ledger_find(model, id.generation);
        enum spm_status status;

        if (entry && entry->id.address != id.address)
                return SPM_E_INVALID_VALUE;
        if (entry) {
                *life = spm_entry_look(model, entry);
                return SPM_OK;
        }
        status = spm_ledger_live(model, id, &entry);
        if (status != SPM_E_USE_AFTER_FREE)
                return status;
        *life = SPM_LIFE_FREED;
        return SPM_OK;
}

bool spm_pool_tracks_uses(const struct spm_model *model, spm_pool id)
{
        const struct spm_pool_state *pool = spm_pool_find(model, id);

        return pool && pool->config.track_uses;
}

/* what has to be waited for */

/* Whatever the legacy stream gets next waits for all blocking streams of its context (H6). */
static bool is_behind_as_legacy(const struct spm_model *model,
                                const struct spm_stream_state *stream, spm_stream id)
{
        const struct spm_stream_state *other;

        if (stream->kind != SPM_STREAM_LEGACY)
                return false;
        other = spm_subject_stream(model, id);
        return other && other->context == stream->context && spm_stream_waits_for_legacy(other);
}

/* Does the next operation of @stream run after that one? */
static bool is_seen(const struct spm_model *model, const struct spm_stream_state *stream,
                    spm_stream id, uint64_t position)
{
        struct spm_point point = {id, position};

        return !position || spm_point_is_done(model, point, false) ||
               spm_stream_covers(stream, point) || is_behind_as_legacy(model, stream, id);
}

/* Of a stream's uses the last that @access has to be behind; 0 if none. */
static uint64_t use_last(const struct spm_usage *usage, enum spm_use_access access)
{
        if (access == SPM_USE_READ || usage->write > usage->read)
                return usage->write;
        return usage->read;
}

unsigned int spm_use_collect(const struct spm_model *model, const struct spm_entry *entry,
                             enum spm_use_access access, const struct spm_stream_state *stream,
                             struct spm_use_wait *waits, unsigned int room)
{
        unsigned int count = 0;
        uint32_t i;

        for (i = 0; i < entry->usage_count; i++) {
                const struct spm_usage *usage = &entry->usages[i];
                uint64_t position = use_last(usage, access);

                if (is_seen(model, stream, usage->stream, position))
                        continue;
                if (count < room)
                        waits[count] = (struct spm_use_wait){usage->stream, position};
                count++;
        }
        return count;
}

/* The live block and the stream of a use. Return: as of use.h. */
static enum spm_status find_use(const struct spm_model *model, struct spm_block_id id,
                                enum spm_use_access access, spm_stream stream_id,
                                struct spm_entry **entry, struct spm_stream_state **stream)
{
        if (!access || (unsigned int)access > SPM_USE_FREE)
                return SPM_E_INVALID_VALUE;
        *stream = spm_subject_usable(model, stream_id);
        if (!*stream)
                return SPM_E_UNKNOWN;
        return spm_ledger_live(model, id, entry);
}

enum spm_status spm_use_waits(const struct spm_model *model, struct spm_block_id id,
                              enum spm_use_access access, spm_stream stream_id,
                              struct spm_use_wait *waits, unsigned int room, unsigned int *count)
{
        struct spm_stream_state *stream;
        struct spm_entry *entry;
        enum spm_status status = find_use(model, id, access, stream_id, &entry, &stream);

        if (status)
                return status;
        *count = spm_use_collect(model, entry, access, stream, waits, room);
        return SPM_OK;
}

/* uses */

/* A write stands for whatever its stream is behind (B31). */
static void replace_seen(const struct spm_model *model, struct spm_entry *entry,
                         const struct spm_stream_state *stream)
{
        uint32_t i;

        for (i = 0; i < entry->usage_count; i++) {
                struct spm_usage *usage = &entry->usages[i];

                if (is_seen(model, stream, usage->stream, usage->read))
                        usage->read = 0;
                if (is_seen(model, stream, usage->stream, usage->write))
                        usage->write = 0;
        }
}

void spm_use_note(struct spm_model *model, struct spm_entry *entry, struct spm_usage *usage,
                  enum spm_use_access access, const struct spm_stream_state *stream,
                  uint64_t position)
{
        if (access & SPM_USE_WRITE) {
                replace_seen(model, entry, stream);
                usage->write = position;
        } else {
                usage->read = position;
        }
        usage->serial = ++model->ledger->serial;
        spm_entry_tidy(entry);
}

/* The work is an operation of its stream; on the legacy one every blocking stream is behind it from
 * now on (H6), unless there is no memory to remember that. */
uint64_t spm_use_submit(struct spm_model *model, struct spm_stream_state *stream)
{
        uint64_t position = spm_stream_submit(stream);
        struct spm_snapshot *behind;

        if (stream->kind != SPM_STREAM_LEGACY)
                return position;
        behind = spm_snapshot_new(model);
        if (behind && spm_stream_snapshot(model, stream, &behind->clock))
                spm_stream_learn(model, stream, &behind->clock);
        spm_snapshot_free(model, behind);
        return position;
}

enum spm_status spm_use_record(struct spm_model *model, struct spm_block_id id,
                               enum spm_use_access access, spm_stream stream_id)
{
        struct spm_stream_state *stream;
        struct spm_usage *usage;
        struct spm_entry *entry;
        enum spm_status status = find_use(model, id, access, stream_id, &entry, &stream);

        if (access == SPM_USE_FREE)
                return SPM_E_INVALID_VALUE;
        if (status)
                return status;
        usage = spm_entry_usage(model, entry, stream_id);
        if (!usage)
                return SPM_E_HOST_MEMORY;
        spm_use_note(model, entry, usage, access, stream, spm_use_submit(model, stream));
        SPM_CHECK(model);
        return SPM_OK;
}

enum spm_status spm_use_prepare(struct spm_model *model, struct spm_block_id id,
                                enum spm_use_access access, spm_stream stream_id,
                                struct spm_use *use)
{
        struct spm_stream_state *stream;
        struct spm_usage *usage;
        struct spm_entry *entry;
        enum spm_status status = find_use(model, id, access, stream_id, &entry, &stream);

        if (status)
                return status;
        if (access != SPM_USE_FREE) {
                usage = spm_entry_usage(model, entry, stream_id);
                if (!usage)
                        return SPM_E_HOST_MEMORY;
                usage->prepared++;
        }
        use->id = id;
        use->access = access;
        use->stream = stream_id;
        use->serial = model->ledger->serial;
        return SPM_OK;
}

/*
 * The stream was made to wait for what the use was told to. What was used since is not among that,
 * and hides an earlier use by the same stream. Without memory less is known than might be.
 */
void spm_use_learn(struct spm_model *model, const struct spm_entry *entry,
                   struct spm_stream_state *stream, enum spm_use_access access, uint64_t serial)
{
        struct spm_snapshot *behind = spm_snapshot_new(model);
        struct spm_lane *lane;
        uint32_t i;

        for (i = 0; behind && i < entry->usage_count; i++) {
                const struct spm_usage *usage = &entry->usages[i];
                uint64_t position = use_last(usage, access);

                if (usage->serial <= serial && !is_seen(model, stream, usage->stream, position))
                        spm_clock_raise(model, &behind->clock,
                                        (struct spm_point){usage->stream, position});
        }
        if (behind && behind->clock.count) {
                spm_stream_learn(model, stream, &behind->clock);
                for (lane = stream->lanes; lane; lane = lane->next)
                        spm_limbo_reopen(model, lane);
        }
        spm_snapshot_free(model, behind);
}

struct spm_usage *spm_use_unprepare(struct spm_model *model, struct spm_entry *entry,
                                    spm_stream stream)
{
        struct spm_usage *usage = spm_entry_usage(model, entry, stream);

        assert(usage && usage->prepared);
        usage->prepared--;
        return usage;
}

enum spm_status spm_use_finish(struct spm_model *model, struct spm_use *use, bool ok)
{
        struct spm_stream_state *stream;
        struct spm_entry *entry;
        struct spm_usage *usage;
        enum spm_status status = spm_ledger_live(model, use->id, &entry);

        assert(use->access != SPM_USE_FREE);
        if (status)
                return status;
        usage = spm_use_unprepare(model, entry, use->stream);
        stream = spm_subject_usable(model, use->stream);
        if (!ok || !stream) {
                spm_entry_tidy(entry);
                return stream ? SPM_OK : SPM_E_UNKNOWN;
        }
        spm_use_learn(model, entry, stream, use->access, use->serial);
        spm_use_note(model, entry, usage, use->access, stream, spm_use_submit(model, stream));
        SPM_CHECK(model);
        return SPM_OK;
}

enum spm_status spm_use_free(struct spm_model *model, struct spm_use *use, bool ok,
                             struct spm_allocation *freed, struct spm_actions *actions)
{
        struct spm_stream_state *stream = spm_subject_usable(model, use->stream);
        struct spm_entry *entry;
        enum spm_status status = spm_ledger_live(model, use->id, &entry);

        assert(use->access == SPM_USE_FREE);
        actions->count = 0;
        if (status || !ok)
                return status;
        if (!stream)
                return SPM_E_UNKNOWN;
        spm_use_learn(model, entry, stream, use->access, use->serial);
        return spm_free(model, use->id.address, use->id.generation, SPM_FREE_ASYNC, use->stream,
                        freed, actions);
}

/* questions */

enum spm_status spm_use_count(const struct spm_model *model, struct spm_block_id id,
                              unsigned int *count)
{
        struct spm_entry *entry;
        enum spm_status status = spm_ledger_live(model, id, &entry);
        uint32_t i;

        if (status)
                return status;
        *count = 0;
        for (i = 0; i < entry->usage_count; i++)
                *count += (entry->usages[i].read != 0) + (entry->usages[i].write != 0);
        return SPM_OK;
}

enum spm_status spm_use_range(const struct spm_model *model, struct spm_block_id id,
                              uint64_t address, size_t bytes)
{
        struct spm_entry *entry;
        enum spm_status status = spm_ledger_live(model, id, &entry);

        if (status)
                return status;
        if (address < id.address || address - id.address > entry->size ||
            bytes > entry->size - (address - id.address))
                return SPM_E_OUT_OF_BOUNDS;
        return SPM_OK;
}
