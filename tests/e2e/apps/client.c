/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Client -- a recorded program, once more, as far as the driver can tell
 *
 *   client [--advance NS] [--plant] TRACE
 *
 * Every call of the trace (tests/bench/traces) is made by a thread of the same
 * number, one after the other in the order of the recording, and has to be answered
 * as it was there. A launch touches one block, chosen so that the program is correct
 * (client_plan.h): all of it as far as the oracle of the simulated driver knows, and
 * the first and the last byte, which have to be as the last launch left them.
 *
 * --advance lets the device work for so long after each call; without it nothing
 * ends before somebody waits. --plant makes the program incorrect.
 *
 * What is printed does not depend on who serves the memory, but for `high`: the most
 * that was in use on the device. `leak` and `made` are what a report has to say.
 */
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client_plan.h"
#include "cu.h"
#include "measure.h"

#define THREADS 64

struct block {
        CUdeviceptr p;
        uint64_t bytes;
        const char *kind; /* as in a report */
        uint8_t value;    /* of its first and last byte; 0: never visited */
        bool is_live;
};

struct worker {
        pthread_t thread;
        sem_t go;
        bool is_there;
};

static struct {
        struct trace trace;
        struct plan plan;
        struct cu_kernels kernels;
        CUcontext context;
        CUfunction visit;
        CUdeviceptr count;
        struct block *block; /* those of page-locked memory after the others */
        CUstream *stream;
        CUevent *event;
        uint32_t events, launch;
        uint64_t advance_ns;
        void (*advance)(uint64_t nanoseconds);

        /* The calls that follow are a worker's; `done` gives them back. */
        struct worker worker[THREADS];
        size_t next, end;
        sem_t done;

        uint32_t visits, spins, device, async, pinned;
} run;

/* memory */

static struct block *enter(uint32_t number, uint64_t bytes, const char *kind)
{
        struct block *block = &run.block[number];

        *block = (struct block){.bytes = bytes, .kind = kind, .is_live = true};
        return block;
}

static void alloc(const struct trace_event *event)
{
        uint64_t bytes = run.trace.size[event->a];
        bool is_async = event->b != PEER_ANYWHERE;
        struct block *block = enter(event->a, bytes, is_async ? "async" : "device");

        if (is_async)
                CU_OK(cu.MemAllocAsync(&block->p, bytes, run.stream[event->b]));
        else
                CU_OK(cu.MemAlloc(&block->p, bytes));
        run.async += is_async;
        run.device += !is_async;
        cu_owned(block->p, bytes);
}

static void give(const struct trace_event *event)
{
        struct block *block = &run.block[event->a];

        cu_disowned(block->p);
        block->is_live = false;
        if (event->b == PEER_ANYWHERE)
                CU_OK(cu.MemFree(block->p));
        else
                CU_OK(cu.MemFreeAsync(block->p, run.stream[event->b]));
}

static void pin(uint32_t number)
{
        uint64_t bytes = run.trace.pinned_size[number];
        struct block *block = enter(run.trace.blocks + number, bytes, "pinned");
        void *p;

        CU_OK(cu.MemHostAlloc(&p, bytes, CU_MEMHOSTALLOC_PORTABLE));
        block->p = (CUdeviceptr)(uintptr_t)p;
        run.pinned++;
        cu_owned(block->p, bytes);
}

static void unpin(uint32_t number)
{
        struct block *block = &run.block[run.trace.blocks + number];

        cu_disowned(block->p);
        block->is_live = false;
        CU_OK(cu.MemFreeHost((void *)(uintptr_t)block->p));
}

/* The thread had no context yet; it has one from here on. */
static void be_refused(CUresult wanted)
{
        CUdeviceptr p;
        CUresult result = cu.MemAllocAsync(&p, MIB, NULL);

        if (result != wanted) {
                fprintf(stderr, "an allocation is answered %d, recorded was %d\n", (int)result,
                        (int)wanted);
                exit(99);
        }
        CU_OK(cu.CtxSetCurrent(run.context));
}

/* streams and events */

static CUevent *event_at(uint32_t number)
{
        if (number >= run.events) {
                uint32_t room = 2 * number + 16;

                run.event = must_realloc(run.event, room * sizeof(*run.event));
                while (run.events < room)
                        run.event[run.events++] = NULL;
        }
        return &run.event[number];
}

static void record(uint32_t event, uint32_t stream)
{
        CUevent *handle = event_at(event);

        if (!*handle)
                CU_OK(cu.EventCreate(handle, CU_EVENT_DISABLE_TIMING));
        CU_OK(cu.EventRecord(*handle, run.stream[stream]));
}

static void launch(CUstream stream)
{
        uint32_t number = run.plan.visit[run.launch++], before, after;
        struct block *block;

        if (number == PLAN_NOTHING) {
                CU_OK(cu_spin(&run.kernels, stream, 1000));
                run.spins++;
                return;
        }
        block = &run.block[number];
        before = block->value;
        after = 1 + run.launch % 255;
        block->value = (uint8_t)after;
        CU_OK(cu_launch(run.visit, stream, 1,
                        (void *[]){&block->p, &block->bytes, &before, &after, &run.count}));
        run.visits++;
}

static void order(const struct trace_event *event)
{
        uint32_t a = event->a, b = event->b;

        switch (event->order) {
        case PEER_STREAM_MADE:
                CU_OK(cu.StreamCreate(&run.stream[a], b));
                break;
        case PEER_STREAM_GONE:
                CU_OK(cu.StreamDestroy(run.stream[a]));
                break;
        case PEER_RECORD:
                record(a, b);
                break;
        case PEER_WAIT:
                CU_OK(cu.StreamWaitEvent(run.stream[b], *event_at(a), 0));
                break;
        case PEER_EVENT_GONE:
                CU_OK(cu.EventDestroy(*event_at(a)));
                break;
        case PEER_SYNC_STREAM:
                CU_OK(cu.StreamSynchronize(run.stream[a]));
                break;
        case PEER_SYNC_EVENT:
                CU_OK(cu.EventSynchronize(*event_at(a)));
                break;
        case PEER_SYNC_ALL:
                CU_OK(cu.CtxSynchronize());
                break;
        case PEER_LAUNCH:
                while (b--)
                        launch(run.stream[a]);
                break;
        }
}

/* It was idle when the recorded program asked; here that may take some more questions. */
static void query(CUstream stream)
{
        CUresult result;

        do
                result = cu.StreamQuery(stream);
        while (result == CUDA_ERROR_NOT_READY);
        CU_OK(result);
}

/* calls, and who makes them */

static void call(const struct trace_event *event)
{
        switch (event->kind) {
        case TRACE_ALLOC:
                alloc(event);
                break;
        case TRACE_FREE:
                give(event);
                break;
        case TRACE_ORDER:
                order(event);
                break;
        case TRACE_QUERY:
                query(run.stream[event->a]);
                break;
        case TRACE_REFUSED:
                be_refused((CUresult)event->a);
                break;
        case TRACE_FREE_NULL:
                CU_OK(cu.MemFree(0));
                break;
        case TRACE_PIN:
                pin(event->a);
                break;
        case TRACE_UNPIN:
                unpin(event->a);
                break;
        case TRACE_THREAD:
                break;
        }
        if (run.advance_ns)
                run.advance(run.advance_ns);
}

static void make_calls(void)
{
        while (run.next < run.end)
                call(&run.trace.event[run.next++]);
}

static void *work(void *closure)
{
        struct worker *worker = closure;

        sem_wait(&worker->go);
        if (run.trace.event[run.next].kind != TRACE_REFUSED)
                CU_OK(cu.CtxSetCurrent(run.context));
        for (;;) {
                make_calls();
                sem_post(&run.done);
                sem_wait(&worker->go);
        }
        return NULL;
}

/* The recorded threads never ended, either: they wait when the program does. */
static void hand_over(uint32_t number)
{
        struct worker *worker = &run.worker[number];

        if (!number) {
                make_calls();
                return;
        }
        if (!worker->is_there) {
                worker->is_there = true;
                sem_init(&worker->go, 0, 0);
                if (pthread_create(&worker->thread, NULL, work, worker))
                        abort();
        }
        sem_post(&worker->go);
        sem_wait(&run.done);
}

static void replay(void)
{
        uint32_t thread = 0;

        sem_init(&run.done, 0, 0);
        while (run.next < run.trace.events) {
                for (run.end = run.next; run.end < run.trace.events; run.end++)
                        if (run.trace.event[run.end].kind == TRACE_THREAD)
                                break;
                hand_over(thread);
                if (run.next < run.trace.events)
                        thread = run.trace.event[run.next++].a % THREADS;
        }
}

/* what is said at the end */

static void say_leaks(const char *kind)
{
        uint64_t count = 0, bytes = 0;

        for (uint32_t i = 0; i < run.trace.blocks + run.trace.pinned; i++) {
                const struct block *block = &run.block[i];

                if (!block->is_live || strcmp(block->kind, kind))
                        continue;
                count++;
                bytes += block->bytes;
        }
        if (count)
                printf("leak %s %" PRIu64 " %" PRIu64 "\n", kind, count, bytes);
}

static void say(uint32_t mismatches)
{
        uint64_t (*judged)(void) = (uint64_t(*)(void))(uintptr_t)cu_symbol("sim_oracle_judged");
        size_t (*high)(int) = (size_t(*)(int))(uintptr_t)cu_symbol("sim_memory_high");

        printf("visits %u spins %u judged %" PRIu64 " mismatches %u\n", run.visits, run.spins,
               judged(), mismatches);
        /* And the counter. */
        printf("made device %u async %u pinned %u\n", run.device, run.async, run.pinned + 1);
        say_leaks("device");
        say_leaks("async");
        say_leaks("pinned");
        printf("live %" PRIu64 "\n", run.trace.live_peak);
        printf("high %zu\n", high(0));
}

int main(int argc, char **argv)
{
        bool is_planted = false;
        uint32_t *mismatches;
        int i;

        for (i = 1; i + 1 < argc; i++)
                if (!strcmp(argv[i], "--advance"))
                        run.advance_ns = strtoull(argv[++i], NULL, 0);
                else
                        is_planted = !strcmp(argv[i], "--plant");
        if (i >= argc || !trace_load(&run.trace, argv[i]))
                return 2;
        run.context = cu_start(0);
        if (!cu_is_simulated())
                return 77;
        run.advance = (void (*)(uint64_t))(uintptr_t)cu_symbol("sim_advance");
        cu_load_kernels(&run.kernels);
        CU_OK(cu.ModuleGetFunction(&run.visit, run.kernels.module, "visit"));
        mismatches = cu_counter(1);
        run.count = (CUdeviceptr)(uintptr_t)mismatches;
        plan_make(&run.plan, &run.trace, is_planted);
        run.block = must_calloc(run.trace.blocks + run.trace.pinned + 1, sizeof(*run.block));
        run.stream = must_calloc(run.trace.streams + 1, sizeof(CUstream));
        replay();
        CU_OK(cu.CtxSynchronize());
        say(*mismatches);
        CU_OK(cu.MemFreeHost(mismatches));
        plan_fini(&run.plan);
        trace_fini(&run.trace);
        return 0;
}
