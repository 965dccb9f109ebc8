/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Halves -- three threads make a call each, and each call takes its time
 *
 *   halves [SCENE [N]]
 *
 * A driver call begins, is made and ends, and the model hears of the first and
 * the last. Three threads make one call each out of a list; this plays all of
 * their interleavings. Before them the block was used on the first stream, and
 * freed there unless one of the calls is the free; the event was recorded before
 * that. Afterwards the block is asked for on each stream, as in interleaved.c.
 *
 * With N only one set of three calls out of so many is played.
 *
 * What a thread may rely on after its own call has returned, another one may
 * too: no thread here has to be told.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stage.h"

#define THREADS 3

/* The calls of the second group are over as soon as they begin; a capture is over when it ends. */
enum kind { RECORD, WAIT, SYNC, SYNC_EVENT, CAPTURE, FREE, RETIRE, REPLACE };

struct call {
        const char *name;
        enum kind kind;
        int stream;
        bool refused;
};

static const struct call calls[] = {
        {"record 0", RECORD, 0, false},    {"record 1", RECORD, 1, false},
        {"record 2", RECORD, 2, false},    {"refused record 1", RECORD, 1, true},
        {"wait 1", WAIT, 1, false},        {"wait 2", WAIT, 2, false},
        {"refused wait 1", WAIT, 1, true}, {"sync 0", SYNC, 0, false},
        {"sync 1", SYNC, 1, false},        {"sync event", SYNC_EVENT, 0, false},
        {"capture 2", CAPTURE, 2, false},  {"free 0", FREE, 0, false},
        {"retire 0", RETIRE, 0, false},    {"silent record 2", REPLACE, 2, false},
};

#define CALLS ((int)(sizeof(calls) / sizeof(calls[0])))

/* A call under way. */
struct thread {
        const struct call *call;
        int points; /* of BEGIN, MAKE, END: how many are behind it */
        struct spm_ticket ticket;
        bool captured;
        bool ok;
        int node;
        int targets[STAGE_STREAMS + 1];
        int target_count;
};

static const struct stage_scene scenes[] = {
        {"free",
         {SPM_STREAM_NON_BLOCKING, SPM_STREAM_NON_BLOCKING, SPM_STREAM_NON_BLOCKING},
         {0, 0, 0},
         false},
        {"legacy", {SPM_STREAM_BLOCKING, SPM_STREAM_LEGACY, SPM_STREAM_BLOCKING}, {0, 0, 0}, false},
        {"contexts",
         {SPM_STREAM_NON_BLOCKING, SPM_STREAM_NON_BLOCKING, SPM_STREAM_BLOCKING},
         {0, 1, 1},
         true},
};

struct moment {
        struct stage stage;
        struct thread threads[THREADS];
};

static const struct stage_scene *scene;
static struct thread threads[THREADS];
static struct moment moments[3 * THREADS + 1];
static int history[3 * THREADS]; /* which thread made the step */
static uint64_t programs;

static void tell(const char *what, int asked, int length)
{
        static const char *const points[] = {"begins", "is made", "ends"};
        int seen[THREADS] = {0};
        int i;

        printf("%s:", scene->name);
        for (i = 0; i < length; i++)
                printf(" %s %s,", threads[history[i]].call->name, points[seen[history[i]]++]);
        printf(" asked for on %d: %s\n", asked, what);
        exit(1);
}

/* begin */

static bool is_whole(const struct call *call)
{
        return stage_scope(scene, call->stream).kind == SPM_SCOPE_CONTEXT;
}

static void set_targets(struct thread *thread)
{
        const struct twin *twin = &stage.world.twin;
        int i;

        for (i = 0; i < STAGE_STREAMS; i++)
                if (twin_answers_for(twin, thread->call->stream, i))
                        thread->targets[thread->target_count++] = twin->streams[i].end;
}

static bool begin(struct thread *thread)
{
        const struct call *call = thread->call;
        struct world *world = &stage.world;
        struct world_stream *stream = &world->streams[call->stream];
        struct spm_scope own = {SPM_SCOPE_STREAM, stream->id};
        struct spm_scope event = {SPM_SCOPE_EVENT, world->events[0]};
        struct spm_actions actions = {0};

        if (stream->retired && call->kind != SYNC_EVENT)
                return false;
        if (stream->capturing && (call->kind == SYNC || is_whole(call)))
                return false;
        thread->captured = stream->capturing;
        thread->ok = !call->refused;
        if (call->kind == RECORD)
                stage_must(spm_record_begin(world->model, world->events[0],
                                            stage_scope(scene, call->stream), &thread->ticket,
                                            &actions));
        else if (call->kind == WAIT)
                stage_must(spm_wait_begin(world->model, stage_scope(scene, call->stream),
                                          world->events[0], &thread->ticket));
        else
                stage_must(spm_sync_begin(world->model, call->kind == SYNC ? own : event,
                                          &thread->ticket));
        world_perform(world, &actions, stage_cause(call->stream), NULL);
        if (call->kind == SYNC)
                set_targets(thread);
        return true;
}

/* make */

static void make_order(struct thread *thread)
{
        const struct call *call = thread->call;
        struct world *world = &stage.world;
        struct twin *twin = &world->twin;
        bool whole = is_whole(call);

        if (call->kind == RECORD) {
                world->event_nodes[0] =
                        whole ? twin_record_context(twin, 1) : twin_submit(twin, call->stream);
                return;
        }
        thread->node = world->event_nodes[0];
        if (thread->node == WORLD_CAPTURED)
                thread->ok = false;
        else if (whole)
                twin_wait_context(twin, 1, thread->node);
        else
                twin_wait(twin, call->stream, thread->node);
}

static void make(struct thread *thread)
{
        const struct call *call = thread->call;
        struct world *world = &stage.world;
        const struct world_stream *stream = &world->streams[call->stream];
        int i;

        if (call->kind == SYNC_EVENT) {
                int node = world->event_nodes[0];

                thread->ok = node != WORLD_CAPTURED;
                if (thread->ok)
                        twin_execute(&world->twin, node);
                return;
        }
        /* What the driver would refuse, unless it is a node. */
        if (stream->retired || (stream->capturing && !thread->captured))
                thread->ok = false;
        if (!thread->ok)
                return;
        for (i = 0; i < thread->target_count; i++)
                twin_execute(&world->twin, thread->targets[i]);
        if (call->kind == SYNC)
                return;
        if (!stream->capturing)
                make_order(thread);
        else if (call->kind == RECORD)
                world->event_nodes[0] = WORLD_CAPTURED;
}

/* end */

static void end(struct thread *thread)
{
        struct world *world = &stage.world;
        struct spm_actions actions = {0};

        if (thread->call->kind == RECORD) {
                spm_record_end(world->model, &thread->ticket, thread->ok);
                return;
        }
        if (thread->call->kind == WAIT) {
                spm_wait_end(world->model, &thread->ticket, thread->ok);
                if (thread->ok && is_whole(thread->call))
                        twin_assume_context(&world->twin, 1, thread->node);
                return;
        }
        spm_sync_end(world->model, &thread->ticket, SPM_SYNC_WAIT, thread->ok, &actions);
        world_perform(world, &actions, stage_cause(TWIN_NONE), NULL);
}

/* calls of one point, and captures */

static bool capture(struct thread *thread)
{
        struct world *world = &stage.world;
        struct world_stream *stream = &world->streams[thread->call->stream];
        struct world_cause cause = {.self = thread->call->stream, .tail = true};
        int context = world_context_of(world, thread->call->stream);
        struct spm_actions actions;

        if (stream->retired || (stream->capturing && !thread->points))
                return false;
        if (thread->points) {
                stage_must(spm_capture_end(world->model, stream->id));
                stream->capturing--;
                world->captures[context]--;
                return true;
        }
        stage_must(spm_capture_begin(world->model, stream->id, &actions));
        world_perform(world, &actions, cause, NULL);
        stream->capturing++;
        world->captures[context]++;
        return true;
}

static bool at_once(const struct call *call)
{
        struct world *world = &stage.world;
        struct world_stream *stream = &world->streams[call->stream];
        struct world_cause cause = {.self = call->stream, .tail = true};
        struct spm_actions actions;

        if (stream->retired || stream->capturing)
                return false;
        if (call->kind == FREE) {
                if (stage.freed)
                        return false;
                stage_free(call->stream);
        } else if (call->kind == RETIRE) {
                stage_must(spm_stream_retire(world->model, stream->id, &actions));
                world_perform(world, &actions, cause, NULL);
                stream->retired = true;
        } else {
                stage_must(spm_event_taint(world->model, world->events[0], false));
                world->event_nodes[0] = twin_submit(&world->twin, call->stream);
        }
        return true;
}

/* programs */

static int points_of(const struct call *call)
{
        return call->kind > CAPTURE ? 1 : call->kind == CAPTURE ? 2 : 3;
}

/* Return: false if the call is not allowed now. */
static bool advance(struct thread *thread)
{
        bool allowed = true;

        if (thread->call->kind == CAPTURE)
                allowed = capture(thread);
        else if (thread->call->kind > CAPTURE)
                allowed = at_once(thread->call);
        else if (thread->points == 0)
                allowed = begin(thread);
        else if (thread->points == 1)
                make(thread);
        else
                end(thread);
        thread->points++;
        return allowed;
}

static void play(int length)
{
        struct moment *moment = &moments[length];
        const char *wrong;
        bool over = true;
        int asked;
        int i;

        stage_save(&moment->stage);
        memcpy(moment->threads, threads, sizeof(threads));
        for (i = 0; i < THREADS; i++) {
                if (threads[i].points == points_of(threads[i].call))
                        continue;
                over = false;
                history[length] = i;
                if (advance(&threads[i])) {
                        if (stage.world.failure[0])
                                tell(stage.world.failure, 0, length + 1);
                        play(length + 1);
                }
                stage_restore(&moment->stage);
                memcpy(threads, moment->threads, sizeof(threads));
        }
        if (!over)
                return;
        programs++;
        wrong = stage_ask(&asked);
        if (wrong)
                tell(wrong, asked, length);
}

static void start(const struct call *a, const struct call *b, const struct call *c)
{
        struct thread recorder = {.call = &calls[1]};

        stage_set_up(scene);
        threads[0] = (struct thread){.call = a};
        threads[1] = (struct thread){.call = b};
        threads[2] = (struct thread){.call = c};
        while (recorder.points < points_of(recorder.call))
                advance(&recorder);
        stage_use(0);
        if (a->kind != FREE && b->kind != FREE && c->kind != FREE)
                stage_free(0);
        play(0);
}

int main(int count, char **arguments)
{
        unsigned int every =
                count > 2 && atoi(arguments[2]) > 0 ? (unsigned int)atoi(arguments[2]) : 1;
        unsigned int sets = 0;
        size_t i;
        int a;
        int b;
        int c;

        for (i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
                if (count > 1 && strcmp(arguments[1], scenes[i].name))
                        continue;
                scene = &scenes[i];
                for (a = 0; a < CALLS; a++)
                        for (b = a; b < CALLS; b++)
                                for (c = b; c < CALLS; c++)
                                        if (++sets % every == 0)
                                                start(&calls[a], &calls[b], &calls[c]);
        }
        printf("%" PRIu64 " programs, %" PRIu64 " blocks served\n", programs, stage_served);
        return !stage_served;
}
