/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Caller -- a model of one context at a time, as the shim uses it
 */

#include "caller.h"

#include <inttypes.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CAP   (3 * MIB)
#define GRAIN (256 * KIB)

struct caller caller = {
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .quiet = PTHREAD_RWLOCK_INITIALIZER,
        .captured = -1,
};

uint32_t caller_choose(struct thread *thread, uint32_t count)
{
        thread->random ^= thread->random << 13;
        thread->random ^= thread->random >> 7;
        thread->random ^= thread->random << 17;
        return (uint32_t)(thread->random >> 32) % count;
}

/* actions */

static void done(struct thread *thread, spm_stamp stamp)
{
        struct spm_actions more;

        pthread_mutex_lock(&caller.lock);
        spm_stamp_done(caller.model, stamp, &more);
        pthread_mutex_unlock(&caller.lock);
        caller_perform(thread, &more, NULL);
}

static unsigned int place_of(spm_stream stream)
{
        unsigned int place = 0;

        while (place < DEVICE_STREAMS - 1 && caller.streams[place] != stream)
                place++;
        return place;
}

static void record(struct thread *thread, const struct spm_action *action)
{
        struct device_view view =
                action->stream ? device_look_at(place_of(action->stream)) : device_look();
        struct spm_actions more;

        if (caller.captured >= 0 && !action->stream)
                device_fail("a record in a capture");
        device_record(action->stamp, &view);
        pthread_mutex_lock(&caller.lock);
        spm_stamp_recorded(caller.model, action->stamp, true, &more);
        pthread_mutex_unlock(&caller.lock);
        caller_perform(thread, &more, NULL);
}

void caller_synchronise(struct thread *thread, enum spm_sync how)
{
        struct spm_scope scope = {SPM_SCOPE_CONTEXT, caller.context};
        struct spm_actions more;
        struct spm_ticket ticket;
        struct device_view view;
        enum spm_status status;

        pthread_mutex_lock(&caller.lock);
        status = spm_sync_begin(caller.model, scope, &ticket);
        pthread_mutex_unlock(&caller.lock);
        if (status != SPM_OK)
                return;
        view = device_look();
        if (!caller_choose(thread, 4))
                sched_yield();
        device_finish(&view);
        pthread_mutex_lock(&caller.lock);
        spm_sync_end(caller.model, &ticket, how, true, &more);
        pthread_mutex_unlock(&caller.lock);
        caller_perform(thread, &more, NULL);
}

static void grow(const struct spm_action *action, struct spm_request *request)
{
        spm_segment segment;

        pthread_mutex_lock(&caller.lock);
        if (caller.backed_bytes + action->size > CAP ||
            spm_segment_add(caller.model, action->pool, action->address, action->size, NULL,
                            &segment))
                spm_grow_failed(caller.model, request);
        else
                caller.backed_bytes += action->size;
        pthread_mutex_unlock(&caller.lock);
}

static void perform_one(struct thread *thread, const struct spm_action *action,
                        struct spm_request *request)
{
        struct device_view view;

        if (action->kind == SPM_ACT_RECORD) {
                record(thread, action);
        } else if (action->kind == SPM_ACT_GROW) {
                grow(action, request);
        } else if (action->kind == SPM_ACT_RELEASE) {
                pthread_mutex_lock(&caller.lock);
                caller.backed_bytes -= action->size;
                pthread_mutex_unlock(&caller.lock);
        } else if (action->kind == SPM_ACT_WAIT_FENCE) {
                if (device_find(action->stamp, &view))
                        device_wait(place_of(action->stream), &view);
        } else if (action->kind == SPM_ACT_SYNC_CONTEXT) {
                caller_synchronise(thread, SPM_SYNC_POLL);
        } else if ((action->kind == SPM_ACT_WAIT_HOST || action->kind == SPM_ACT_POLL) &&
                   device_find(action->stamp, &view)) {
                if (action->kind == SPM_ACT_WAIT_HOST || !caller_choose(thread, 3))
                        device_finish(&view);
                if (device_is_done(&view))
                        done(thread, action->stamp);
        }
}

void caller_perform(struct thread *thread, const struct spm_actions *actions,
                    struct spm_request *request)
{
        unsigned int i;

        for (i = 0; i < actions->count; i++)
                perform_one(thread, &actions->item[i], request);
}

/* marks */

void caller_forget(void)
{
        unsigned int i;

        atomic_fetch_add(&caller.epoch, 1);
        for (i = 0; i < DEVICE_STREAMS; i++)
                atomic_store(&caller.marks[i], false);
}

void caller_recount(struct thread *thread)
{
        struct spm_actions actions, more;
        bool is_quiet = true;
        unsigned int i;

        pthread_mutex_lock(&caller.lock);
        spm_context_recount(caller.model, caller.context, &actions);
        pthread_mutex_unlock(&caller.lock);
        if (!caller_choose(thread, 2))
                sched_yield();
        caller_forget();
        for (i = 0; i < caller.threads; i++)
                is_quiet = is_quiet && !atomic_load(&caller.inside[i]);
        if (!is_quiet) {
                pthread_mutex_lock(&caller.lock);
                spm_context_blur(caller.model, caller.context, &more);
                pthread_mutex_unlock(&caller.lock);
                caller_perform(thread, &more, NULL);
        }
        caller_perform(thread, &actions, NULL);
}

static void tell(struct thread *thread, unsigned int stream)
{
        unsigned int since = atomic_load(&caller.epoch);
        struct spm_actions actions;

        if (caller.captured >= 0)
                return;
        pthread_mutex_lock(&caller.lock);
        spm_submit(caller.model, caller.streams[stream], &actions);
        pthread_mutex_unlock(&caller.lock);
        caller_perform(thread, &actions, NULL);
        atomic_store(&caller.marks[stream], true);
        if (atomic_load(&caller.epoch) != since)
                atomic_store(&caller.marks[stream], false);
}

uint64_t caller_submit(struct thread *thread, unsigned int stream,
                       const struct spm_allocation *block)
{
        uint64_t work;

        if ((int)stream == caller.captured)
                return 0;
        atomic_store(&caller.inside[thread->number], 1);
        if (!atomic_load(&caller.marks[stream]))
                tell(thread, stream);
        if (!caller_choose(thread, 8))
                sched_yield();
        work = device_submit(stream);
        device_use(block, stream);
        atomic_store(&caller.inside[thread->number], 0);
        return work;
}

/* everything else */

void caller_toggle_capture(struct thread *thread)
{
        struct spm_actions actions = {0};

        pthread_rwlock_wrlock(&caller.quiet);
        if (caller.captured >= 0) {
                spm_capture_end(caller.model, caller.streams[caller.captured]);
                caller.captured = -1;
        } else {
                caller.captured = (int)caller_choose(thread, DEVICE_STREAMS);
                spm_capture_begin(caller.model, caller.streams[caller.captured], &actions);
        }
        /* What is asked for is recorded before the capture begins. */
        if (caller.captured >= 0) {
                int later = caller.captured;

                caller.captured = -1;
                caller_perform(thread, &actions, NULL);
                caller.captured = later;
        }
        pthread_rwlock_unlock(&caller.quiet);
}

static void begin_life(struct thread *thread)
{
        struct spm_pool_config config = {.kind = SPM_POOL_SYNC,
                                         .range_base = DEVICE_BASE +
                                                       atomic_load(&caller.life) * DEVICE_RANGE,
                                         .range_size = DEVICE_RANGE,
                                         .grain = GRAIN};
        struct spm_actions actions;
        unsigned int i;

        spm_context_add(caller.model, 0, &caller.context);
        for (i = 0; i < DEVICE_STREAMS; i++)
                spm_stream_add(caller.model, caller.context, SPM_STREAM_NON_BLOCKING,
                               &caller.streams[i]);
        config.context = caller.context;
        if (spm_pool_create(caller.model, &config, &caller.pool) != SPM_OK)
                device_fail("no pool");
        spm_context_watch(caller.model, caller.context, true, &actions);
        caller_perform(thread, &actions, NULL);
}

/* Threads may be in their magazines. */
void caller_replace_context(struct thread *thread)
{
        struct device_view view;
        enum spm_status status;

        pthread_rwlock_wrlock(&caller.quiet);
        if (atomic_load(&caller.life) + 1 == DEVICE_RANGES || caller.captured >= 0) {
                pthread_rwlock_unlock(&caller.quiet);
                return;
        }
        view = device_look();
        device_finish(&view);
        caller_forget();
        atomic_fetch_add(&caller.life, 1);
        do {
                struct spm_actions actions;

                status = spm_context_remove(caller.model, caller.context, &actions);
                caller_perform(thread, &actions, NULL);
        } while (status == SPM_AGAIN);
        if (status != SPM_OK)
                device_fail("a context's end: %s", spm_status_name(status));
        begin_life(thread);
        pthread_rwlock_unlock(&caller.quiet);
}

void caller_trim(struct thread *thread)
{
        enum spm_status status;

        do {
                struct spm_actions actions;

                pthread_mutex_lock(&caller.lock);
                status = spm_trim(caller.model, caller.pool, 0, NULL, &actions);
                pthread_mutex_unlock(&caller.lock);
                caller_perform(thread, &actions, NULL);
        } while (status == SPM_AGAIN);
}

void caller_check(void)
{
        char text[160] = "";

        pthread_mutex_lock(&caller.lock);
        if (!spm_check(caller.model, text, sizeof(text)))
                device_fail("%s", text);
        pthread_mutex_unlock(&caller.lock);
}

static void fence(void *user)
{
        (void)user;
        if (syscall(__NR_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
                abort();
}

bool caller_begin(struct thread *thread, unsigned int threads, bool fenced)
{
        struct spm_config config = {.fence = fenced ? fence : NULL, .batch_blocks = 16};

        if (fenced && syscall(__NR_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0))
                return false;
        if (spm_model_new(&config, &caller.model) != SPM_OK)
                device_fail("no model");
        caller.threads = threads;
        begin_life(thread);
        return true;
}

void caller_end(void)
{
        spm_model_free(caller.model);
}
