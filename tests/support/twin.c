/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Twin -- what the device may do, by brute force
 */

#include "twin.h"

#include <stdlib.h>
#include <string.h>

static void set_add(struct twin_set *set, int node)
{
        set->words[node / 64] |= (uint64_t)1 << (node % 64);
}

static bool set_has(const struct twin_set *set, int node)
{
        return set->words[node / 64] >> (node % 64) & 1;
}

static void set_join(struct twin_set *set, const struct twin_set *other)
{
        size_t i;

        for (i = 0; i < sizeof(set->words) / sizeof(set->words[0]); i++)
                set->words[i] |= other->words[i];
}

void twin_init(struct twin *twin)
{
        int i;

        memset(twin, 0, sizeof(*twin));
        for (i = 0; i < TWIN_CONTEXTS; i++) {
                twin->contexts[i].legacy = TWIN_NONE;
                twin->contexts[i].legacy_stream = TWIN_NONE;
        }
}

bool twin_is_full(const struct twin *twin)
{
        return twin->count + 48 > TWIN_NODES;
}

void twin_add_stream(struct twin *twin, int stream, int context, enum spm_stream_kind kind)
{
        twin->streams[stream] = (struct twin_stream){
                .used = true,
                .context = context,
                .kind = kind,
                .end = TWIN_NONE,
                .virtual = TWIN_NONE,
        };
        if (kind == SPM_STREAM_LEGACY)
                twin->contexts[context].legacy_stream = stream;
}

static bool is_blocking(const struct twin_stream *stream)
{
        return stream->kind == SPM_STREAM_BLOCKING || stream->kind == SPM_STREAM_PER_THREAD;
}

static void run_after(struct twin *twin, struct twin_node *node, int other)
{
        if (other == TWIN_NONE)
                return;
        set_join(&node->real, &twin->nodes[other].real);
        set_join(&node->legal, &twin->nodes[other].legal);
}

/* The program may rely on the absorbed operations of @stream, and on what they waited for. */
static void may_assume(const struct twin *twin, struct twin_node *node, int stream)
{
        int i;

        for (i = 0; i < twin->count; i++)
                if (!twin->nodes[i].is_real && twin->nodes[i].stream == stream)
                        set_join(&node->legal, &twin->nodes[i].legal);
}

/* What an operation put at the end of @stream now would run after. */
static struct twin_node successor(struct twin *twin, int stream)
{
        const struct twin_stream *self = &twin->streams[stream];
        const struct twin_context *context = &twin->contexts[self->context];
        struct twin_node node = {0};
        int i;

        run_after(twin, &node, self->end);
        if (self->virtual != TWIN_NONE)
                set_join(&node.legal, &twin->nodes[self->virtual].legal);
        set_join(&node.real, &context->base);
        set_join(&node.legal, &context->assumed);
        if (is_blocking(self)) {
                run_after(twin, &node, context->legacy);
                if (context->legacy_stream != TWIN_NONE)
                        may_assume(twin, &node, context->legacy_stream);
        }
        if (self->kind != SPM_STREAM_LEGACY)
                return node;
        for (i = 0; i < TWIN_STREAMS; i++) {
                const struct twin_stream *other = &twin->streams[i];

                if (!other->used || other->context != self->context || !is_blocking(other))
                        continue;
                run_after(twin, &node, other->end);
                may_assume(twin, &node, i);
        }
        return node;
}

static int add(struct twin *twin, struct twin_node node, bool is_real)
{
        int id = twin->count;

        if (id >= TWIN_NODES)
                abort();
        node.is_real = is_real;
        node.executed = !is_real;
        node.time = ++twin->time;
        if (is_real)
                set_add(&node.real, id);
        set_add(&node.legal, id);
        twin->nodes[id] = node;
        twin->count++;
        return id;
}

static int put(struct twin *twin, int stream, struct twin_node node)
{
        struct twin_stream *self = &twin->streams[stream];
        int id = add(twin, node, true);

        self->end = id;
        if (self->kind == SPM_STREAM_LEGACY)
                twin->contexts[self->context].legacy = id;
        return id;
}

int twin_submit(struct twin *twin, int stream)
{
        return put(twin, stream, successor(twin, stream));
}

int twin_wait(struct twin *twin, int stream, int other)
{
        struct twin_node node = successor(twin, stream);

        run_after(twin, &node, other);
        return put(twin, stream, node);
}

int twin_record_context(struct twin *twin, int context)
{
        struct twin_node node = {0};
        int i;

        set_join(&node.real, &twin->contexts[context].base);
        set_join(&node.legal, &twin->contexts[context].assumed);
        for (i = 0; i < TWIN_STREAMS; i++) {
                const struct twin_stream *stream = &twin->streams[i];

                if (!stream->used || stream->context != context)
                        continue;
                run_after(twin, &node, stream->end);
                if (stream->virtual != TWIN_NONE)
                        set_join(&node.legal, &twin->nodes[stream->virtual].legal);
        }
        return add(twin, node, true);
}

int twin_pretend(struct twin *twin, int stream)
{
        struct twin_stream *self = &twin->streams[stream];
        struct twin_node node = successor(twin, stream);
        int id = add(twin, node, false);

        twin->nodes[id].stream = stream;
        self->virtual = id;
        return id;
}

void twin_wait_context(struct twin *twin, int context, int node)
{
        if (node != TWIN_NONE)
                set_join(&twin->contexts[context].base, &twin->nodes[node].real);
}

void twin_assume_context(struct twin *twin, int context, int node)
{
        if (node != TWIN_NONE)
                set_join(&twin->contexts[context].assumed, &twin->nodes[node].legal);
}

void twin_touch(struct twin *twin, int node, uint64_t owner, uint64_t from, uint64_t to)
{
        twin->nodes[node].owner = owner;
        twin->nodes[node].from = from;
        twin->nodes[node].to = to;
}

/* forgetting */

static void keep(bool kept[TWIN_NODES], int node)
{
        if (node >= 0)
                kept[node] = true;
}

/* The members of @set by their new numbers; those that are dropped are left out. */
static void renumber(struct twin_set *set, const int fresh[TWIN_NODES])
{
        struct twin_set old = *set;
        size_t i;

        *set = (struct twin_set){0};
        for (i = 0; i < sizeof(old.words) / sizeof(old.words[0]); i++)
                for (; old.words[i]; old.words[i] &= old.words[i] - 1) {
                        int node = (int)i * 64 + __builtin_ctzll(old.words[i]);

                        if (fresh[node] != TWIN_NONE)
                                set_add(set, fresh[node]);
                }
}

static void rename_node(int *name, const int fresh[TWIN_NODES])
{
        if (*name >= 0)
                *name = fresh[*name];
}

/* Each node that is kept moves down; the order stays one in which they can run. */
static void move_down(struct twin *twin, const bool kept[TWIN_NODES], int fresh[TWIN_NODES])
{
        int count = 0;
        int i;

        for (i = 0; i < twin->count; i++)
                fresh[i] = kept[i] || !twin->nodes[i].executed ? count++ : TWIN_NONE;
        for (i = 0; i < twin->count; i++) {
                if (fresh[i] == TWIN_NONE)
                        continue;
                renumber(&twin->nodes[i].real, fresh);
                renumber(&twin->nodes[i].legal, fresh);
                twin->nodes[fresh[i]] = twin->nodes[i];
        }
        twin->count = count;
}

void twin_forget(struct twin *twin, int *names[], int count)
{
        bool kept[TWIN_NODES] = {false};
        int fresh[TWIN_NODES];
        int i;

        for (i = 0; i < count; i++)
                keep(kept, *names[i]);
        for (i = 0; i < TWIN_STREAMS; i++) {
                keep(kept, twin->streams[i].used ? twin->streams[i].end : TWIN_NONE);
                keep(kept, twin->streams[i].used ? twin->streams[i].virtual : TWIN_NONE);
        }
        for (i = 0; i < TWIN_CONTEXTS; i++)
                keep(kept, twin->contexts[i].legacy);
        move_down(twin, kept, fresh);
        for (i = 0; i < count; i++)
                rename_node(names[i], fresh);
        for (i = 0; i < TWIN_STREAMS; i++) {
                rename_node(&twin->streams[i].end, fresh);
                rename_node(&twin->streams[i].virtual, fresh);
        }
        for (i = 0; i < TWIN_CONTEXTS; i++) {
                rename_node(&twin->contexts[i].legacy, fresh);
                renumber(&twin->contexts[i].base, fresh);
                renumber(&twin->contexts[i].assumed, fresh);
        }
}

/* device */

void twin_execute(struct twin *twin, int node)
{
        int i;

        if (node == TWIN_NONE)
                return;
        for (i = 0; i <= node; i++)
                if (set_has(&twin->nodes[node].real, i))
                        twin->nodes[i].executed = true;
}

void twin_step(struct twin *twin, int node)
{
        int i;

        /* Nodes are numbered in an order in which they can run, so the first can. */
        for (i = 0; i <= node; i++)
                if (set_has(&twin->nodes[node].real, i) && !twin->nodes[i].executed) {
                        twin->nodes[i].executed = true;
                        return;
                }
}

bool twin_is_executed(const struct twin *twin, int node)
{
        return node == TWIN_NONE || twin->nodes[node].executed;
}

void twin_execute_context(struct twin *twin, int context)
{
        int i;

        for (i = 0; i < twin->count; i++)
                if (set_has(&twin->contexts[context].base, i))
                        twin_execute(twin, i);
        for (i = 0; i < TWIN_STREAMS; i++)
                if (twin->streams[i].used && twin->streams[i].context == context)
                        twin_execute(twin, twin->streams[i].end);
}

/* order */

bool twin_answers_for(const struct twin *twin, int stream, int other)
{
        const struct twin_stream *self = &twin->streams[stream];
        const struct twin_stream *them = &twin->streams[other];

        if (stream == other)
                return true;
        return self->kind == SPM_STREAM_LEGACY && them->used && is_blocking(them) &&
               them->context == self->context;
}

bool twin_is_idle(const struct twin *twin, int stream)
{
        int i;

        for (i = 0; i < TWIN_STREAMS; i++)
                if (twin_answers_for(twin, stream, i) &&
                    !twin_is_executed(twin, twin->streams[i].end))
                        return false;
        return true;
}

void twin_finish(struct twin *twin, int stream)
{
        int i;

        for (i = 0; i < TWIN_STREAMS; i++)
                if (twin_answers_for(twin, stream, i))
                        twin_execute(twin, twin->streams[i].end);
}

bool twin_may_rely(const struct twin *twin, int stream, int node)
{
        struct twin_node next = successor((struct twin *)twin, stream);

        return node == TWIN_NONE || set_has(&next.legal, node);
}

int twin_conflict(const struct twin *twin, int stream, uint64_t owner, uint64_t from, uint64_t to)
{
        struct twin_node next = {0};
        int i;

        if (stream != TWIN_NONE)
                next = successor((struct twin *)twin, stream);
        for (i = 0; i < twin->count; i++) {
                const struct twin_node *node = &twin->nodes[i];

                if (!node->owner || node->owner == owner || node->executed)
                        continue;
                if (node->from < to && from < node->to && !set_has(&next.real, i))
                        return i;
        }
        return TWIN_NONE;
}

bool twin_depends_on_later(const struct twin *twin, int node, uint64_t time)
{
        int i;

        for (i = 0; i < twin->count; i++)
                if (set_has(&twin->nodes[node].real, i) && twin->nodes[i].owner &&
                    !twin->nodes[i].executed && twin->nodes[i].time > time)
                        return true;
        return false;
}

bool twin_adds_order(const struct twin *twin, int stream, int node)
{
        struct twin_node next = successor((struct twin *)twin, stream);
        int i;

        for (i = 0; i <= node; i++) {
                const struct twin_node *other = &twin->nodes[i];

                if (other->owner && !other->executed && set_has(&twin->nodes[node].real, i) &&
                    !set_has(&next.real, i))
                        return true;
        }
        return false;
}
