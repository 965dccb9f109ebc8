/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Uses -- is what a copy or a set touches in a block of the program's?
 *
 * The first byte says whose memory is meant. Where a block of the pools or an allocation of the
 * driver's holds it, all the bytes have to be within what was asked for. Where it is in memory of
 * the pools that no block holds, or in an allocation that was freed, it was used too late.
 *
 * What is not known is not guessed. Nothing is said of memory that the ledger has no size of
 * (imported, of a graph, of the host), of what the program maps itself only when it has unmapped
 * it, and nothing while something captures: what a graph does is done when it is launched. Outside
 * the pools the driver is asked first what is there, so that an address that means something else
 * by now is not mistaken for what it was.
 *
 * The order is that of the calls. A copy that is asked for after the free is late also if the
 * program holds back the stream that frees, by a value in memory that it writes behind the copy.
 * Whether a stream may use yet what another one has allocated is asked by another word of the
 * option (order.h).
 */

#include "route/uses.h"

#include "route/order.h"
#include "track/stack.h"

bool sp_uses_are_looked_at;

/* figures */

uint64_t sp_use_times(uint64_t count, uint64_t size)
{
        uint64_t product;

        return __builtin_mul_overflow(count, size, &product) ? UINT64_MAX : product;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
        return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Of @count pieces of @length, so far apart; 0 if there are none or they overlap. */
static uint64_t span_of(uint64_t length, uint64_t distance, uint64_t count)
{
        if (length == 0 || count == 0 || (count > 1 && distance < length))
                return 0;
        return plus(sp_use_times(count - 1, distance), length);
}

uint64_t sp_use_span(const struct sp_use *use)
{
        return span_of(span_of(use->width, use->pitch, use->rows), use->slice, use->slices);
}

uint64_t sp_use_next(const struct sp_use *use, uint64_t offset)
{
        uint64_t slice = use->slices > 1 ? offset / use->slice * use->slice : 0;
        uint64_t row = use->rows > 1 ? (offset - slice) / use->pitch : 0;

        if (row < use->rows && offset - slice - row * use->pitch < use->width)
                return offset;
        /* In the gap behind a row, or behind the last one of a slice. */
        return row + 1 < use->rows ? plus(slice + row * use->pitch, use->pitch)
                                   : plus(slice, use->slice);
}

/* looking */

/* Of a block of so many bytes, or more if the driver says so: is the end of it passed? */
static bool is_past_end(const struct sp_use *use, uint64_t span, uint64_t bytes,
                        struct sp_finding *finding)
{
        uint64_t start = use->address - finding->block.address;
        uint64_t end = plus(start, span);

        if (end <= bytes)
                return false;
        finding->kind = SP_FINDING_OUT_OF_BOUNDS;
        finding->outside = start < bytes ? plus(start, sp_use_next(use, bytes - start)) : start;
        finding->beyond = end - bytes;
        return true;
}

CUresult sp_use_ask(uint64_t address, CUdeviceptr *base, size_t *bytes)
{
        return sp_driver.cuMemGetAddressRange_v2
                       ? sp_driver.cuMemGetAddressRange_v2(base, bytes, address)
                       : CUDA_ERROR_NOT_SUPPORTED;
}

bool sp_use_is_nothing(CUresult result)
{
        return result == CUDA_ERROR_NOT_FOUND || result == CUDA_ERROR_INVALID_VALUE;
}

const void *sp_use_site(void)
{
        return sp_stack_is_kept(sp_caller) ? sp_stack_take(sp_caller) : sp_caller;
}

/* Outside the pools. */
static bool is_misuse_of_drivers(const struct sp_use *use, uint64_t span,
                                 struct sp_finding *finding)
{
        CUdeviceptr base;
        size_t bytes;
        CUresult result;

        if (use->side == SP_SIDE_HOST)
                return false;
        result = sp_use_ask(use->address, &base, &bytes);
        if (result == CUDA_SUCCESS) {
                if (!sp_ledger_block(base, finding))
                        return sp_ledger_was_unmapped(base, finding);
                /* If they differ, the entry is not of what is there now, or of rows that the driver
                 * made longer. */
                return is_past_end(use, span,
                                   bytes > finding->block.bytes ? bytes : finding->block.bytes,
                                   finding);
        }
        /* An address that may be the host's says nothing by that. */
        return sp_use_is_nothing(result) && use->side == SP_SIDE_DEVICE &&
               sp_ledger_was_freed(use->address, finding);
}

static bool is_misuse(const struct sp_use *use, uint64_t span, struct sp_finding *finding)
{
        switch (sp_ledger_pooled(use->address, finding)) {
        case SP_POOLED_LIVE:
                return is_past_end(use, span, finding->block.bytes, finding);
        case SP_POOLED_FREE:
                return true;
        default:
                return is_misuse_of_drivers(use, span, finding);
        }
}

void sp_use_look(const char *called, const struct sp_use *use)
{
        uint64_t span = sp_use_span(use);
        struct sp_finding finding = {
                .address = use->address,
                .function = called,
                .times = 1,
                .touched = sp_use_times(sp_use_times(use->width, use->rows), use->slices),
                .is_write = use->is_write,
        };

        if (!span || !use->address || !sp_route_may_act())
                return;
        if (sp_order_is_on)
                sp_order_look(use, span);
        /* Of the order alone? */
        if (!(sp_config()->check & SP_CHECK_USES) || !is_misuse(use, span, &finding))
                return;
        finding.site = sp_use_site();
        sp_ledger_add_finding(&finding);
}

static void look_at_copy(const char *called, const struct sp_use *to, const struct sp_use *from)
{
        sp_use_look(called, to);
        sp_use_look(called, from);
        if (sp_config()->check & SP_CHECK_USES)
                sp_use_look_overlap(called, to, from);
}

/* what functions are given */

static struct sp_use row_of(enum sp_side side, bool is_write, uint64_t address, size_t bytes)
{
        return (struct sp_use){
                .address = address,
                .width = bytes,
                .rows = 1,
                .slices = 1,
                .side = side,
                .is_write = is_write,
        };
}

void sp_use_row(const char *called, enum sp_side side, bool is_write, uint64_t address,
                size_t bytes)
{
        struct sp_use use = row_of(side, is_write, address, bytes);

        sp_use_look(called, &use);
}

void sp_use_copy(const char *called, enum sp_side to_side, uint64_t to, enum sp_side from_side,
                 uint64_t from, size_t bytes)
{
        struct sp_use write = row_of(to_side, true, to, bytes);
        struct sp_use read = row_of(from_side, false, from, bytes);

        look_at_copy(called, &write, &read);
}

void sp_use_rows(const char *called, uint64_t address, size_t pitch, size_t width, size_t rows)
{
        struct sp_use use = {
                .address = address,
                .width = width,
                .pitch = pitch,
                .rows = rows,
                .slices = 1,
                .side = SP_SIDE_DEVICE,
                .is_write = true,
        };

        sp_use_look(called, &use);
}

void sp_use_list(const char *called, const CUdeviceptr *to, const CUdeviceptr *from,
                 const size_t *sizes, size_t count)
{
        for (size_t i = 0; to && from && sizes && i < count; i++) {
                sp_use_copy(called, SP_SIDE_UNIFIED, to[i], SP_SIDE_UNIFIED, from[i], sizes[i]);
        }
}

/* One end of a copy, as the driver's structures have it. */
struct end {
        CUmemorytype type;
        const void *host;
        CUdeviceptr device;
        size_t x, y, z;       /* where the copy begins */
        size_t pitch, height; /* of the memory */
};

#define END_2D(copy, side)                                                                         \
        {                                                                                          \
                .type = (copy)->side##MemoryType, .host = (copy)->side##Host,                      \
                .device = (copy)->side##Device, .x = (copy)->side##XInBytes, .y = (copy)->side##Y, \
                .pitch = (copy)->side##Pitch                                                       \
        }
#define END_3D(copy, side)                                                                         \
        {                                                                                          \
                .type = (copy)->side##MemoryType, .host = (copy)->side##Host,                      \
                .device = (copy)->side##Device, .x = (copy)->side##XInBytes, .y = (copy)->side##Y, \
                .z = (copy)->side##Z, .pitch = (copy)->side##Pitch, .height = (copy)->side##Height \
        }

/* @extent says how much. Return: nothing, that is a use without rows, of an array, which is known
 * by a handle and has no address to look at, and where a height is missing: it means that of the
 * copy, or an error. */
static struct sp_use use_of(const struct end *end, const struct sp_use *extent, bool is_write)
{
        bool is_host = end->type == CU_MEMORYTYPE_HOST;
        struct sp_use use = *extent;
        uint64_t row, offset;

        if ((!is_host && end->type != CU_MEMORYTYPE_DEVICE && end->type != CU_MEMORYTYPE_UNIFIED) ||
            (end->z && !end->height))
                return (struct sp_use){0};
        row = plus(sp_use_times(end->z, end->height), end->y);
        offset = plus(sp_use_times(row, end->pitch), end->x);
        use.address = plus(is_host ? (uintptr_t)end->host : end->device, offset);
        use.pitch = end->pitch;
        use.slice = sp_use_times(end->pitch, end->height);
        use.side = is_host                             ? SP_SIDE_HOST
                   : end->type == CU_MEMORYTYPE_DEVICE ? SP_SIDE_DEVICE
                                                       : SP_SIDE_UNIFIED;
        use.is_write = is_write;
        return use;
}

static void look_at_both(const char *called, const struct end *to, const struct end *from,
                         const struct sp_use *extent)
{
        struct sp_use write = use_of(to, extent, true), read = use_of(from, extent, false);

        look_at_copy(called, &write, &read);
}

void sp_use_2d(const char *called, const CUDA_MEMCPY2D *copy)
{
        if (copy)
                look_at_both(called, &(struct end)END_2D(copy, dst), &(struct end)END_2D(copy, src),
                             &(struct sp_use){
                                     .width = copy->WidthInBytes,
                                     .rows = copy->Height,
                                     .slices = 1,
                             });
}

void sp_use_3d(const char *called, const CUDA_MEMCPY3D *copy)
{
        if (copy)
                look_at_both(called, &(struct end)END_3D(copy, dst), &(struct end)END_3D(copy, src),
                             &(struct sp_use){
                                     .width = copy->WidthInBytes,
                                     .rows = copy->Height,
                                     .slices = copy->Depth,
                             });
}

void sp_use_3d_peer(const char *called, const CUDA_MEMCPY3D_PEER *copy)
{
        if (copy)
                look_at_both(called, &(struct end)END_3D(copy, dst), &(struct end)END_3D(copy, src),
                             &(struct sp_use){
                                     .width = copy->WidthInBytes,
                                     .rows = copy->Height,
                                     .slices = copy->Depth,
                             });
}
