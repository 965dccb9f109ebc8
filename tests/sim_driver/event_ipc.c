/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Events -- moments in a stream or in a whole context
 *
 * Handles of events for other processes. What another process records cannot be
 * seen here: an opened event is complete until this process records it.
 */

#include "operation.h"

#include <string.h>
#include <unistd.h>

#define COOKIE 0x73696d6576ull

struct contents {
        uint64_t cookie;
        uint64_t event; /* names it; nothing is done with it */
        int32_t process;
};

_Static_assert(sizeof(struct contents) <= sizeof(CUipcEventHandle), "a handle has room");

CUresult CUDAAPI cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event)
{
        struct contents contents = {.cookie = COOKIE, .event = (uintptr_t)event};

        SIM_ENTER(cuIpcGetEventHandle);
        if (!handle || !event)
                return CUDA_ERROR_INVALID_VALUE;
        sim_handle_check(event, SIM_EVENT);
        if (!(((struct sim_event *)event)->flags & CU_EVENT_INTERPROCESS))
                return CUDA_ERROR_INVALID_HANDLE;
        contents.process = getpid();
        memset(handle, 0, sizeof(*handle));
        memcpy(handle, &contents, sizeof(contents));
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
        struct sim_context *context;
        struct contents contents;
        CUresult result;

        SIM_ENTER(cuIpcOpenEventHandle);
        result = sim_current(&context);
        if (result)
                return result;
        memcpy(&contents, &handle, sizeof(contents));
        if (!event || contents.cookie != COOKIE)
                return CUDA_ERROR_INVALID_VALUE;
        *event = (CUevent)sim_event_new(context, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
        return CUDA_SUCCESS;
}
