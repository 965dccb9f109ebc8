/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Submit -- work meets a stream
 *
 * The one door for copies, sets, kernels and host functions: into the graph of
 * a capturing stream, or into the queue. Both calls take over the caller's
 * reference of what the work stages.
 */

#include "operation.h"

CUresult sim_submit(struct sim_stream *stream, const struct sim_work *work)
{
        struct sim_work own = *work;
        CUresult result = sim_capture_implicit(stream);

        if (!result && stream->capture)
                result = sim_capture_work(stream, work);
        else if (!result)
                sim_operation_put(sim_enqueue(stream, work));
        sim_work_drop(&own);
        return result;
}

CUresult sim_submit_and_wait(struct sim_stream *stream, const struct sim_work *work)
{
        struct sim_work own = *work;
        struct sim_operation *operation;
        CUresult result = sim_capture_implicit(stream);

        if (!result && stream->capture) {
                sim_capture_kill(stream->capture);
                result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
        if (!result) {
                operation = sim_enqueue(stream, work);
                sim_wait_operation(operation);
                sim_operation_put(operation);
        }
        sim_work_drop(&own);
        return result;
}

void sim_work_touch(struct sim_work *work, uint64_t address, size_t bytes, unsigned int access)
{
        if (!bytes || !sim_memory_find(address))
                return;
        if (work->ranges == SIM_RANGES)
                sim_abort("%s touches more than %d ranges", work->name, SIM_RANGES);
        work->range[work->ranges++] =
                (struct sim_range){.address = address, .bytes = bytes, .access = access};
}
