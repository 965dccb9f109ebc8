/* SPDX-License-Identifier: Apache-2.0 */

/* Whole -- driver calls of our own on a whole context */

#include "route/whole.h"

#include "track/state.h"
#include "track/stream.h"

bool sp_whole_enter(struct sp_context *context)
{
        if (!context || !sp_quiet_enter())
                return false;
        if (sp_context_enter(context))
                return true;
        sp_quiet_leave();
        return false;
}

void sp_whole_leave(struct sp_context *context)
{
        sp_context_leave(context);
        sp_quiet_leave();
}

CUresult sp_whole_record(struct sp_context *context, struct sp_stamp *stamp)
{
        CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
        unsigned int count;
        CUstream *others;

#if CUDA_VERSION >= 12050
        if (sp_driver.cuCtxRecordEvent)
                return sp_stamp_in_context(&context->stamper, NULL, 0, stamp);
#endif
        others = sp_stream_others(context, &count);
        if (others)
                result = sp_stamp_in_context(&context->stamper, others, count, stamp);
        sp_stream_others_end(others);
        return result;
}
