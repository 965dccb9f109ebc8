/* SPDX-License-Identifier: Apache-2.0 */

/* Ask -- the program wants device memory, and the driver is to give it */

#include "route/ask.h"

#include "route/refusal.h"
#include "route/route.h"
#include "track/layout.h"
#include "track/limit.h"
#include "track/range.h"
#include "track/state.h"

#define ADDRESS_BITS 47

struct sp_ask sp_ask_for(enum sp_kind kind, size_t bytes)
{
        struct sp_ask ask = {.kind = kind, .bytes = bytes, .device = -1};
        CUdevice ordinal;

        if (sp_driver.cuCtxGetDevice(&ordinal) == CUDA_SUCCESS)
                ask.device = ordinal;
        return ask;
}

struct sp_ask sp_ask_on(const struct sp_stream *stream, CUstream handle, size_t bytes)
{
        struct sp_ask ask = {.kind = SP_KIND_ASYNC, .bytes = bytes, .device = -1, .stream = handle};

        /* In a capture it is a node of the graph, and the graph's memory (C1). */
        if (stream && !sp_stream_captures(stream))
                ask.device = stream->context->device->ordinal;
        return ask;
}

/* A free of nothing is judged by the same rules. Physical memory can be made at any time (3A). */
static CUresult ask_driver(const struct sp_ask *ask)
{
        if (ask->kind == SP_KIND_VMM)
                return CUDA_SUCCESS;
        if (ask->kind == SP_KIND_ASYNC)
                return sp_driver.cuMemFreeAsync(0, ask->stream);
        return sp_route_ask_driver();
}

static bool take(struct sp_ask *ask)
{
        size_t bytes = sp_limit_rounded(ask->kind, ask->bytes);

        if (!sp_limit_take(ask->device, bytes))
                return false;
        ask->counted = bytes;
        return true;
}

/* There is no such device, or no such size of it: only managed memory can be larger. */
static bool is_hopeless(const struct sp_ask *ask)
{
        size_t total;

        return sp_driver.cuDeviceTotalMem_v2(&total, ask->device) != CUDA_SUCCESS ||
               (ask->kind != SP_KIND_MANAGED && ask->bytes > total);
}

/*
 * More than the device has, of what is asked for most: on an H200 (driver 580) the driver takes 2
 * to 5 ms to say so, and says nothing else for sizes that are addresses at all.
 */
static bool is_beyond_doubt(const struct sp_ask *ask)
{
        return (ask->kind == SP_KIND_DEVICE || ask->kind == SP_KIND_ASYNC) &&
               ask->bytes >> ADDRESS_BITS == 0 && is_hopeless(ask);
}

static bool is_cut_up(int device)
{
        bool is_in_force;

        sp_model_enter();
        is_in_force = sp_layout_is_in_force(device);
        sp_model_leave();
        return is_in_force;
}

/* Would the driver take more than counts, for what the pool has refused? One that is cut up refuses
 * where there is room, too, and then it is the driver's. */
static bool is_the_pools_alone(const struct sp_ask *ask)
{
        return ask->pooled && sp_limit_cap(ask->device) != SP_LIMIT_NONE &&
               !sp_limit_is_exact(ask->kind, ask->bytes) && sp_route_is_quiet() &&
               !is_cut_up(ask->device);
}

static CUresult refuse_unasked(struct sp_ask *ask)
{
        CUresult result = ask_driver(ask);

        if (result != CUDA_SUCCESS)
                return result;
        ask->unasked = true;
        return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult refuse(struct sp_ask *ask)
{
        uint64_t cap = sp_limit_cap(ask->device);
        CUresult result = refuse_unasked(ask);

        /* The pool may have been refused by the driver, too; it takes whole chunks. */
        ask->by_limit =
                ask->unasked &&
                (!ask->pooled || sp_limit_counted(ask->device) + ask->bytes + SP_GRAIN > cap);
        return result;
}

CUresult sp_ask_limit(struct sp_ask *ask)
{
        bool pools_alone;

        if (!ask->bytes || ask->device < 0)
                return CUDA_SUCCESS;
        if (is_beyond_doubt(ask))
                return refuse_unasked(ask);
        pools_alone = is_the_pools_alone(ask);
        if ((!pools_alone && take(ask)) || is_hopeless(ask))
                return CUDA_SUCCESS;
        if (!pools_alone && sp_relieve_device(sp_device_of_ordinal(ask->device), 0) && take(ask))
                return CUDA_SUCCESS;
        return refuse(ask);
}

void sp_ask_ended(struct sp_ask *ask, CUresult result)
{
        if (result == CUDA_SUCCESS) {
                if (!ask->counted && ask->device >= 0) {
                        ask->counted = sp_limit_rounded(ask->kind, ask->bytes);
                        sp_limit_add(ask->device, ask->counted);
                }
                return;
        }
        sp_limit_give(ask->device, ask->counted);
        ask->counted = 0;
        if (result == CUDA_ERROR_OUT_OF_MEMORY)
                sp_refused(ask);
}

bool sp_ask_settle(struct sp_ask *ask, size_t bytes)
{
        size_t counted = sp_limit_rounded(ask->kind, bytes);

        ask->bytes = bytes;
        if (counted <= ask->counted)
                sp_limit_give(ask->device, ask->counted - counted);
        else if (!sp_limit_take(ask->device, counted - ask->counted))
                ask->by_limit = true;
        if (ask->by_limit) {
                sp_ask_ended(ask, CUDA_ERROR_OUT_OF_MEMORY);
                return false;
        }
        ask->counted = counted;
        return true;
}

void sp_ask_write_down(const struct sp_ask *ask, uint64_t address, const struct sp_context *context,
                       uint64_t shadow)
{
        struct sp_ledger_entry entry = {
                .address = address,
                .bytes = ask->bytes,
                .counted = ask->counted,
                .kind = ask->kind,
                .device = ask->device,
                .context = context ? context->model : 0,
                .stream = (uintptr_t)ask->stream,
                .shadow = shadow,
        };

        if (address)
                sp_ledger_add(&entry);
}
