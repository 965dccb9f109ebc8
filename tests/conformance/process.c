/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process -- threads, children, the end of a process, and a device that failed
 */
#include "conformance.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void before_init(void)
{
        CUdeviceptr p;
        CUcontext context;
        int number;

        CODE(MemAlloc, &p, 4096);
        CODE(MemFree, 0x1234);
        CODE(MemFree, 0);
        CODE(MemAllocAsync, &p, 4096, NULL);
        CODE(StreamSynchronize, NULL);
        CODE(CtxGetCurrent, &context);
        CODE(DriverGetVersion, &number);
        CODE(Init, 0);
        CODE(Init, 1);
        CODE(MemAlloc, &p, 4096);
}

/*
 * Not here: calls that name a stream. The real driver does not ask first whether it
 * lives; it fails, says 0 or crashes, and no program can rely on any of it.
 */
static void in_child(CUdeviceptr p)
{
        CUdeviceptr q;
        int number;

        CODE(MemAlloc, &q, 4096);
        CODE(MemFree, p);
        CODE(MemFree, 0);
        CODE(CtxSynchronize);
        CODE(Init, 0);
        CODE(DriverGetVersion, &number);
        fflush(stdout);
}

static void forked_child(void)
{
        CUdeviceptr p;
        int status = -1;
        pid_t child;

        CODE(MemAlloc, &p, 4096);
        fflush(stdout);
        child = fork();
        if (!child) {
                in_child(p);
                _exit(0);
        }
        waitpid(child, &status, 0);
        conf_say("status=%d", status);
        CODE(MemFree, p);
        CODE(MemAlloc, &p, 4096);
        CODE(MemFree, p);
}

/* A child that ends in the ordinary way runs what libraries registered for the end. */
static void child_that_exits(void)
{
        CUdeviceptr p;
        int status = -1;
        pid_t child;

        CODE(MemAlloc, &p, 4096);
        fflush(stdout);
        child = fork();
        if (!child)
                exit(3);
        waitpid(child, &status, 0);
        conf_say("exited=%d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
        CODE(MemFree, p);
}

static CUdeviceptr at_exit_block;

static void at_exit(void)
{
        CUdeviceptr p;

        CODE(MemFree, at_exit_block);
        CODE(MemAlloc, &p, 4096);
        CODE(MemFree, 0);
        CODE(CtxSynchronize);
        printf("\n");
        fflush(stdout);
}

/* Registered before cuInit, so it runs after the driver has taken its leave. */
static void frees_at_exit(void)
{
        atexit(at_exit);
        conf_cold_start();
        CODE(MemAlloc, &at_exit_block, 4096);
        exit(0);
}

/* threads */

enum { THREADS = 8, ROUNDS = 200 };

static void *storm(void *argument)
{
        unsigned seed = 1 + *(unsigned *)argument;
        uintptr_t failures = 0;
        CUdeviceptr p[8] = {0};

        CU_OK(cu.CtxSetCurrent(conf.context));
        for (int i = 0; i < ROUNDS; i++) {
                int slot = rand_r(&seed) % 8;

                if (p[slot]) {
                        failures += cu.MemFree(p[slot]) != CUDA_SUCCESS;
                        p[slot] = 0;
                } else {
                        size_t bytes = 1 + (size_t)rand_r(&seed) % 300000;

                        failures += cu.MemAlloc(&p[slot], bytes) != CUDA_SUCCESS;
                }
        }
        for (int i = 0; i < 8; i++)
                failures += cu.MemFree(p[i]) != CUDA_SUCCESS;
        return (void *)failures;
}

static void many_threads(void)
{
        pthread_t threads[THREADS];
        unsigned numbers[THREADS];
        uintptr_t failures = 0;

        for (unsigned i = 0; i < THREADS; i++) {
                numbers[i] = i;
                if (pthread_create(&threads[i], NULL, storm, &numbers[i]))
                        exit(99);
        }
        for (int i = 0; i < THREADS; i++) {
                void *result;

                pthread_join(threads[i], &result);
                failures += (uintptr_t)result;
        }
        conf_say("failures=%d", (int)failures);
}

/* A kernel writes where nothing is mapped; the simulated driver is told that one did. */
static void break_the_context(void)
{
        void (*poison)(int) = (void (*)(int))(uintptr_t)cu_symbol("sim_poison");

        if (poison)
                poison(CUDA_ERROR_ILLEGAL_ADDRESS);
        else
                CU_OK(cu_fill(&conf.kernels, conf.n1, 0x100, 16, 1));
}

static void after_an_illegal_access(void)
{
        CUdeviceptr p, q, r, kept;
        CUevent event;
        unsigned int type;

        CU_OK(cu.MemAlloc(&p, 4096));
        CU_OK(cu.MemAlloc(&kept, 4096));
        CU_OK(cu.MemAllocAsync(&q, 4096, conf.n2));
        CU_OK(cu.StreamSynchronize(conf.n2));
        CU_OK(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
        break_the_context();
        CODE(CtxSynchronize);
        CODE(MemAlloc, &r, 1 << 20);
        CODE(MemFree, p);
        CODE(MemAllocAsync, &r, 1 << 20, conf.n2);
        CODE(MemFreeAsync, q, conf.n2);
        CODE(EventRecord, event, conf.n2);
        CODE(EventQuery, event);
        CODE(StreamSynchronize, conf.n2);
        CODE(StreamQuery, conf.n1);
        CODE(PointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, kept);
}

const struct conf_case conf_process[] = {
        {"process.before_init", before_init, CONF_COLD, NULL},
        {"process.many_threads", many_threads, 0, NULL},
        {"process.forked_child", forked_child, CONF_ALONE, NULL},
        {"process.child_that_exits", child_that_exits, CONF_ALONE, NULL},
        {"process.frees_at_exit", frees_at_exit, CONF_COLD, NULL},
        {"process.after_an_illegal_access", after_an_illegal_access, CONF_ALONE, NULL},
        {NULL, NULL, 0, NULL},
};
