/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other -- copies on the legacy streams, and whom a free waits for
 */
#include "peers.h"

#include <time.h>

#define SERIAL_BYTES ((size_t)4 << 20)
#define SERIAL_WORDS (SERIAL_BYTES / 4)
#define BUSY_NS      100000000

static CUdeviceptr take(const struct device *device, size_t bytes)
{
        CUdeviceptr p;

        enter(device);
        CU_OK(cu.MemAlloc(&p, bytes));
        cu_owned(p, bytes);
        peers.made++;
        return p;
}

static void give(const struct device *device, CUdeviceptr p)
{
        enter(device);
        cu_disowned(p);
        CU_OK(cu.MemFree(p));
        peers.freed++;
}

/*
 * cuMemcpyPeer comes back before it has copied, and is in order with all work of
 * both devices, earlier and later. Both blocks are freed with no wait of ours, and
 * the next owners write other values.
 */
void serial_round(void)
{
        struct device *from = &peers.devices[pick(DEVICES)], *to = other(from);
        uint32_t value = peers.serial++;
        CUdeviceptr source = take(from, SERIAL_BYTES), copy = take(to, SERIAL_BYTES), next;

        enter(from);
        CU_OK(cu_spin(&from->kernels, CU_STREAM_LEGACY, 1 + pick(200000)));
        CU_OK(cu.MemsetD32(source, value, SERIAL_WORDS));
        enter(pick(2) ? from : to);
        CU_OK(cu.MemcpyPeer(copy, to->context, source, from->context, SERIAL_BYTES));
        peers.copies++;
        give(from, source);
        next = take(from, SERIAL_BYTES);
        CU_OK(cu.MemsetD32(next, ~value, SERIAL_WORDS));
        give(from, next);
        enter(to);
        CU_OK(cu_check(&to->kernels, CU_STREAM_LEGACY, copy, SERIAL_WORDS, value,
                       (CUdeviceptr)(uintptr_t)to->mismatches));
        peers.checks++;
        give(to, copy);
        next = take(to, SERIAL_BYTES);
        CU_OK(cu.MemsetD32(next, ~value, SERIAL_WORDS));
        give(to, next);
}

static double now_ms(void)
{
        struct timespec time;

        clock_gettime(CLOCK_MONOTONIC, &time);
        return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

/* A kernel of the other device that does not touch the block: nothing can go wrong. */
void question(void)
{
        struct device *home = &peers.devices[0], *busy = &peers.devices[1];
        CUdeviceptr p = take(home, SERIAL_BYTES);
        double start;

        wait_for_all();
        enter(busy);
        CU_OK(cu_spin(&busy->kernels, busy->lanes[0].stream, BUSY_NS));
        start = now_ms();
        give(home, p);
        printf("a free %s for the other device\n",
               now_ms() - start > BUSY_NS / 2e6 ? "waits" : "does not wait");
        wait_for_all();
}
