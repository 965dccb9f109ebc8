/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_BRACKET_H
#define SP_TRACK_BRACKET_H

/*
 * Bracket -- driver calls of our own are made between these two, so that they
 * are legal while some stream of the program captures (C4, D15)
 */

#include "driver/driver.h"

static inline CUstreamCaptureMode sp_bracket_open(void)
{
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

        if (sp_driver.cuThreadExchangeStreamCaptureMode)
                sp_driver.cuThreadExchangeStreamCaptureMode(&mode);
        return mode;
}

static inline void sp_bracket_close(CUstreamCaptureMode mode)
{
        if (sp_driver.cuThreadExchangeStreamCaptureMode)
                sp_driver.cuThreadExchangeStreamCaptureMode(&mode);
}

#endif
