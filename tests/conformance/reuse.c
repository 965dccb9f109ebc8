/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reuse -- who gets what another stream has freed, and which call gives it back
 *
 * A pool's three policies, each on and off, against what is known of the free:
 * 64 MiB are freed on one stream, and the next stream that asks for 64 MiB gets
 * the same address or a new one. The program sets a threshold, or a pool that
 * keeps its memory by itself could not be compared with one that does not.
 */
#include "pools.h"

#define SIZE    (64 * MIB)
#define WORK_NS 30000000

enum situation {
        PENDING, /* work before the free is running */
        DONE,    /* it is over, and nobody has looked */
        EDGE,    /* it is running; the asking stream waits for an event behind the free */
        QUERY,   /* it is over, and the program was told so by an event */
        SYNC,    /* it is over, and the program waited for the stream */
        SITUATIONS
};

static void set_policies(CUmemoryPool pool, unsigned policies)
{
        static const CUmemPool_attribute attributes[] = {
                CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES,
                CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
                CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES,
        };

        for (unsigned i = 0; i < 3; i++) {
                int on = policies >> i & 1;

                CU_OK(cu.MemPoolSetAttribute(pool, attributes[i], &on));
        }
}

static uint64_t reserved(CUmemoryPool pool)
{
        uint64_t bytes;

        CU_OK(cu.MemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes));
        return bytes;
}

/* Time goes by until what @stream was given before is over; nothing is learned of it. */
static void let_pass(CUstream clock)
{
        CU_OK(cu_spin(&conf.kernels, clock, (uint64_t)3 * WORK_NS));
        CU_OK(cu.StreamSynchronize(clock));
}

/* Work on n1 and, behind it, a free; what is then known of that. */
static void arrange(enum situation situation, CUdeviceptr p, CUevent event, CUstream clock)
{
        CU_OK(cu_spin(&conf.kernels, conf.n1, WORK_NS));
        CU_OK(cu.MemFreeAsync(p, conf.n1));
        CU_OK(cu.EventRecord(event, conf.n1));
        if (situation == EDGE)
                CU_OK(cu.StreamWaitEvent(conf.n2, event, 0));
        if (situation == DONE || situation == QUERY)
                let_pass(clock);
        if (situation == QUERY)
                CU_OK(cu.EventQuery(event));
        if (situation == SYNC)
                CU_OK(cu.StreamSynchronize(conf.n1));
}

static bool gets_the_same(CUmemoryPool pool, enum situation situation, CUevent event,
                          CUstream clock)
{
        CUdeviceptr p, q;

        CU_OK(cu.MemAllocFromPoolAsync(&p, SIZE, pool, conf.n1));
        arrange(situation, p, event, clock);
        CU_OK(cu.MemAllocFromPoolAsync(&q, SIZE, pool, conf.n2));
        CU_OK(cu.MemFreeAsync(q, conf.n2));
        CU_OK(cu.CtxSynchronize());
        CU_OK(cu.MemPoolTrimTo(pool, 0));
        return p == q;
}

static void matrix_of(CUmemoryPool pool)
{
        CUstream clock;
        CUevent event;

        set_threshold(pool, UINT64_MAX);
        CU_OK(cu.StreamCreate(&clock, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
        for (unsigned policies = 0; policies < 8; policies++) {
                char cells[SITUATIONS + 1] = "";

                set_policies(pool, policies);
                for (int i = 0; i < SITUATIONS; i++)
                        cells[i] = gets_the_same(pool, (enum situation)i, event, clock) ? 's' : 'n';
                conf_say("%c%c%c=%s", policies & 1 ? 'F' : '-', policies & 2 ? 'O' : '-',
                         policies & 4 ? 'I' : '-', cells);
        }
        CU_OK(cu.EventDestroy(event));
        CU_OK(cu.StreamDestroy(clock));
}

static void matrix(void)
{
        CUmemoryPool pool = new_pool(0);

        matrix_of(pool);
        CODE(MemPoolDestroy, pool);
}

static void matrix_of_the_default_pool(void)
{
        matrix_of(default_pool());
}

/* which calls give memory back */

enum call { SAME, OTHER, LEGACY, EVENT, CONTEXT, STREAM_QUERY, EVENT_QUERY, COPY, ALLOC, CALLS };

static const char *const calls[] = {"same",         "other",       "legacy", "event", "context",
                                    "stream_query", "event_query", "copy",   "alloc"};

/* @word: some memory that is none of the pool's */
static void make(enum call call, CUmemoryPool pool, CUevent event, CUdeviceptr word)
{
        CUdeviceptr p;
        uint32_t back;

        switch (call) {
        case SAME:
                CU_OK(cu.StreamSynchronize(conf.n1));
                break;
        case OTHER:
                CU_OK(cu.StreamSynchronize(conf.n2));
                break;
        case LEGACY:
                CU_OK(cu.StreamSynchronize(NULL));
                break;
        case EVENT:
                CU_OK(cu.EventSynchronize(event));
                break;
        case CONTEXT:
                CU_OK(cu.CtxSynchronize());
                break;
        case STREAM_QUERY:
                CU_OK(cu.StreamQuery(conf.n1));
                break;
        case EVENT_QUERY:
                CU_OK(cu.EventQuery(event));
                break;
        case COPY:
                CU_OK(cu.MemcpyDtoH(&back, word, 4));
                break;
        case ALLOC:
                CU_OK(cu.MemAllocFromPoolAsync(&p, SIZE, pool, conf.n1));
                CU_OK(cu.MemFreeAsync(p, conf.n1));
                break;
        case CALLS:
                break;
        }
}

/* Two blocks of n1 are free and over; what is reserved after a call. */
static uint64_t left_after(enum call call, CUmemoryPool pool, CUevent event, CUstream clock)
{
        CUdeviceptr p, q, word;
        uint64_t left;

        CU_OK(cu.MemAlloc(&word, 4));
        CU_OK(cu.MemAllocFromPoolAsync(&p, SIZE, pool, conf.n1));
        CU_OK(cu.MemAllocFromPoolAsync(&q, SIZE, pool, conf.n1));
        CU_OK(cu.MemFreeAsync(p, conf.n1));
        CU_OK(cu.MemFreeAsync(q, conf.n1));
        CU_OK(cu.EventRecord(event, conf.n1));
        let_pass(clock);
        make(call, pool, event, word);
        left = reserved(pool);
        CU_OK(cu.MemFree(word));
        CU_OK(cu.CtxSynchronize());
        CU_OK(cu.MemPoolTrimTo(pool, 0));
        return left;
}

static void trims_of(CUmemoryPool pool)
{
        CUstream clock;
        CUevent event;
        uint64_t left;

        CU_OK(cu.StreamCreate(&clock, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
        set_threshold(pool, 0);
        for (int i = 0; i < CALLS; i++) {
                left = left_after((enum call)i, pool, event, clock);
                conf_say("%s=%s", calls[i], !left ? "none" : left >= 2 * SIZE ? "all" : "some");
        }
        set_threshold(pool, 32 * MIB);
        left = left_after(SAME, pool, event, clock);
        conf_say("threshold=%d", left >= 32 * MIB && left < 2 * SIZE);
        CU_OK(cu.EventDestroy(event));
        CU_OK(cu.StreamDestroy(clock));
}

static void trims(void)
{
        CUmemoryPool pool = new_pool(0);

        trims_of(pool);
        CODE(MemPoolDestroy, pool);
}

static void trims_of_the_default_pool(void)
{
        trims_of(default_pool());
}

const struct conf_case conf_reuse[] = {
        {"reuse.matrix", matrix, CONF_QUIET, NULL},
        {"reuse.matrix_of_the_default_pool", matrix_of_the_default_pool, CONF_ALONE | CONF_QUIET,
         NULL},
        {"reuse.trims", trims, CONF_QUIET, NULL},
        {"reuse.trims_of_the_default_pool", trims_of_the_default_pool, CONF_ALONE | CONF_QUIET,
         NULL},
        {NULL, NULL, 0, NULL},
};
