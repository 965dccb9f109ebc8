/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Operation -- what the simulated device does, and after what
 *
 * The objects and their edges; engine.c runs them.
 */

#include "operation.h"

#include <stdlib.h>
#include <string.h>

struct sim_staged *sim_staged_new(const void *bytes, size_t count)
{
        struct sim_staged *staged = malloc(sizeof(*staged) + count);

        if (!staged)
                sim_abort("out of host memory");
        staged->references = 1;
        memcpy(staged->bytes, bytes, count);
        return staged;
}

void sim_work_copied(const struct sim_work *work)
{
        if (work->staged)
                work->staged->references++;
}

void sim_work_drop(struct sim_work *work)
{
        if (work->staged && !--work->staged->references)
                free(work->staged);
        work->staged = NULL;
}

struct sim_operation *sim_operation_new(const struct sim_work *work, uint64_t stream)
{
        struct sim_operation *operation = calloc(1, sizeof(*operation));

        if (!operation)
                sim_abort("out of host memory");
        operation->references = 2; /* the caller's and the engine's */
        operation->number = sim_engine_number();
        operation->stream = stream;
        operation->enqueued_ns = sim_clock();
        operation->work = *work;
        sim_work_copied(work);
        return operation;
}

struct sim_operation *sim_operation_get(struct sim_operation *operation)
{
        if (operation)
                operation->references++;
        return operation;
}

void sim_operation_put(struct sim_operation *operation)
{
        if (!operation || --operation->references)
                return;
        sim_work_drop(&operation->work);
        free(operation->needs);
        free(operation->followers);
        free(operation);
}

bool sim_operation_done(const struct sim_operation *operation)
{
        return !operation || operation->state == SIM_OPERATION_DONE;
}

static void append(struct sim_operation ***array, size_t *count, struct sim_operation *operation)
{
        /* Room doubles at each power of two. */
        if (!(*count & (*count - 1))) {
                size_t room = *count ? *count * 2 : 1;

                *array = realloc(*array, room * sizeof(**array));
                if (!*array)
                        sim_abort("out of host memory");
        }
        (*array)[(*count)++] = operation;
}

void sim_operation_need(struct sim_operation *operation, struct sim_operation *earlier)
{
        if (sim_operation_done(earlier))
                return;
        append(&operation->needs, &operation->need_count, sim_operation_get(earlier));
        append(&earlier->followers, &earlier->follower_count, operation);
        operation->missing++;
}
