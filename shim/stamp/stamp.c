/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stamp -- how we learn that work is done without making anybody wait
 *
 * Proof that a context stamp is sound. Let a block be freed at time F and the
 * stamp be recorded at T, later. A correct program submits no work on the block
 * after F. So all work on it was submitted before F, hence before T, hence is
 * covered by the stamp; when the stamp is done, nothing can touch the block. It
 * does not matter how much later T is, except that the stamp then also covers
 * work submitted in between, and takes longer to be done.
 *
 * Events are used again, not destroyed: making and destroying one costs as much
 * as recording it. Nobody waits for an event that was dropped, so recording it
 * again cannot lengthen a wait.
 *
 * An event belongs to the context that is current when it is made, and can only
 * be recorded there (P40); recording, polling and waiting need no current
 * context at all (measured on driver 580).
 */

#include "stamp/stamp.h"

#include <stdlib.h>
#include <time.h>

#include "stamp/graph_gate.h"

void sp_stamper_init(struct sp_stamper *stamper, CUcontext context)
{
        *stamper = (struct sp_stamper){.context = context};
        sp_lock_init(&stamper->lock, SP_RANK_STAMP);
}

void sp_stamper_forget(struct sp_stamper *stamper)
{
        sp_lock_take(&stamper->lock);
        stamper->idle_count = 0;
        sp_lock_drop(&stamper->lock);
}

static CUresult make_event(CUcontext context, CUevent *event)
{
        CUcontext popped;
        CUresult result = sp_driver.cuCtxPushCurrent_v2(context);

        if (result != CUDA_SUCCESS)
                return result;
        result = sp_driver.cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
        sp_driver.cuCtxPopCurrent_v2(&popped);
        return result;
}

static CUresult get_event(struct sp_stamper *stamper, CUevent *event)
{
        bool found;

        sp_lock_take(&stamper->lock);
        found = stamper->idle_count > 0;
        if (found)
                *event = stamper->idle[--stamper->idle_count];
        sp_lock_drop(&stamper->lock);
        return found ? CUDA_SUCCESS : make_event(stamper->context, event);
}

static void put_event(struct sp_stamper *stamper, CUevent event)
{
        bool kept = true;

        sp_lock_take(&stamper->lock);
        if (stamper->idle_count == stamper->idle_room) {
                unsigned int room = stamper->idle_room ? 2 * stamper->idle_room : 16;
                CUevent *idle = realloc(stamper->idle, room * sizeof(*idle));

                kept = idle != NULL;
                if (idle) {
                        stamper->idle = idle;
                        stamper->idle_room = room;
                }
        }
        if (kept)
                stamper->idle[stamper->idle_count++] = event;
        sp_lock_drop(&stamper->lock);
        if (!kept)
                sp_driver.cuEventDestroy_v2(event);
}

CUresult sp_stamp_on_stream(struct sp_stamper *stamper, CUstream stream, struct sp_stamp *stamp)
{
        CUevent event;
        CUresult result = get_event(stamper, &event);

        if (result != CUDA_SUCCESS)
                return result;
        result = sp_driver.cuEventRecord(event, stream);
        if (result != CUDA_SUCCESS) {
                put_event(stamper, event);
                return result;
        }
        *stamp = (struct sp_stamp){.stamper = stamper, .event = event};
        return CUDA_SUCCESS;
}

/* Option C of F6: the legacy stream waits for every blocking one, so its event stands for them.
 * It resolves in the current context, hence the push. */
static CUresult record_legacy_and_others(struct sp_stamper *stamper, const CUstream *others,
                                         unsigned int count, struct sp_stamp *stamp)
{
        struct sp_stamp all = {.stamper = stamper};
        CUcontext popped;
        CUresult result;

        if (count) {
                all.more = calloc(count, sizeof(*all.more));
                if (!all.more)
                        return CUDA_ERROR_OUT_OF_MEMORY;
        }
        result = sp_driver.cuCtxPushCurrent_v2(stamper->context);
        if (result != CUDA_SUCCESS) {
                free(all.more);
                return result;
        }
        result = sp_stamp_on_stream(stamper, CU_STREAM_LEGACY, stamp);
        all.event = result == CUDA_SUCCESS ? stamp->event : NULL;
        while (result == CUDA_SUCCESS && all.more_count < count) {
                struct sp_stamp one;

                result = sp_stamp_on_stream(stamper, others[all.more_count], &one);
                if (result == CUDA_SUCCESS)
                        all.more[all.more_count++] = one.event;
        }
        sp_driver.cuCtxPopCurrent_v2(&popped);
        if (result != CUDA_SUCCESS)
                sp_stamp_drop(&all);
        else
                *stamp = all;
        return result;
}

CUresult sp_stamp_in_context(struct sp_stamper *stamper, const CUstream *others, unsigned int count,
                             struct sp_stamp *stamp)
{
#if CUDA_VERSION >= 12050
        if (sp_driver.cuCtxRecordEvent) {
                CUevent event;
                CUresult result = get_event(stamper, &event);

                if (result != CUDA_SUCCESS)
                        return result;
                result = sp_driver.cuCtxRecordEvent(stamper->context, event);
                if (result != CUDA_SUCCESS) {
                        put_event(stamper, event);
                        return result;
                }
                *stamp = (struct sp_stamp){.stamper = stamper, .event = event};
                return CUDA_SUCCESS;
        }
#endif
        return record_legacy_and_others(stamper, others, count, stamp);
}

CUresult sp_stamp_poll(const struct sp_stamp *stamp)
{
        CUresult result = sp_driver.cuEventQuery(stamp->event);

        for (unsigned int i = 0; result == CUDA_SUCCESS && i < stamp->more_count; i++)
                result = sp_driver.cuEventQuery(stamp->more[i]);
        return result;
}

/* Looks before the first nap, of a microsecond each or so: most waits are shorter than a nap, which
 * takes 150 of them. */
#define LOOKS 200

static CUresult wait_patiently(const struct sp_stamp *stamp, unsigned int patience_ms)
{
        struct timespec nap = {.tv_nsec = 100 * 1000};
        unsigned int naps = patience_ms * 10;
        unsigned int looks = LOOKS;
        CUresult result = sp_stamp_poll(stamp);

        while (result == CUDA_ERROR_NOT_READY && looks--)
                result = sp_stamp_poll(stamp);
        while (result == CUDA_ERROR_NOT_READY && naps--) {
                nanosleep(&nap, NULL);
                result = sp_stamp_poll(stamp);
        }
        return result;
}

CUresult sp_stamp_wait(const struct sp_stamp *stamp, unsigned int patience_ms)
{
        CUresult result;

        if (patience_ms)
                return wait_patiently(stamp, patience_ms);
        result = sp_driver.cuEventSynchronize(stamp->event);
        for (unsigned int i = 0; result == CUDA_SUCCESS && i < stamp->more_count; i++)
                result = sp_driver.cuEventSynchronize(stamp->more[i]);
        return result;
}

CUresult sp_stamp_make_wait(const struct sp_stamp *stamp, CUstream stream)
{
        CUresult result;

        if (!sp_graph_gate_close(stream))
                return CUDA_ERROR_NOT_READY;
        result = sp_driver.cuStreamWaitEvent(stream, stamp->event, 0);
        for (unsigned int i = 0; result == CUDA_SUCCESS && i < stamp->more_count; i++)
                result = sp_driver.cuStreamWaitEvent(stream, stamp->more[i], 0);
        sp_graph_gate_open(stream);
        return result;
}

void sp_stamp_drop(struct sp_stamp *stamp)
{
        if (stamp->event)
                put_event(stamp->stamper, stamp->event);
        for (unsigned int i = 0; i < stamp->more_count; i++)
                put_event(stamp->stamper, stamp->more[i]);
        free(stamp->more);
        *stamp = (struct sp_stamp){.stamper = stamp->stamper};
}
