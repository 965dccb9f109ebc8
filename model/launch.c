/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launch -- all uses of one submission, checked together and recorded together
 *
 * What may fail does so in the preflight: there each use is prepared, so that
 * the commit, when the work is in the queue already, needs no memory.
 */

#include <string.h>

#include "check.h"
#include "host.h"
#include "use.h"

#define FEW 8

enum stage { OPEN, CHECKED, COMMITTED };

struct spm_launch {
        struct spm_model *model;
        spm_stream stream;
        bool strict;
        enum stage stage;
        struct spm_use *uses;
        unsigned int count;
        unsigned int room;
        unsigned int prepared; /* of these, from the first on */
        unsigned int untracked;
        struct spm_use_wait *waits;
};

/* life */

enum spm_status spm_launch_new(struct spm_model *model, spm_stream stream, bool strict,
                               struct spm_launch **result)
{
        struct spm_launch *launch;

        if (!spm_subject_usable(model, stream))
                return SPM_E_UNKNOWN;
        launch = spm_host_new(model, sizeof(*launch));
        if (!launch)
                return SPM_E_HOST_MEMORY;
        launch->model = model;
        launch->stream = stream;
        launch->strict = strict;
        *result = launch;
        return SPM_OK;
}

static void unprepare(struct spm_launch *launch)
{
        while (launch->prepared)
                spm_use_finish(launch->model, &launch->uses[--launch->prepared], false);
}

void spm_launch_free(struct spm_launch *launch)
{
        if (!launch)
                return;
        unprepare(launch);
        spm_host_free(launch->model, launch->waits);
        spm_host_free(launch->model, launch->uses);
        spm_host_free(launch->model, launch);
}

unsigned int spm_launch_untracked(const struct spm_launch *launch)
{
        return launch->untracked;
}

/* uses */

static bool make_room(struct spm_launch *launch)
{
        unsigned int room = launch->room ? 2 * launch->room : FEW;
        struct spm_use *more;

        if (launch->count < launch->room)
                return true;
        more = spm_host_new(launch->model, room * sizeof(*more));
        if (!more)
                return false;
        if (launch->count)
                memcpy(more, launch->uses, launch->count * sizeof(*more));
        spm_host_free(launch->model, launch->uses);
        launch->uses = more;
        launch->room = room;
        return true;
}

enum spm_status spm_launch_add(struct spm_launch *launch, struct spm_block_id id,
                               enum spm_use_access access)
{
        struct spm_use *use;
        unsigned int i;

        if (launch->stage != OPEN)
                return SPM_E_MISUSE;
        if (!access || (unsigned int)access > SPM_USE_READ_WRITE)
                return SPM_E_INVALID_VALUE;
        for (i = 0; i < launch->count; i++) {
                use = &launch->uses[i];
                if (use->id.generation != id.generation || use->id.address != id.address)
                        continue;
                use->access = (enum spm_use_access)(use->access | access);
                return SPM_OK;
        }
        if (!make_room(launch))
                return SPM_E_HOST_MEMORY;
        use = &launch->uses[launch->count++];
        use->id = id;
        use->access = access;
        use->stream = launch->stream;
        return SPM_OK;
}

/* preflight */

/* Uses that a permissive launch leaves out go to the end, and are not counted any more. */
static void leave_out(struct spm_launch *launch, unsigned int i)
{
        struct spm_use use = launch->uses[i];

        launch->uses[i] = launch->uses[--launch->count];
        launch->uses[launch->count] = use;
}

static enum spm_status prepare(struct spm_launch *launch)
{
        unsigned int all = launch->count;
        enum spm_status status = SPM_OK;

        while (status == SPM_OK && launch->prepared < launch->count) {
                struct spm_use *use = &launch->uses[launch->prepared];

                status = spm_use_prepare(launch->model, use->id, use->access, use->stream, use);
                if (status == SPM_OK) {
                        launch->prepared++;
                } else if (!launch->strict && (status == SPM_E_MISUSE || status == SPM_E_FOREIGN)) {
                        leave_out(launch, launch->prepared);
                        status = SPM_OK;
                }
        }
        if (status == SPM_OK) {
                launch->untracked = all - launch->count;
                return SPM_OK;
        }
        unprepare(launch);
        launch->count = all;
        return status;
}

/* Of one stream only the last point has to be waited for. */
static unsigned int merge(struct spm_use_wait *waits, unsigned int count, unsigned int more)
{
        unsigned int merged = count;
        unsigned int i;
        unsigned int j;

        for (i = count; i < count + more; i++) {
                for (j = 0; j < merged && waits[j].stream != waits[i].stream; j++)
                        ;
                if (j == merged)
                        waits[merged++] = waits[i];
                else if (waits[j].position < waits[i].position)
                        waits[j].position = waits[i].position;
        }
        return merged;
}

/* Of all blocks together there are no more than this. */
static unsigned int most_waits(const struct spm_launch *launch)
{
        unsigned int most = 0;
        unsigned int i;

        for (i = 0; i < launch->count; i++) {
                struct spm_entry *entry;

                if (spm_ledger_live(launch->model, launch->uses[i].id, &entry) == SPM_OK)
                        most += entry->usage_count;
        }
        return most;
}

static bool collect(struct spm_launch *launch, unsigned int *count)
{
        const struct spm_stream_state *stream = spm_subject_usable(launch->model, launch->stream);
        unsigned int room = most_waits(launch);
        unsigned int i;

        *count = 0;
        launch->waits = spm_host_new(launch->model, (room + 1) * sizeof(*launch->waits));
        if (!launch->waits)
                return false;
        for (i = 0; i < launch->count; i++) {
                const struct spm_use *use = &launch->uses[i];
                struct spm_entry *entry;

                if (spm_ledger_live(launch->model, use->id, &entry) == SPM_OK)
                        *count = merge(launch->waits, *count,
                                       spm_use_collect(launch->model, entry, use->access, stream,
                                                       launch->waits + *count, room - *count));
        }
        return true;
}

enum spm_status spm_launch_preflight(struct spm_launch *launch, const struct spm_use_wait **waits,
                                     unsigned int *count)
{
        enum spm_status status;
        unsigned int found;

        if (launch->stage != OPEN)
                return SPM_E_MISUSE;
        if (!spm_subject_usable(launch->model, launch->stream))
                return SPM_E_UNKNOWN;
        status = prepare(launch);
        if (status)
                return status;
        if (!collect(launch, &found)) {
                unprepare(launch);
                launch->count += launch->untracked;
                launch->untracked = 0;
                return SPM_E_HOST_MEMORY;
        }
        launch->stage = CHECKED;
        *waits = launch->waits;
        *count = found;
        return SPM_OK;
}

/* commit */

/* The stream has learnt all waits before the first use is noted, since a write of the launch stands
 * for them. All uses are one operation. */
static enum spm_status note_all(struct spm_launch *launch, struct spm_stream_state *stream)
{
        enum spm_status status = SPM_OK;
        struct spm_entry *entry;
        uint64_t position;
        unsigned int i;

        for (i = 0; i < launch->count; i++)
                if (spm_ledger_live(launch->model, launch->uses[i].id, &entry) == SPM_OK)
                        spm_use_learn(launch->model, entry, stream, launch->uses[i].access,
                                      launch->uses[i].serial);
        position = spm_use_submit(launch->model, stream);
        for (i = 0; i < launch->count; i++) {
                const struct spm_use *use = &launch->uses[i];
                enum spm_status found = spm_ledger_live(launch->model, use->id, &entry);

                if (found == SPM_OK)
                        spm_use_note(launch->model, entry,
                                     spm_use_unprepare(launch->model, entry, use->stream),
                                     use->access, stream, position);
                else if (status == SPM_OK)
                        status = found;
        }
        return status;
}

enum spm_status spm_launch_commit(struct spm_launch *launch)
{
        struct spm_stream_state *stream = spm_subject_usable(launch->model, launch->stream);
        enum spm_status status;

        if (launch->stage != CHECKED)
                return SPM_E_MISUSE;
        launch->stage = COMMITTED;
        if (!stream) {
                unprepare(launch);
                return SPM_E_UNKNOWN;
        }
        status = note_all(launch, stream);
        launch->prepared = 0;
        SPM_CHECK(launch->model);
        return status;
}
