/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Beside -- does a stream keep its order while other threads give it work?
 *
 *   beside [--milliseconds N] [--plant] [ORDER ACT]
 *
 * Some threads fill a word by one stream and look at it by another, in an order
 * that CUDA promises; others do something else to the stream that all share. Each
 * line names the order, the act beside it, how often both were done, and how often
 * the word was not there yet: `lost`. --plant leaves the order out, and must be noticed.
 *
 * The driver (580.159, H200) loses a wait of a stream in whose midst another thread
 * is launching a graph: some 170 of 68,000, and none if a lock keeps the two apart.
 * So the shim keeps its own waits apart from graph launches (track/graph_gate.h).
 * That it has to do no more, for nothing else is lost, is what this shows of a driver.
 */
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cu.h"

#define WORDS   1024
#define VICTIMS 3
#define OTHERS  2

struct beside {
        CUcontext context;
        struct cu_kernels kernels;
        CUstream shared;
        uint32_t *mismatches; /* pinned */
        atomic_bool over;
        bool planted;
        atomic_ulong laps, acts;
        const struct order *order;
        const struct act *act;
};

/* One thread's. A word is filled on `from`, and looked at on `to`. */
struct victim {
        struct beside *beside;
        unsigned seed;
        CUstream own;
        CUevent done, seen;
        CUdeviceptr p;
};

struct other {
        struct beside *beside;
        unsigned seed;
        CUstream own;
        CUevent event;
        CUdeviceptr p;
        CUgraphExec graph;
};

/* ---- orders: what makes the second stream come after the first ---- */

static void wait_of_shared(struct victim *v)
{
        CU_OK(cu.EventRecord(v->done, v->own));
        CU_OK(cu.StreamWaitEvent(v->beside->shared, v->done, 0));
}

static void record_on_shared(struct victim *v)
{
        CU_OK(cu.EventRecord(v->done, v->beside->shared));
        CU_OK(cu.StreamWaitEvent(v->own, v->done, 0));
}

static void record_in_context(struct victim *v)
{
#if CUDA_VERSION >= 12050
        CU_OK(cu.CtxRecordEvent(v->beside->context, v->done));
#else
        CU_OK(cu.EventRecord(v->done, v->beside->shared));
#endif
        CU_OK(cu.EventSynchronize(v->done));
}

static void same_stream(struct victim *v)
{
        (void)v;
}

static const struct order {
        const char *name;
        void (*put)(struct victim *v);
        bool from_shared, to_shared;
} orders[] = {
        {"wait", wait_of_shared, false, true},
        {"record", record_on_shared, true, false},
        {"context", record_in_context, true, false},
        {"stream", same_stream, true, true},
};

/* ---- acts: what goes on beside ---- */

static void act_nothing(struct other *o)
{
        (void)o;
        usleep(100);
}

static void act_graph(struct other *o)
{
        CU_OK(cu.GraphLaunch(o->graph, o->beside->shared));
}

static void act_kernel(struct other *o)
{
        CU_OK(cu_fill(&o->beside->kernels, o->beside->shared, o->p, WORDS, 1));
}

static void act_set(struct other *o)
{
        CU_OK(cu.MemsetD32Async(o->p, 1, WORDS, o->beside->shared));
}

static void act_copy(struct other *o)
{
        uint32_t words[256] = {0};

        CU_OK(cu.MemcpyHtoDAsync(o->p, words, sizeof(words), o->beside->shared));
}

static void CUDA_CB nothing(void *unused)
{
        (void)unused;
}

static void act_host(struct other *o)
{
        CU_OK(cu.LaunchHostFunc(o->beside->shared, nothing, NULL));
}

static void act_value(struct other *o)
{
        CU_OK(cu.StreamWriteValue32(o->beside->shared, o->p, 1, 0));
}

static void act_record(struct other *o)
{
        CU_OK(cu.EventRecord(o->event, o->beside->shared));
}

static void act_wait(struct other *o)
{
        CU_OK(cu_spin(&o->beside->kernels, o->own, 5000));
        CU_OK(cu.EventRecord(o->event, o->own));
        CU_OK(cu.StreamWaitEvent(o->beside->shared, o->event, 0));
}

static void act_allocate(struct other *o)
{
        CUdeviceptr p;

        CU_OK(cu.MemAllocAsync(&p, 4 * WORDS, o->beside->shared));
        CU_OK(cu.MemFreeAsync(p, o->beside->shared));
}

static void act_context(struct other *o)
{
#if CUDA_VERSION >= 12050
        CU_OK(cu.CtxRecordEvent(o->beside->context, o->event));
#else
        act_record(o);
#endif
}

static const struct act {
        const char *name;
        void (*put)(struct other *o);
} acts[] = {
        {"nothing", act_nothing}, {"graph", act_graph},
        {"kernel", act_kernel},   {"set", act_set},
        {"copy", act_copy},       {"host_function", act_host},
        {"value", act_value},     {"record", act_record},
        {"wait", act_wait},       {"allocation", act_allocate},
        {"context", act_context},
};

/* ---- threads ---- */

static void *look(void *argument)
{
        struct victim *v = argument;
        struct beside *b = v->beside;
        CUstream from = b->order->from_shared ? b->shared : v->own;
        CUstream to = b->order->to_shared ? b->shared : v->own;

        CU_OK(cu.CtxSetCurrent(b->context));
        for (uint32_t value = 1; !b->over; value++) {
                CU_OK(cu_spin(&b->kernels, from, 5000 + (unsigned)rand_r(&v->seed) % 40000));
                CU_OK(cu_fill(&b->kernels, from, v->p, WORDS, value));
                if (!b->planted)
                        b->order->put(v);
                CU_OK(cu_check(&b->kernels, to, v->p, WORDS, value,
                               (CUdeviceptr)(uintptr_t)b->mismatches));
                /* The next fill is behind this look, by an event that nobody is beside. */
                CU_OK(cu.EventRecord(v->seen, to));
                CU_OK(cu.EventSynchronize(v->seen));
                b->laps++;
        }
        return NULL;
}

static void *act(void *argument)
{
        struct other *o = argument;
        struct beside *b = o->beside;

        CU_OK(cu.CtxSetCurrent(b->context));
        for (unsigned n = 1; !b->over; n++) {
                b->act->put(o);
                b->acts++;
                /* Not so far ahead that the driver makes us wait. */
                if (n % 32 == 0)
                        CU_OK(cu.StreamSynchronize(b->shared));
                if (n % 3 == 0)
                        usleep((unsigned)rand_r(&o->seed) % 30);
        }
        return NULL;
}

static CUgraphExec make_graph(struct other *o)
{
        CUgraphExec exec;
        CUgraph graph;

        CU_OK(cu.StreamBeginCapture(o->own, CU_STREAM_CAPTURE_MODE_RELAXED));
        CU_OK(cu_fill(&o->beside->kernels, o->own, o->p, WORDS, 1));
        CU_OK(cu_fill(&o->beside->kernels, o->own, o->p, WORDS, 2));
        CU_OK(cu.StreamEndCapture(o->own, &graph));
        CU_OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
        CU_OK(cu.GraphDestroy(graph));
        return exec;
}

static void open_victim(struct victim *v, struct beside *b, unsigned number)
{
        *v = (struct victim){.beside = b, .seed = number + 1};
        CU_OK(cu.StreamCreate(&v->own, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.EventCreate(&v->done, CU_EVENT_DISABLE_TIMING));
        CU_OK(cu.EventCreate(&v->seen, CU_EVENT_DISABLE_TIMING));
        CU_OK(cu.MemAlloc(&v->p, 4 * WORDS));
}

static void close_victim(struct victim *v)
{
        CU_OK(cu.MemFree(v->p));
        CU_OK(cu.EventDestroy(v->done));
        CU_OK(cu.EventDestroy(v->seen));
        CU_OK(cu.StreamDestroy(v->own));
}

static void open_other(struct other *o, struct beside *b, unsigned number)
{
        *o = (struct other){.beside = b, .seed = number + 100};
        CU_OK(cu.StreamCreate(&o->own, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.EventCreate(&o->event, CU_EVENT_DISABLE_TIMING));
        CU_OK(cu.MemAlloc(&o->p, 4 * WORDS));
        o->graph = make_graph(o);
}

static void close_other(struct other *o)
{
        CU_OK(cu.GraphExecDestroy(o->graph));
        CU_OK(cu.MemFree(o->p));
        CU_OK(cu.EventDestroy(o->event));
        CU_OK(cu.StreamDestroy(o->own));
}

static void start(pthread_t *thread, void *(*function)(void *), void *argument)
{
        if (pthread_create(thread, NULL, function, argument))
                exit(99);
}

static void run(struct beside *b, const struct order *order, const struct act *what,
                unsigned milliseconds)
{
        struct victim victims[VICTIMS];
        struct other others[OTHERS];
        pthread_t threads[VICTIMS + OTHERS];

        b->order = order;
        b->act = what;
        b->over = false;
        b->laps = b->acts = 0;
        *b->mismatches = 0;
        CU_OK(cu.StreamCreate(&b->shared, CU_STREAM_NON_BLOCKING));
        for (unsigned i = 0; i < VICTIMS; i++)
                open_victim(&victims[i], b, i);
        for (unsigned i = 0; i < OTHERS; i++)
                open_other(&others[i], b, i);
        for (unsigned i = 0; i < VICTIMS; i++)
                start(&threads[i], look, &victims[i]);
        for (unsigned i = 0; i < OTHERS; i++)
                start(&threads[VICTIMS + i], act, &others[i]);
        usleep(milliseconds * 1000);
        b->over = true;
        for (unsigned i = 0; i < VICTIMS + OTHERS; i++)
                pthread_join(threads[i], NULL);
        CU_OK(cu.CtxSynchronize());
        for (unsigned i = 0; i < VICTIMS; i++)
                close_victim(&victims[i]);
        for (unsigned i = 0; i < OTHERS; i++)
                close_other(&others[i]);
        CU_OK(cu.StreamDestroy(b->shared));
        printf("%s %s laps %lu acts %lu lost %u\n", order->name, what->name, b->laps, b->acts,
               (*b->mismatches + WORDS - 1) / WORDS);
        fflush(stdout);
}

static bool is_wanted(char **names, const char *order, const char *act)
{
        return !*names || (!strcmp(names[0], order) && !strcmp(names[1], act));
}

int main(int argc, char **argv)
{
        static const struct option known[] = {
                {"milliseconds", required_argument, NULL, 'm'},
                {"plant", no_argument, NULL, 'p'},
                {0},
        };
        static struct beside b;
        unsigned milliseconds = 300;
        int letter;

        while ((letter = getopt_long(argc, argv, "", known, NULL)) == 'm' || letter == 'p')
                if (letter == 'm')
                        milliseconds = (unsigned)strtoul(optarg, NULL, 10);
                else
                        b.planted = true;
        if (letter != -1 || (optind != argc && optind + 2 != argc)) {
                fprintf(stderr, "usage: beside [--milliseconds N] [--plant] [ORDER ACT]\n");
                return 2;
        }
        b.context = cu_start(0);
        cu_load_kernels(&b.kernels);
        b.mismatches = cu_counter(1);
        for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
                for (size_t j = 0; j < sizeof(acts) / sizeof(acts[0]); j++)
                        if (is_wanted(argv + optind, orders[i].name, acts[j].name))
                                run(&b, &orders[i], &acts[j], milliseconds);
        CU_OK(cu.MemFreeHost(b.mismatches));
        return 0;
}
