/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schedules -- what is done with a block, and after what (schedules.c)
 *
 * A block is used where its last use is known to come before, by stream order, by
 * an event, by the order of the legacy stream, or by a call on that about other memory.
 */
#include "schedules.h"

unsigned pick(unsigned limit)
{
        run.random ^= run.random << 13;
        run.random ^= run.random >> 7;
        run.random ^= run.random << 17;
        return (unsigned)((run.random >> 11) % limit);
}

static CUdeviceptr count_here(void)
{
        return (CUdeviceptr)(uintptr_t)run.mismatches;
}

/* order */

static struct place *place_of(struct where at)
{
        return &run.places[at.place];
}

bool is_same(struct where a, struct where b)
{
        return a.place == b.place && a.stream == b.stream;
}

CUstream stream_at(struct where at)
{
        CU_OK(cu.CtxSetCurrent(place_of(at)->context));
        return place_of(at)->streams[at.stream];
}

/* The legacy stream waits for blocking ones of its context, and is waited for by them. */
static bool is_ordered(struct where at, struct where from)
{
        return at.place == from.place && (!at.stream || !from.stream) &&
               place_of(at)->is_blocking[at.stream] && place_of(at)->is_blocking[from.stream];
}

/* One of these on the legacy stream puts all that block in order. */
static void call_on_legacy(struct place *place)
{
        CU_OK(cu.CtxSetCurrent(place->context));
        if (!place->spare) {
                CU_OK(cu.MemAllocAsync(&place->spare, 1000, CU_STREAM_LEGACY));
                return;
        }
        CU_OK(cu.MemFreeAsync(place->spare, CU_STREAM_LEGACY));
        place->spare = 0;
}

static void follow(struct where at, struct where from)
{
        if (is_same(at, from) || is_ordered(at, from))
                return;
        if (at.place == from.place && place_of(at)->is_blocking[at.stream] &&
            place_of(at)->is_blocking[from.stream] && pick(2)) {
                call_on_legacy(place_of(at));
                return;
        }
        if (!pick(12)) {
                CU_OK(cu.StreamSynchronize(stream_at(from)));
                return;
        }
        CU_OK(cu.CtxSetCurrent(run.places[from.place].context));
        CU_OK(cu.EventCreate(&run.event, CU_EVENT_DISABLE_TIMING));
        CU_OK(cu.EventRecord(run.event, stream_at(from)));
        CU_OK(cu.StreamWaitEvent(stream_at(at), run.event, 0));
        CU_OK(cu.EventDestroy(run.event));
}

/* What cuMemAlloc() gave can be used anywhere, in no order with anything. */
static void move(struct block *block, struct where at)
{
        if (!block->is_new || block->place < 0)
                follow(at, block->last);
        block->last = at;
}

/* One that is used; mostly of the first place. */
struct where any_stream(void)
{
        struct where at;

        do {
                at.place = pick(2) ? 0 : (int)pick(PLACES);
                at.stream = (int)pick(STREAMS);
        } while (!place_of(at)->is_cast[at.stream]);
        return at;
}

/* What a kernel there can reach: of its own context, of a pool of its device, or of a peer. */
bool can_reach(struct where at, const struct block *block)
{
        if (block->place == at.place)
                return true;
        if (block->place < 0)
                return at.place < 2;
        return run.peers && block->place != 1 && at.place != 1;
}

/* blocks */

/* Mostly large, with little of it used: then there is little to have but what was freed just now.
 */
static size_t any_size(void)
{
        static const size_t bytes[] = {64,      4096,    65536,   1 << 19,
                                       1 << 20, 1 << 20, 2 << 20, 3 << 20};

        return bytes[pick(8)];
}

void take(struct block *block, struct where at)
{
        CUstream stream = stream_at(at);
        size_t bytes = any_size();

        *block = (struct block){.value = pick(1u << 20), .last = at, .is_new = true};
        block->words = pick(30) && bytes > 512 ? 128 : bytes / 4;
        block->place = at.place < 2 && pick(3) == 0 ? -1 : at.place;
        if (block->place < 0)
                CU_OK(cu.MemAllocAsync(&block->p, bytes, stream));
        else
                CU_OK(cu.MemAlloc(&block->p, bytes));
        cu_owned(block->p, bytes);
        run.made++;
}

/* The driver's cuMemFree() waits for the block's context, so that has to be behind its last use. */
static void free_at_once(struct block *block)
{
        struct where home = {block->place, 0};

        if (block->place < 0)
                CU_OK(cu.StreamSynchronize(stream_at(block->last)));
        else if (block->last.place != block->place)
                follow(home, block->last);
        if (pick(4) == 0)
                CU_OK(cu.CtxSetCurrent(run.places[0].context));
        cu_disowned(block->p);
        CU_OK(cu.MemFree(block->p));
}

static void free_in_order(struct block *block)
{
        struct where at = pick(2) ? block->last : any_stream();

        if (block->place >= 0 ? at.place != block->place : at.place > 1)
                at = (struct where){block->place > 0 ? block->place : 0, 0};
        follow(at, block->last);
        cu_disowned(block->p);
        CU_OK(cu.MemFreeAsync(block->p, stream_at(at)));
}

void give(struct block *block)
{
        if (block->place >= 0 ? pick(6) != 0 : !pick(8))
                free_at_once(block);
        else
                free_in_order(block);
        block->p = 0;
        run.freed++;
}

static void copy_from(struct block *block, struct where at)
{
        struct block *other = &run.blocks[pick(BLOCKS)];
        uint64_t words = other->words < block->words ? other->words : block->words;

        if (!other->p || other->is_new || other == block || other->value != block->value)
                return;
        follow(at, other->last);
        other->last = at;
        CU_OK(cu.MemcpyDtoDAsync(block->p, other->p, words * 4, stream_at(at)));
}

static void count_call(void *counter)
{
        __atomic_fetch_add((uint32_t *)counter, 1, __ATOMIC_RELAXED);
}

/* Sets and copies reach everything. */
void set_from_afar(struct block *block, struct where at)
{
        move(block, at);
        block->is_new = false;
        CU_OK(cu.MemsetD32Async(block->p, block->value, block->words, stream_at(at)));
}

/* Synchronous calls are on the legacy stream of the current context. */
void use_at_once(struct block *block, struct where at)
{
        uint32_t word = 0;

        at.stream = 0;
        move(block, at);
        (void)stream_at(at);
        if (block->is_new || pick(2)) {
                block->is_new = false;
                CU_OK(cu.MemsetD32(block->p, block->value, block->words));
                return;
        }
        CU_OK(cu.MemcpyDtoH(&word, block->p + (block->words - 1) * 4, 4));
        *run.mismatches += word != block->value;
}

void use(struct block *block, struct where at)
{
        const struct cu_kernels *kernels = &place_of(at)->kernels;
        CUdeviceptr p = block->p;

        move(block, at);
        if (block->is_new) {
                block->is_new = false;
                CU_OK(cu_fill(kernels, stream_at(at), p, block->words, block->value));
                return;
        }
        if (!pick(100))
                CU_OK(cu.LaunchHostFunc(stream_at(at), count_call, &run.calls_of_host));
        switch (pick(8)) {
        case 0:
                block->value += 3;
                CU_OK(cu_add(kernels, stream_at(at), p, block->words, 3));
                break;
        case 1:
                CU_OK(cu_watch(kernels, stream_at(at), p, block->words, block->value,
                               10000 + pick(100000), count_here()));
                break;
        case 2:
                CU_OK(cu.MemsetD32Async(p, block->value, block->words, stream_at(at)));
                break;
        case 3:
                block->value = 5;
                CU_OK(cu_fill(kernels, stream_at(at), p, block->words, 5));
                copy_from(block, at);
                break;
        default:
                CU_OK(cu_check(kernels, stream_at(at), p, block->words, block->value,
                               count_here()));
        }
}

/* graphs */

/* Of what is in the graph and of what goes on beside it, the last is the same as for a kernel. */
static void capture_and_launch(struct block *block, struct where at, CUstream own)
{
        const struct cu_kernels *kernels = &place_of(at)->kernels;
        CUgraphExec exec;
        CUgraph graph;
        CUdeviceptr q;

        CU_OK(cu.CtxSetCurrent(place_of(at)->context));
        CU_OK(cu.StreamBeginCapture(own, CU_STREAM_CAPTURE_MODE_RELAXED));
        CU_OK(cu_fill(kernels, own, block->p, block->words, 77));
        CU_OK(cu_check(kernels, own, block->p, block->words, 77, count_here()));
        CU_OK(cu.MemAlloc(&q, 50000));
        CU_OK(cu.MemFree(q));
        CU_OK(cu.StreamEndCapture(own, &graph));
        CU_OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
        move(block, at);
        block->value = 77;
        block->is_new = false;
        for (unsigned i = 0; i <= pick(2); i++)
                CU_OK(cu.GraphLaunch(exec, stream_at(at)));
        CU_OK(cu.GraphExecDestroy(exec));
        CU_OK(cu.GraphDestroy(graph));
        run.graphs++;
}

void use_in_graph(struct block *block, struct where at)
{
        CUstream own;

        (void)stream_at(at);
        CU_OK(cu.StreamCreate(&own, CU_STREAM_NON_BLOCKING));
        capture_and_launch(block, at, own);
        CU_OK(cu.StreamDestroy(own));
}
