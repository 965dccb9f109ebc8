/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interleaved -- every short program of three streams, on every device
 *
 *   interleaved [SCENE [LENGTH]]
 *
 * A program begins with one block, allocated on the first stream. It makes up
 * to six operations, or LENGTH: uses, a free, records of an event, waits for it and
 * queries, each on any of the three streams, and between them the device takes
 * its steps, which count as operations too. Operations that the order set up
 * so far does not allow, or that change nothing, are left out; all others are
 * made, in every order. After each, the block is asked for on each stream:
 * where it is served, the graph of all that was submitted must agree, and where
 * the host may wait it must be served in the end.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stage.h"

#define LENGTH 6 /* at most */

enum operation { USE, FREE, RECORD, WAIT, QUERY, STEP, OPERATIONS };

static const char *const names[] = {"use", "free", "record", "wait", "query", "step"};

static const struct stage_scene scenes[] = {
        {"free",
         {SPM_STREAM_NON_BLOCKING, SPM_STREAM_NON_BLOCKING, SPM_STREAM_NON_BLOCKING},
         {0, 0, 0},
         false},
        {"legacy", {SPM_STREAM_LEGACY, SPM_STREAM_BLOCKING, SPM_STREAM_BLOCKING}, {0, 0, 0}, false},
        {"mixed",
         {SPM_STREAM_BLOCKING, SPM_STREAM_LEGACY, SPM_STREAM_NON_BLOCKING},
         {0, 0, 0},
         false},
        {"thread",
         {SPM_STREAM_PER_THREAD, SPM_STREAM_LEGACY, SPM_STREAM_NON_BLOCKING},
         {0, 0, 0},
         false},
        {"contexts",
         {SPM_STREAM_NON_BLOCKING, SPM_STREAM_BLOCKING, SPM_STREAM_LEGACY},
         {0, 1, 1},
         true},
};

static struct stage before[LENGTH]; /* where each operation goes back to */
static const struct stage_scene *scene;
static int program[LENGTH];
static int longest = LENGTH;
static uint64_t programs;

static void tell(const char *what, int asked, int length)
{
        int i;

        printf("%s:", scene->name);
        for (i = 0; i < length; i++)
                printf(" %s %d,", names[program[i] / STAGE_STREAMS], program[i] % STAGE_STREAMS);
        printf(" asked for on %d: %s\n", asked, what);
        exit(1);
}

static void make_record(int stream)
{
        struct spm_scope scope = stage_scope(scene, stream);
        struct world *world = &stage.world;
        struct spm_ticket ticket;
        struct spm_actions actions;

        stage_must(spm_record_begin(world->model, world->events[0], scope, &ticket, &actions));
        world_perform(world, &actions, stage_cause(stream), NULL);
        world->event_nodes[0] = scope.kind == SPM_SCOPE_CONTEXT
                                        ? twin_record_context(&world->twin, 1)
                                        : twin_submit(&world->twin, stream);
        spm_record_end(world->model, &ticket, true);
}

static void make_wait(int stream)
{
        struct spm_scope scope = stage_scope(scene, stream);
        struct world *world = &stage.world;
        int node = world->event_nodes[0];
        struct spm_ticket ticket;

        stage_must(spm_wait_begin(world->model, scope, world->events[0], &ticket));
        if (scope.kind == SPM_SCOPE_CONTEXT) {
                twin_wait_context(&world->twin, 1, node);
                twin_assume_context(&world->twin, 1, node);
        } else {
                twin_wait(&world->twin, stream, node);
        }
        spm_wait_end(world->model, &ticket, true);
}

static void make_query(int stream)
{
        struct spm_scope scope = {SPM_SCOPE_STREAM, stage.world.streams[stream].id};
        struct spm_ticket ticket;
        struct spm_actions actions;

        stage_must(spm_sync_begin(stage.world.model, scope, &ticket));
        spm_sync_end(stage.world.model, &ticket, SPM_SYNC_QUERY, true, &actions);
        world_perform(&stage.world, &actions, stage_cause(stream), NULL);
}

/* Return: false if the operation is not allowed now, or would change nothing. */
static bool perform(enum operation operation, int stream)
{
        struct twin *twin = &stage.world.twin;
        bool may = false;

        switch (operation) {
        case USE:
                may = stage_may_use(stream);
                if (may)
                        stage_use(stream);
                break;
        case FREE:
                may = stage_may_free(stream);
                if (may)
                        stage_free(stream);
                break;
        case RECORD:
                make_record(stream);
                return true;
        case WAIT:
                may = stage.world.event_nodes[0] != TWIN_NONE;
                if (may)
                        make_wait(stream);
                break;
        case QUERY:
                may = stage.freed && twin_is_idle(twin, stream);
                if (may)
                        make_query(stream);
                break;
        case STEP:
                may = !twin_is_executed(twin, twin->streams[stream].end);
                if (may)
                        twin_step(twin, twin->streams[stream].end);
                break;
        case OPERATIONS:
                break;
        }
        return may;
}

static void extend(int length)
{
        const char *wrong;
        int asked;
        int code;

        if (length == longest)
                return;
        stage_save(&before[length]);
        for (code = 0; code < OPERATIONS * STAGE_STREAMS; code++) {
                if (!perform((enum operation)(code / STAGE_STREAMS), code % STAGE_STREAMS))
                        continue;
                program[length] = code;
                programs++;
                if (stage.world.failure[0])
                        tell(stage.world.failure, 0, length + 1);
                wrong = stage_ask(&asked);
                if (wrong)
                        tell(wrong, asked, length + 1);
                extend(length + 1);
                stage_restore(&before[length]);
        }
}

int main(int count, char **arguments)
{
        size_t i;

        if (count > 2 && atoi(arguments[2]) > 0 && atoi(arguments[2]) < LENGTH)
                longest = atoi(arguments[2]);
        for (i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
                if (count > 1 && strcmp(arguments[1], scenes[i].name))
                        continue;
                scene = &scenes[i];
                stage_set_up(scene);
                extend(0);
        }
        printf("%" PRIu64 " programs, %" PRIu64 " blocks served\n", programs, stage_served);
        return !stage_served;
}
