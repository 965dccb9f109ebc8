/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Block wait -- what a freed block waits for
 *
 * A block that is freed in the order of a stream waits for that free, and for
 * what the free itself does not stand behind: points that the block was born
 * with, and earlier work that a free which the driver does not see orders for
 * nobody. One that is freed in nobody's order waits for its birth, or for its
 * context (block.c).
 */

#include <assert.h>

#include "front.h"
#include "state.h"
#include "subject.h"

/* What a block waits for, while it is put together; only the count is set at first, since to clear
 * the rest takes longer than what follows. */
struct deps {
        struct spm_point points[SPM_BLOCK_DEPS];
        unsigned int count;
};

static void add_dep(struct deps *deps, struct spm_point point)
{
        unsigned int i;

        for (i = 0; i < deps->count; i++)
                if (deps->points[i].stream == point.stream) {
                        if (deps->points[i].position < point.position)
                                deps->points[i].position = point.position;
                        return;
                }
        assert(deps->count < SPM_BLOCK_DEPS);
        deps->points[deps->count++] = point;
}

/* Without memory for what it waits for, a block is never served again: nothing else is safe. */
static void set_deps(struct spm_model *model, struct spm_block *block, const struct deps *deps)
{
        if (!spm_block_set_deps(model, block, deps->points, deps->count)) {
                spm_block_drop_deps(model, block);
                block->exported = true;
        }
}

/*
 * A free is ordered behind what its context waits for and, on a blocking stream, behind the legacy
 * stream's earlier work. One that the driver does not see submits nothing, so the host need not be
 * behind that when it waits for the stream, and it has to be observed by itself: on an H200 with
 * driver 580, cuStreamQuery and cuStreamSynchronize of an idle blocking stream answer at once while
 * the legacy stream is busy, although an event recorded on the stream waits.
 */
static void wait_for_unseen(struct deps *deps, const struct spm_stream_state *stream)
{
        struct spm_context_state *context = stream->context;
        struct spm_stream_state *line = context->line;

        if (context->waited_at > line->done_poll) {
                add_dep(deps, (struct spm_point){line->object.id, spm_stream_submit(line)});
        } else if (spm_stream_waits_for_legacy(stream)) {
                struct spm_stream_state *other =
                        context->legacy_stream ? context->legacy_stream : line;

                add_dep(deps, (struct spm_point){other->object.id, spm_stream_submit(other)});
        }
}

/* What it was born with counts unless the stream has waited for it (A6). */
void spm_block_wait(struct spm_model *model, struct spm_block *block,
                    struct spm_stream_state *stream, uint64_t position)
{
        struct spm_stream_state *birth;
        struct deps deps;
        unsigned int i;

        deps.count = 0;
        add_dep(&deps, (struct spm_point){stream->object.id, position});
        for (i = 0; i < block->dep_count; i++) {
                struct spm_point born = spm_block_dep(block, i);

                if (!spm_stream_has_waited(stream, born) && !spm_point_is_done(model, born, false))
                        add_dep(&deps, born);
        }
        /* Of the points that are implied where it was allocated, a magazine remembers none. */
        birth = block->dep_count == 1 && !spm_stream_has_waited(stream, spm_block_dep(block, 0))
                        ? spm_subject_stream(model, block->streams[0])
                        : NULL;
        if (birth)
                wait_for_unseen(&deps, birth);
        wait_for_unseen(&deps, stream);
        set_deps(model, block, &deps);
        stream->open_blocks++;
        stream->open_bytes += block->size;
}

bool spm_block_wait_more(struct spm_model *model, struct spm_block *block, struct spm_point point)
{
        struct deps deps;
        unsigned int i;

        deps.count = 0;
        for (i = 0; i < block->dep_count; i++)
                add_dep(&deps, spm_block_dep(block, i));
        if (deps.count == SPM_BLOCK_DEPS)
                return false;
        add_dep(&deps, point);
        return spm_block_set_deps(model, block, deps.points, deps.count);
}

/* Of the points that are implied where it was allocated, a magazine remembers none. */
void spm_block_wait_for_birth(struct spm_model *model, struct spm_block *block)
{
        struct spm_stream_state *stream = spm_subject_stream(model, block->streams[0]);
        struct deps deps;
        unsigned int i;

        deps.count = 0;
        for (i = 0; i < block->dep_count; i++)
                add_dep(&deps, spm_block_dep(block, i));
        if (stream)
                wait_for_unseen(&deps, stream);
        set_deps(model, block, &deps);
}
