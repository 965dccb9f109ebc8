/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Block -- the life of one block that two devices use
 *
 * Uses are ordered by events, as a correct program has to, and by no more than
 * that: the host waits for nothing unless it is to be seen what a wait changes.
 * A block of a pool may be freed as soon as its home has been told to wait for the
 * other device, long before either has done anything. Of cuMemAlloc's memory the host
 * has to see the end: bare, cuMemFree waits for its own device's work, but not for what
 * that waits for on the other one, even with a kernel behind it, and the other device's
 * kernel faults (driver 580.159 on two H200; with cuCtxSynchronize before, it does not).
 */
#include "peers.h"

static CUdeviceptr counter(const struct lane *lane)
{
        return (CUdeviceptr)(uintptr_t)lane->device->mismatches;
}

static struct lane *lane_of(struct device *device)
{
        return &device->lanes[pick(LANES)];
}

static struct lane *any_lane(void)
{
        return lane_of(&peers.devices[pick(DEVICES)]);
}

/* Few sizes, so that what was freed is what the next one asks for. */
static size_t pick_bytes(void)
{
        static const size_t usual[] = {512,   4096,  4096,   16384,
                                       65536, 65536, 262144, (size_t)3 << 20};
        unsigned which = pick(sizeof(usual) / sizeof(usual[0]) + 1);

        if (which < sizeof(usual) / sizeof(usual[0]))
                return usual[which];
        return 256 + pick(1u << 18) / 4 * 4;
}

/* ---- order ---- */

/* The block's event stands behind its last use. */
static CUevent mark(struct block *block)
{
        CUevent event = block->events[block->last->device->ordinal];

        enter(block->last->device);
        CU_OK(cu.EventRecord(event, block->last->stream));
        return event;
}

/* What comes next on @lane is behind all uses of the block; its context is current. */
static void follow(struct lane *lane, struct block *block)
{
        CUevent event = block->last && block->last != lane ? mark(block) : NULL;

        enter(lane->device);
        if (event)
                CU_OK(cu.StreamWaitEvent(lane->stream, event, 0));
        block->last = lane;
}

/* ---- uses ---- */

/* The words of another block, copied by a device that has one of the two. */
static bool copy_over(struct block *to)
{
        struct block *from = &peers.slots[pick(SLOTS)];
        struct lane *lane = lane_of(pick(2) ? to->home : from->home ? from->home : to->home);

        if (from == to || !from->p || from->words < to->words)
                return false;
        follow(lane, from);
        follow(lane, to);
        to->value = from->value;
        if (pick(2))
                CU_OK(cu.MemcpyPeerAsync(to->p, to->home->context, from->p, from->home->context,
                                         to->words * 4, lane->stream));
        else
                CU_OK(cu.MemcpyDtoDAsync(to->p, from->p, to->words * 4, lane->stream));
        peers.copies++;
        return true;
}

static void fill(struct block *block)
{
        unsigned way = pick(8);
        struct lane *lane = way == 0 ? lane_of(block->home) : any_lane();

        if (way > 5 && copy_over(block))
                return;
        follow(lane, block);
        if (way == 0)
                CU_OK(cu.MemsetD32Async(block->p, block->value, block->words, lane->stream));
        else
                CU_OK(cu_fill(&lane->device->kernels, lane->stream, block->p, block->words,
                              block->value));
}

static void watch(struct lane *lane, struct block *block, uint64_t longest)
{
        follow(lane, block);
        peers.checks++;
        CU_OK(cu_watch(&lane->device->kernels, lane->stream, block->p, block->words, block->value,
                       pick((unsigned)longest), counter(lane)));
}

static void look(struct block *block)
{
        struct lane *lane = lane_of(block->home);
        uint32_t word = 0;

        follow(lane, block);
        CU_OK(cu.MemcpyDtoHAsync(&word, block->p + pick((unsigned)block->words) * (size_t)4, 4,
                                 lane->stream));
        CU_OK(cu.StreamSynchronize(lane->stream));
        peers.checks++;
        peers.host_mismatches += word != block->value;
}

static void use(struct block *block)
{
        unsigned way = pick(64);
        struct lane *lane = any_lane();
        const struct cu_kernels *kernels = &lane->device->kernels;

        if (way == 0) {
                look(block);
                return;
        }
        follow(lane, block);
        if (way < 16) {
                CU_OK(cu_add(kernels, lane->stream, block->p, block->words, 3));
                block->value += 3;
        }
        peers.checks++;
        CU_OK(cu_check(kernels, lane->stream, block->p, block->words, block->value, counter(lane)));
}

/* Somebody else's word in a block that the other device watches. */
static void plant(struct block *block)
{
        struct lane *seeing = lane_of(other(block->home));
        struct lane *writing = &block->home->lanes[0];

        wait_for_all();
        follow(seeing, block);
        CU_OK(cu_watch(&seeing->device->kernels, seeing->stream, block->p, block->words,
                       block->value, 500000, counter(seeing)));
        enter(writing->device);
        CU_OK(cu_fill(&writing->device->kernels, writing->stream, block->p, 1, ~block->value));
        wait_for_all();
}

/* ---- taking and giving ---- */

static void take(struct block *block)
{
        struct lane *lane;
        size_t bytes = pick_bytes();

        block->home = &peers.devices[pick(DEVICES)];
        block->words = bytes / 4;
        block->value = peers.serial++;
        block->async = pick(4) < peers.async_of_4;
        block->last = NULL;
        lane = lane_of(block->home);
        enter(block->home);
        if (block->async) {
                CU_OK(cu.MemAllocAsync(&block->p, bytes, lane->stream));
                block->last = lane;
        } else {
                CU_OK(cu.MemAlloc(&block->p, bytes));
        }
        cu_owned(block->p, bytes);
        peers.made++;
        fill(block);
        watch(any_lane(), block, 20000);
        if (peers.planted && peers.made % 64 == 0)
                plant(block);
}

/* Its last use is over: the event's, or all that the home does. What is current then is no matter
 * to cuMemAlloc's memory. */
static void wait_for(struct block *block, struct lane *lane)
{
        if (pick(2)) {
                CU_OK(cu.EventSynchronize(mark(block)));
        } else {
                follow(lane, block);
                CU_OK(cu.CtxSynchronize());
        }
        enter(block->async ? block->home : &peers.devices[pick(DEVICES)]);
}

static void give(struct block *block)
{
        bool waits = !block->async || !pick(8);
        struct lane *lane = lane_of(block->home);
        CUdeviceptr p = block->p;

        if (pick(2))
                watch(any_lane(), block, 50000);
        if (waits)
                wait_for(block, lane);
        else
                follow(lane, block);
        cu_disowned(p);
        if (waits)
                CU_OK(cu.MemFree(p));
        else
                CU_OK(cu.MemFreeAsync(p, lane->stream));
        block->p = 0;
        peers.freed++;
}

void block_round(void)
{
        struct block *block = &peers.slots[pick(SLOTS)];

        if (block->p)
                give(block);
        if (!pick(24)) {
                /* A device falls behind: what only the other one has done is not done. */
                struct lane *lane = any_lane();

                enter(lane->device);
                CU_OK(cu_spin(&lane->device->kernels, lane->stream, 1 + pick(500000)));
        }
        take(block);
        for (unsigned i = pick(3); i; i--)
                use(block);
        if (pick(2))
                give(block);
        if (!pick(100))
                wait_for_all();
}

void blocks_end(void)
{
        for (int i = 0; i < SLOTS; i++)
                if (peers.slots[i].p)
                        give(&peers.slots[i]);
}
