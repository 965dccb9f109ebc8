/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Host -- operations that the host carries out, or that it waits for by value
 *
 * Host functions run one at a time on a thread of the driver's own, without the
 * driver's lock: they may take the application's locks, and calls of the driver
 * they make answer 800. While one runs, virtual time stands still.
 *
 * Writing and waiting for a value in memory orders streams behind CUDA's back
 * (H14): such a wait is ready when the memory says so, whoever wrote it.
 */

#include "operation.h"

#include <stdlib.h>
#include <string.h>

/* Guarded by: sim_mutex. */
static struct sim_operation *queue; /* oldest first */
static size_t running;
static bool thread_started;
static pthread_cond_t queued = PTHREAD_COND_INITIALIZER;

/* Per thread because it answers for the thread that asks. */
static __thread bool in_host_function;

bool sim_in_host_function(void)
{
        return in_host_function;
}

size_t sim_host_running(void)
{
        return running;
}

static void call(const struct sim_work *work)
{
        void (*function)(void *) = NULL;
        CUstreamCallback callback = NULL;
        void *closure = (void *)(uintptr_t)work->word[1];

        in_host_function = true;
        if (work->word[2]) {
                memcpy(&callback, &work->word[0], sizeof(callback));
                callback((CUstream)(uintptr_t)work->word[3], CUDA_SUCCESS, closure);
        } else {
                memcpy(&function, &work->word[0], sizeof(function));
                function(closure);
        }
        in_host_function = false;
}

static void *serve(void *unused)
{
        (void)unused;
        pthread_mutex_lock(&sim_mutex);
        for (;;) {
                struct sim_operation *operation = queue;

                if (!operation) {
                        pthread_cond_wait(&queued, &sim_mutex);
                        continue;
                }
                queue = operation->next;
                pthread_mutex_unlock(&sim_mutex);
                call(&operation->work);
                pthread_mutex_lock(&sim_mutex);
                running--;
                sim_operation_finish(operation);
        }
        return NULL;
}

void sim_host_start(struct sim_operation *operation)
{
        struct sim_operation **place = &queue;
        pthread_t thread;

        while (*place)
                place = &(*place)->next;
        operation->next = NULL;
        *place = operation;
        running++;
        if (!thread_started) {
                if (pthread_create(&thread, NULL, serve, NULL))
                        sim_abort("cannot start the host functions' thread");
                pthread_detach(thread);
                thread_started = true;
        }
        pthread_cond_signal(&queued);
}

SIM_STREAM_PAIR(cuLaunchHostFunc, handle, (CUstream handle, CUhostFn function, void *closure),
                (handle, function, closure))
{
        struct sim_work work = {.name = "host function", .kind = SIM_WORK_HOST};
        struct sim_stream *stream;
        CUresult result = sim_stream_resolve(handle, &stream);

        if (result)
                return result;
        if (!function)
                return CUDA_ERROR_INVALID_VALUE;
        memcpy(&work.word[0], &function, sizeof(function));
        work.word[1] = (uintptr_t)closure;
        return sim_submit(stream, &work);
}

/* Unlike a host function, a callback cannot be captured (cuda.h, cuStreamAddCallback). */
SIM_STREAM_PAIR(cuStreamAddCallback, handle,
                (CUstream handle, CUstreamCallback callback, void *closure, unsigned int flags),
                (handle, callback, closure, flags))
{
        struct sim_work work = {.name = "stream callback", .kind = SIM_WORK_HOST};
        struct sim_stream *stream;
        CUresult result = sim_stream_resolve(handle, &stream);

        if (result)
                return result;
        if (!callback || flags)
                return CUDA_ERROR_INVALID_VALUE;
        if (stream->capture) {
                sim_capture_kill(stream->capture);
                return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
        memcpy(&work.word[0], &callback, sizeof(callback));
        work.word[1] = (uintptr_t)closure;
        work.word[2] = true;
        work.word[3] = (uintptr_t)handle;
        return sim_submit(stream, &work);
}

/* ---- values in memory ---- */

static void write_value(const struct sim_work *work)
{
        void *to = (void *)(uintptr_t)work->word[0];

        if (work->word[2] == 4)
                __atomic_store_n((uint32_t *)to, (uint32_t)work->word[1], __ATOMIC_RELEASE);
        else
                __atomic_store_n((uint64_t *)to, work->word[1], __ATOMIC_RELEASE);
}

static uint64_t value_now(const struct sim_work *work)
{
        const void *from = (const void *)(uintptr_t)work->word[0];

        if (work->word[2] == 4)
                return __atomic_load_n((const uint32_t *)from, __ATOMIC_ACQUIRE);
        return __atomic_load_n((const uint64_t *)from, __ATOMIC_ACQUIRE);
}

static bool value_holds(const struct sim_work *work)
{
        uint64_t now = value_now(work);
        uint64_t wanted = work->word[1];

        switch (work->word[3] & 3) {
        case CU_STREAM_WAIT_VALUE_GEQ:
                if (work->word[2] == 4)
                        return (int32_t)((uint32_t)now - (uint32_t)wanted) >= 0;
                return (int64_t)(now - wanted) >= 0;
        case CU_STREAM_WAIT_VALUE_EQ:
                return now == wanted;
        case CU_STREAM_WAIT_VALUE_AND:
                return now & wanted;
        default:
                return ~(now | wanted) & (work->word[2] == 4 ? UINT32_MAX : UINT64_MAX);
        }
}

static CUresult value_work(CUstream handle, CUdeviceptr address, uint64_t value, size_t bytes,
                           unsigned int flags, bool wait)
{
        struct sim_work work = {
                .name = wait ? "value wait" : "value write",
                .kind = wait ? SIM_WORK_POLLED : SIM_WORK_PLAIN,
                .effect = wait ? NULL : write_value,
                .holds = wait ? value_holds : NULL,
                .word = {address, value, bytes, flags},
        };
        struct sim_stream *stream;
        CUresult result = sim_stream_resolve(handle, &stream);

        if (result)
                return result;
        if (address % bytes || sim_memory_check(address, bytes))
                return CUDA_ERROR_INVALID_VALUE;
        sim_work_touch(&work, address, bytes, wait ? SIM_READ : SIM_WRITE);
        return sim_submit(stream, &work);
}

#define VALUE_CALLS(call_name, type, wait)                                                         \
        SIM_STREAM_PAIR(call_name, handle,                                                         \
                        (CUstream handle, CUdeviceptr address, type value, unsigned int flags),    \
                        (handle, address, value, flags))                                           \
        {                                                                                          \
                return value_work(handle, address, value, sizeof(type), flags, wait);              \
        }

VALUE_CALLS(cuStreamWaitValue32, cuuint32_t, true)
VALUE_CALLS(cuStreamWaitValue64, cuuint64_t, true)
VALUE_CALLS(cuStreamWriteValue32, cuuint32_t, false)
VALUE_CALLS(cuStreamWriteValue64, cuuint64_t, false)
VALUE_CALLS(cuStreamWaitValue32_v2, cuuint32_t, true)
VALUE_CALLS(cuStreamWaitValue64_v2, cuuint64_t, true)
VALUE_CALLS(cuStreamWriteValue32_v2, cuuint32_t, false)
VALUE_CALLS(cuStreamWriteValue64_v2, cuuint64_t, false)

/* One operation after the other, in the order of the array. */
static CUresult value_work_all(CUstream handle, unsigned int count,
                               const CUstreamBatchMemOpParams *list, unsigned int flags)
{
        CUresult result = list && count && !flags ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

        for (unsigned int i = 0; result == CUDA_SUCCESS && i < count; i++) {
                const CUstreamBatchMemOpParams *one = &list[i];

                switch (one->operation) {
                case CU_STREAM_MEM_OP_WAIT_VALUE_32:
                        result = value_work(handle, one->waitValue.address, one->waitValue.value, 4,
                                            one->waitValue.flags, true);
                        break;
                case CU_STREAM_MEM_OP_WAIT_VALUE_64:
                        result = value_work(handle, one->waitValue.address, one->waitValue.value64,
                                            8, one->waitValue.flags, true);
                        break;
                case CU_STREAM_MEM_OP_WRITE_VALUE_32:
                        result = value_work(handle, one->writeValue.address, one->writeValue.value,
                                            4, one->writeValue.flags, false);
                        break;
                case CU_STREAM_MEM_OP_WRITE_VALUE_64:
                        result =
                                value_work(handle, one->writeValue.address, one->writeValue.value64,
                                           8, one->writeValue.flags, false);
                        break;
                default:
                        result = CUDA_ERROR_NOT_SUPPORTED;
                }
        }
        return result;
}

#define BATCH_CALL(call_name)                                                                      \
        SIM_STREAM_PAIR(call_name, handle,                                                         \
                        (CUstream handle, unsigned int count, CUstreamBatchMemOpParams *list,      \
                         unsigned int flags),                                                      \
                        (handle, count, list, flags))                                              \
        {                                                                                          \
                return value_work_all(handle, count, list, flags);                                 \
        }

BATCH_CALL(cuStreamBatchMemOp)
BATCH_CALL(cuStreamBatchMemOp_v2)
