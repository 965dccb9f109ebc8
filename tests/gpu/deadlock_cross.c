/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cross -- kernels and streams that wait for each other
 *
 * Two kernels that exchange words, as communication libraries have them, must
 * both get onto the device; streams that wait for values in turn must each get
 * as far as the other needs. Whoever orders one behind the other has ended both.
 */
#include "deadlock.h"

#define TURNS    50
#define BYTES    ((size_t)1 << 18)
#define WORDS    256
#define LIMIT_NS UINT64_C(5000000000)

static CUdeviceptr gate(const struct ground *g, int which)
{
        return (CUdeviceptr)(uintptr_t)&g->gates[which];
}

static void meet(struct ground *g, CUstream stream, int side, uint32_t turn)
{
        CU_OK(cu_meet(&g->kernels, stream, gate(g, side), gate(g, !side), turn, LIMIT_NS,
                      (CUdeviceptr)(uintptr_t)g->gave_up));
}

/* Memory that one stream gave back, and the other one asks for. */
static void trade(struct ground *g, CUstream giver, CUstream taker)
{
        CUdeviceptr p = take_async(giver, BYTES), q;

        fill_and_check(g, giver, p, WORDS);
        give_async(p, giver);
        q = take_async(taker, BYTES);
        fill_and_check(g, taker, q, WORDS);
        give_async(q, taker);
        p = take(BYTES);
        fill_and_check(g, taker, p, WORDS);
        give_async(p, taker);
}

void case_meet_one_thread(struct ground *g)
{
        for (uint32_t turn = 1; turn <= TURNS; turn++) {
                trade(g, g->a, g->b);
                meet(g, g->a, 0, turn);
                trade(g, g->a, g->b);
                trade(g, g->b, g->a);
                meet(g, g->b, 1, turn);
                trade(g, g->b, g->a);
        }
        CU_OK(cu.StreamSynchronize(g->a));
        CU_OK(cu.StreamSynchronize(g->b));
}

struct side {
        struct ground *g;
        CUstream stream;
        int number;
};

static void *one_side(void *argument)
{
        struct side *side = argument;
        struct ground *g = side->g;

        CU_OK(cu.CtxSetCurrent(g->context));
        for (uint32_t turn = 1; turn <= TURNS; turn++) {
                CUdeviceptr p = take(BYTES);

                fill_and_check(g, side->stream, p, WORDS);
                loop_async(g, side->stream, 2, BYTES);
                meet(g, side->stream, side->number, turn);
                give_async(p, side->stream);
                loop_async(g, side->stream, 2, BYTES);
        }
        CU_OK(cu.StreamSynchronize(side->stream));
        return NULL;
}

void case_meet_two_threads(struct ground *g)
{
        struct side one = {g, g->a, 0}, other = {g, g->b, 1};
        pthread_t thread;

        if (pthread_create(&thread, NULL, one_side, &other))
                exit(99);
        one_side(&one);
        pthread_join(thread, NULL);
}

/* One stream had all the work; the other one begins with the kernel that the first waits for. */
void case_meet_first(struct ground *g)
{
        for (uint32_t turn = 1; turn <= TURNS; turn++) {
                CUstream second;

                churn(g, g->a, BYTES);
                loop_async(g, g->a, 4, BYTES);
                if (turn % 3)
                        CU_OK(cu.StreamCreate(&second, CU_STREAM_NON_BLOCKING));
                meet(g, g->a, 0, turn);
                if (!(turn % 3))
                        CU_OK(cu.StreamCreate(&second, CU_STREAM_NON_BLOCKING));
                if (turn % 2)
                        trade(g, g->a, second);
                meet(g, second, 1, turn);
                /* Twice: see ground_settle(). */
                CU_OK(cu.CtxSynchronize());
                CU_OK(cu.CtxSynchronize());
                CU_OK(cu.StreamDestroy(second));
        }
}

/* ---- values ---- */

static void wait_value(struct ground *g, CUstream stream, int which, uint32_t value)
{
        CU_OK(cu.StreamWaitValue32(stream, gate(g, which), value, CU_STREAM_WAIT_VALUE_GEQ));
}

static void write_value(struct ground *g, CUstream stream, int which, uint32_t value)
{
        CU_OK(cu.StreamWriteValue32(stream, gate(g, which), value, 0));
}

/* @a waits for what @b writes later, and the other way round. */
static void to_and_fro(struct ground *g, CUstream a, CUstream b, uint32_t turn)
{
        wait_value(g, a, 0, turn);
        trade(g, a, b);
        loop_async(g, b, 2, BYTES);
        write_value(g, b, 0, turn);
        wait_value(g, b, 1, turn);
        trade(g, b, a);
        loop_async(g, a, 2, BYTES);
        write_value(g, a, 1, turn);
}

void case_values_to_and_fro(struct ground *g)
{
        for (uint32_t turn = 1; turn <= TURNS; turn++)
                to_and_fro(g, g->a, g->b, turn);
        CU_OK(cu.StreamSynchronize(g->a));
        CU_OK(cu.StreamSynchronize(g->b));
}

/* The stream that waits had all the work, frees included, before the other one began. */
void case_values_first(struct ground *g)
{
        for (uint32_t turn = 1; turn <= TURNS; turn++) {
                CUstream second;

                churn(g, g->a, BYTES);
                loop_async(g, g->a, 4, BYTES);
                CU_OK(cu.StreamCreate(&second, CU_STREAM_NON_BLOCKING));
                to_and_fro(g, g->a, second, turn);
                /* Twice: see ground_settle(). */
                CU_OK(cu.CtxSynchronize());
                CU_OK(cu.CtxSynchronize());
                CU_OK(cu.StreamDestroy(second));
        }
}

/* An event of the waiting stream, recorded before the wait: what is behind that, and no more. */
void case_values_events(struct ground *g)
{
        CUevent event;

        CU_OK(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
        for (uint32_t turn = 1; turn <= TURNS; turn++) {
                CUdeviceptr p = take_async(g->a, BYTES), q = take(BYTES);

                fill_and_check(g, g->a, p, WORDS);
                fill_and_check(g, g->a, q, WORDS);
                give_async(p, g->a);
                CU_OK(cu.EventRecord(event, g->a));
                wait_value(g, g->a, 0, turn);
                give_async(q, g->a);
                CU_OK(cu.StreamWaitEvent(g->b, event, 0));
                loop_async(g, g->b, 4, BYTES);
                trade(g, g->a, g->b);
                write_value(g, g->b, 0, turn);
        }
        CU_OK(cu.StreamSynchronize(g->a));
        CU_OK(cu.StreamSynchronize(g->b));
        CU_OK(cu.EventDestroy(event));
}
