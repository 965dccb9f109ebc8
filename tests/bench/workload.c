/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workload -- what programs do to an allocator, reduced to a loop each
 *
 * All but the last kind use one non-blocking stream, number 1.
 */

#include "workload.h"

#include <stdlib.h>

#define BATCH          16
#define HOT            64
#define WINDOW         256

#define SIZE_MIN       512
#define SIZE_MAX_CHURN (4 * MIB)
#define SIZE_MAX_HOLE  (64 * KIB)

/* RMM's benchmark random_allocations: how often it allocates, and when it must not. */
#define RANDOM_PERCENT 73
#define RANDOM_BYTES   (16000 * MIB)

/* calls */

static uint64_t take(struct load *load, uint32_t stream, uint64_t size)
{
        uint64_t address = load->peer->ops->alloc(load->peer, stream, size);

        if (!address)
                load->refused++;
        else if (load->audit)
                audit_add(load->audit, address, size);
        return address;
}

static void give(struct load *load, uint32_t stream, uint64_t address, uint64_t size)
{
        if (!address)
                return;
        if (load->audit)
                audit_take(load->audit, address);
        load->peer->ops->free(load->peer, address, size, stream);
}

static void tell(struct load *load, enum peer_order what, uint32_t a, uint32_t b)
{
        if (load->peer->ops->order)
                load->peer->ops->order(load->peer, what, a, b);
}

static uint64_t next_size(struct load *load)
{
        return load->size[load->next_size++ % SIZES];
}

static void fill(struct load *load, uint32_t i)
{
        load->slot[i].size = next_size(load);
        load->slot[i].address = take(load, 1, load->slot[i].size);
}

static void empty(struct load *load, uint32_t i)
{
        give(load, 1, load->slot[i].address, load->slot[i].size);
        load->slot[i].address = 0;
}

/* life */

static void draw_sizes(struct load *load, uint64_t high)
{
        unsigned int i;

        for (i = 0; i < SIZES; i++)
                load->size[i] = chance_log(&load->chance, SIZE_MIN, high);
}

void load_init(struct load *load, struct peer *peer, struct audit *audit, uint32_t n)
{
        *load = (struct load){.peer = peer, .audit = audit, .chance = {88172645463325252u}};
        load->room = 2 * n + 2 * WINDOW;
        load->slot = must_calloc(load->room, sizeof(*load->slot));
        draw_sizes(load, SIZE_MAX_CHURN);
        tell(load, PEER_STREAM_MADE, 1, 1);
}

void load_drain(struct load *load)
{
        while (load->slots)
                empty(load, --load->slots);
        free(load->slot);
}

/* hot pair: one block comes and goes */

static void prepare_nothing(struct load *load, uint32_t n)
{
        (void)load;
        (void)n;
}

/* @n: KiB */
static unsigned int step_hot(struct load *load, uint32_t n, unsigned int pairs)
{
        unsigned int i;

        for (i = 0; i < pairs; i++)
                give(load, 1, take(load, 1, n * KIB), n * KIB);
        return pairs;
}

/* windows: last in, first out, as temporaries; first in, first out, as queues */

static unsigned int step_lifo(struct load *load, uint32_t n, unsigned int pairs)
{
        uint32_t i;

        (void)pairs;
        for (i = 0; i < n; i++)
                fill(load, i);
        while (i)
                empty(load, --i);
        return n;
}

static void prepare_live(struct load *load, uint32_t n)
{
        while (load->slots < n)
                fill(load, load->slots++);
}

static unsigned int step_fifo(struct load *load, uint32_t n, unsigned int pairs)
{
        unsigned int i;

        for (i = 0; i < pairs; i++) {
                load->oldest = (load->oldest + 1) % n;
                empty(load, load->oldest);
                fill(load, load->oldest);
        }
        return pairs;
}

/* churn: any live block is replaced by one of another size */

static unsigned int step_churn(struct load *load, uint32_t n, unsigned int pairs)
{
        unsigned int i;

        for (i = 0; i < pairs; i++) {
                uint32_t victim = (uint32_t)chance_below(&load->chance, n);

                empty(load, victim);
                fill(load, victim);
        }
        return pairs;
}

/* holes: every second of many blocks is free, from the last to the first; then pairs */

static void prepare_holes(struct load *load, uint32_t n)
{
        uint32_t i;

        draw_sizes(load, SIZE_MAX_HOLE);
        prepare_live(load, 2 * n);
        for (i = n; i; i--)
                empty(load, 2 * i - 1);
}

static unsigned int step_holes(struct load *load, uint32_t n, unsigned int pairs)
{
        unsigned int i;

        (void)n;
        for (i = 0; i < pairs; i++) {
                uint64_t size = next_size(load);

                give(load, 1, take(load, 1, size), size);
        }
        return pairs;
}

/* random allocations: RMM's. @n: MiB, at most */

static void random_one(struct load *load, uint32_t n)
{
        uint64_t size = (1 + chance_below(&load->chance, n)) * MIB;
        bool is_full = load->used + size > RANDOM_BYTES || load->slots == load->room;

        if (!is_full && (!load->slots || chance_below(&load->chance, 100) < RANDOM_PERCENT)) {
                struct slot *slot = &load->slot[load->slots++];

                *slot = (struct slot){take(load, 1, size), size};
                load->used += size;
        } else {
                struct slot *slot = &load->slot[chance_below(&load->chance, load->slots)];

                load->used -= slot->size;
                give(load, 1, slot->address, slot->size);
                *slot = load->slot[--load->slots];
        }
}

static unsigned int step_random(struct load *load, uint32_t n, unsigned int pairs)
{
        unsigned int i;

        for (i = 0; i < 2 * pairs; i++)
                random_one(load, n);
        return pairs;
}

/* fork and join: stream 1 lets @n others go, and waits for them. Each has two blocks of its own,
 * and hands a third to stream 1, which frees it. */

static void prepare_streams(struct load *load, uint32_t n)
{
        uint32_t i;

        for (i = 0; i < n; i++)
                tell(load, PEER_STREAM_MADE, i + 2, 1);
}

static void work(struct load *load, uint32_t stream, struct slot *handed)
{
        uint64_t a = next_size(load);
        uint64_t b = next_size(load);
        uint64_t first = take(load, stream, a);
        uint64_t second = take(load, stream, b);

        *handed = (struct slot){take(load, stream, a), a};
        give(load, stream, first, a);
        give(load, stream, second, b);
}

static unsigned int step_streams(struct load *load, uint32_t n, unsigned int pairs)
{
        uint32_t i;

        (void)pairs;
        tell(load, PEER_RECORD, 0, 1);
        for (i = 0; i < n; i++) {
                tell(load, PEER_WAIT, 0, i + 2);
                work(load, i + 2, &load->slot[i]);
                tell(load, PEER_RECORD, i + 1, i + 2);
        }
        for (i = 0; i < n; i++) {
                tell(load, PEER_WAIT, i + 1, 1);
                empty(load, i);
        }
        return 3 * n;
}

const struct workload workloads[] = {
        {"hot pair, 4 KiB", 4, HOT, prepare_nothing, step_hot},
        {"hot pair, 4 MiB", 4096, HOT, prepare_nothing, step_hot},
        {"LIFO, 32 blocks", 32, 0, prepare_nothing, step_lifo},
        {"FIFO, 256 blocks", WINDOW, BATCH, prepare_live, step_fifo},
        {"churn, 64 live", 64, BATCH, prepare_live, step_churn},
        {"churn, 4k live", 4096, BATCH, prepare_live, step_churn},
        {"churn, 64k live", 65536, BATCH, prepare_live, step_churn},
        {"1k holes", 1024, BATCH, prepare_holes, step_holes},
        {"4k holes", 4096, BATCH, prepare_holes, step_holes},
        {"16k holes", 16384, BATCH, prepare_holes, step_holes},
        {"64k holes", 65536, BATCH, prepare_holes, step_holes},
        {"random, 1..64 MiB", 64, BATCH, prepare_nothing, step_random},
        {"random, 1..1024 MiB", 1024, BATCH, prepare_nothing, step_random},
        {"fork-join, 1 stream", 1, 0, prepare_streams, step_streams},
        {"fork-join, 8 streams", 8, 0, prepare_streams, step_streams},
        {"fork-join, 32 streams", 32, 0, prepare_streams, step_streams},
};

const size_t workload_count = sizeof(workloads) / sizeof(*workloads);
