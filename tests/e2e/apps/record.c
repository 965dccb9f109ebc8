/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Record -- a program that says itself what a recording of it has to say
 *
 *   record calls           each call that is recorded, and prints its line without the time
 *   record threads ROUNDS  threads that free what others have allocated
 *   record fork            calls, and half-way a child that calls, too, and ends as programs do
 *   record hold PAIRS      so many pairs, says "ready", and waits for its input to end
 *   record full PAIRS      the same, with files of 100 KiB at most, and no input
 *   record abort           one block, and abort()
 *   record close           closes all descriptors, opens a file of its own as each, and goes on
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cu.h"

#define THREADS 4
#define BYTES   ((size_t)8192)

static struct cu_kernels kernels;

static unsigned long long word(const void *handle)
{
        return (unsigned long long)(uintptr_t)handle;
}

/* the calls, one after the other */

static void allocations(CUstream stream)
{
        CUdeviceptr p = 7, q;
        int result;

        CU_OK(cu.MemAlloc(&p, BYTES));
        printf("a 0 %llx %zu 0\n", p, BYTES);
        CU_OK(cu.MemFree(p));
        printf("f 0 %llx\n", p);
        CU_OK(cu.MemFree(0));
        printf("f 0 0\n");
        result = (int)cu.MemAlloc(&q, 0);
        printf("a 0 0 0 %d\n", result);
        result = (int)cu.MemAlloc(&q, (size_t)1 << 45);
        printf("a 0 0 %zu %d\n", (size_t)1 << 45, result);
        result = (int)cu.MemAlloc(NULL, BYTES);
        printf("a 0 0 %zu %d\n", BYTES, result);
        /* A second free fails, and has no line. */
        if (cu.MemFree(p) == CUDA_SUCCESS)
                printf("freed twice\n");
        CU_OK(cu.MemAllocAsync(&p, BYTES, stream));
        printf("A 0 %llx %zu 0 %llx\n", p, BYTES, word(stream));
        result = (int)cu.MemAllocAsync(&q, (size_t)1 << 45, NULL);
        printf("A 0 0 %zu %d 0\n", (size_t)1 << 45, result);
        CU_OK(cu_fill(&kernels, stream, p, 4, 1));
        CU_OK(cu_fill(&kernels, stream, p, 4, 2));
        CU_OK(cu.MemsetD32Async(p, 0, 4, stream));
        printf("k %llx 3\n", word(stream));
        CU_OK(cu_fill(&kernels, NULL, p, 4, 2));
        printf("k 0 1\n");
        CU_OK(cu_fill(&kernels, stream, p, 4, 2));
        printf("k %llx 1\n", word(stream));
        CU_OK(cu.MemFreeAsync(p, stream));
        printf("F 0 %llx %llx\n", p, word(stream));
}

static void order(CUstream stream)
{
        CUstream other;
        CUevent event;

        CU_OK(cu.StreamCreate(&other, CU_STREAM_DEFAULT));
        printf("+ 0 %llx 0\n", word(other));
        CU_OK(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
        CU_OK(cu_spin(&kernels, stream, 1000000));
        printf("k %llx 1\n", word(stream));
        CU_OK(cu.EventRecord(event, stream));
        printf("r 0 %llx %llx\n", word(event), word(stream));
        CU_OK(cu.StreamWaitEvent(other, event, 0));
        printf("w 0 %llx %llx\n", word(other), word(event));
        printf("q 0 %llx %d\n", word(event), (int)cu.EventQuery(event));
        printf("Q 0 %llx %d\n", word(other), (int)cu.StreamQuery(other));
        CU_OK(cu.EventSynchronize(event));
        printf("e 0 %llx\n", word(event));
        CU_OK(cu.StreamSynchronize(other));
        printf("s 0 %llx\n", word(other));
        CU_OK(cu.CtxSynchronize());
        printf("c 0\n");
        printf("Q 0 %llx %d\n", word(other), (int)cu.StreamQuery(other));
        CU_OK(cu.EventDestroy(event));
        printf("x 0 %llx\n", word(event));
        CU_OK(cu.StreamDestroy(other));
        printf("- 0 %llx\n", word(other));
}

static void host_memory(CUstream stream)
{
        CUdeviceptr p;
        void *q;

        CU_OK(cu.MemAlloc(&p, BYTES));
        printf("a 0 %llx %zu 0\n", p, BYTES);
        CU_OK(cu.MemAllocHost(&q, BYTES));
        printf("h 0 %llx %zu\n", word(q), BYTES);
        memset(q, 0, BYTES);
        CU_OK(cu.MemcpyHtoD(p, q, 64));
        printf("m 0 HtoD 64\n");
        CU_OK(cu.MemcpyDtoH(q, p, BYTES));
        printf("m 0 DtoH %zu\n", BYTES);
        CU_OK(cu.MemcpyHtoDAsync(p, q, 64, stream));
        printf("k %llx 1\n", word(stream));
        CU_OK(cu.StreamSynchronize(stream));
        printf("s 0 %llx\n", word(stream));
        CU_OK(cu.MemFreeHost(q));
        printf("H 0 %llx\n", word(q));
        CU_OK(cu.MemFree(p));
        printf("f 0 %llx\n", p);
}

/* What is captured is not work, but its launch is; and the capture's memory is the graph's. */
static void capture(CUstream stream)
{
        CUgraphExec exec;
        CUgraph graph;
        CUdeviceptr p;

        CU_OK(cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        CU_OK(cu.MemAllocAsync(&p, BYTES, stream));
        CU_OK(cu_fill(&kernels, stream, p, 4, 1));
        CU_OK(cu.MemFreeAsync(p, stream));
        printf("F 0 %llx %llx\n", p, word(stream));
        CU_OK(cu.StreamEndCapture(stream, &graph));
        CU_OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
        CU_OK(cu.GraphLaunch(exec, stream));
        printf("k %llx 1\n", word(stream));
        CU_OK(cu.StreamSynchronize(stream));
        printf("s 0 %llx\n", word(stream));
        CU_OK(cu.GraphExecDestroy(exec));
        CU_OK(cu.GraphDestroy(graph));
}

static void own_stream(void)
{
        static const char own[] = "8000000000000000";
        CUdeviceptr p;

        CU_OK(cu.MemAllocAsync_ptsz(&p, BYTES, NULL));
        printf("+ 0 %s 0\nA 0 %llx %zu 0 %s\n", own, p, BYTES, own);
        CU_OK(cu.MemFreeAsync_ptsz(p, NULL));
        printf("F 0 %llx %s\n", p, own);
}

static void calls(bool forks)
{
        CUstream stream;

        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        printf("+ 0 %llx 1\n", word(stream));
        allocations(stream);
        if (forks) {
                pid_t child;
                CUdeviceptr p;

                fflush(stdout);
                child = fork();
                if (child == 0) {
                        for (int i = 0; i < 5000; i++)
                                (void)cu.MemAlloc(&p, BYTES);
                        exit(0);
                }
                waitpid(child, NULL, 0);
        }
        order(stream);
        host_memory(stream);
        capture(stream);
        own_stream();
        CU_OK(cu.StreamDestroy(stream));
        printf("- 0 %llx\n", word(stream));
}

/* many at once */

static CUcontext context;
static CUdeviceptr shelf[THREADS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int rounds;

static CUdeviceptr swap(int place, CUdeviceptr block)
{
        CUdeviceptr before;

        pthread_mutex_lock(&mutex);
        before = shelf[place];
        shelf[place] = block;
        pthread_mutex_unlock(&mutex);
        return before;
}

/* cuMemAlloc's blocks are freed by whoever comes by, and served to others at once. */
static void *work(void *unused)
{
        CUstream stream;
        CUdeviceptr p, q;
        CUevent event;

        CU_OK(cu.CtxSetCurrent(context));
        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
        for (int i = 0; i < rounds; i++) {
                CU_OK(cu.MemAlloc(&p, BYTES << i % 3));
                CU_OK(cu.MemAllocAsync(&q, BYTES, stream));
                CU_OK(cu_fill(&kernels, stream, q, 4, 1));
                CU_OK(cu.EventRecord(event, stream));
                CU_OK(cu.MemFreeAsync(q, stream));
                p = swap(i % THREADS, p);
                if (p)
                        CU_OK(cu.MemFree(p));
                if (i % 16 == 0)
                        CU_OK(cu.StreamSynchronize(stream));
        }
        CU_OK(cu.EventDestroy(event));
        CU_OK(cu.StreamDestroy(stream));
        return unused;
}

static void threads(void)
{
        pthread_t thread[THREADS];

        CU_OK(cu.CtxGetCurrent(&context));
        for (int i = 0; i < THREADS; i++)
                pthread_create(&thread[i], NULL, work, NULL);
        for (int i = 0; i < THREADS; i++)
                pthread_join(thread[i], NULL);
        for (int i = 0; i < THREADS; i++)
                if (shelf[i])
                        CU_OK(cu.MemFree(shelf[i]));
        printf("threads %d rounds %d\n", THREADS, rounds);
}

/* pairs, and then something happens */

static void pairs(int count)
{
        CUdeviceptr p;

        for (int i = 0; i < count; i++) {
                CU_OK(cu.MemAlloc(&p, BYTES));
                CU_OK(cu.MemFree(p));
        }
}

static void hold(int count)
{
        pairs(count);
        printf("ready\n");
        fflush(stdout);
        while (getchar() != EOF)
                ;
}

static void close_all(void)
{
        char name[] = "/tmp/streampool-record-XXXXXX";
        int own;

        pairs(2000);
        for (int fd = 3; fd < 64; fd++)
                close(fd);
        own = mkstemp(name);
        unlink(name);
        for (int i = 0; i < 60; i++)
                (void)dup(own);
        pairs(2000);
        printf("own %lld\n", (long long)lseek(own, 0, SEEK_END));
}

int main(int argc, char **argv)
{
        const char *way = argc > 1 ? argv[1] : "";

        cu_start(0);
        cu_load_kernels(&kernels);
        rounds = argc > 2 ? atoi(argv[2]) : 200;
        if (strcmp(way, "calls") == 0 || strcmp(way, "fork") == 0) {
                calls(strcmp(way, "fork") == 0);
        } else if (strcmp(way, "threads") == 0) {
                threads();
        } else if (strcmp(way, "hold") == 0) {
                hold(rounds);
        } else if (strcmp(way, "full") == 0) {
                /* The memory of the simulated driver is a file, too. */
                pairs(1);
                setrlimit(RLIMIT_FSIZE, &(struct rlimit){100 << 10, 100 << 10});
                pairs(rounds - 1);
        } else if (strcmp(way, "close") == 0) {
                close_all();
        } else if (strcmp(way, "abort") == 0) {
                pairs(1);
                abort();
        } else {
                return 2;
        }
        return 0;
}
