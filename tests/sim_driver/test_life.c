/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Life -- before cuInit, in fork children, after exit has begun; faults and counts
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test_support.h"

/* In no header of ours, and never implemented: a stub. */
CUresult cuProfilerStart(void);

/* Runs the function in a child process and returns its exit status. */
static int in_child(void (*function)(void))
{
        pid_t child = fork();
        int status;

        if (!child) {
                function();
                _exit(99);
        }
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_assert(WIFEXITED(status), "killed by signal %d", WTERMSIG(status));
        return WEXITSTATUS(status);
}

Test(sim, before_cuInit_there_is_no_driver)
{
        CUdeviceptr p;
        int count, version;
        const char *name;

        expect(3, cuDeviceGetCount(&count));
        expect(3, cuMemAlloc(&p, 16));
        expect(3, cuProfilerStart());
        ok(cuDriverGetVersion(&version));
        cr_expect_eq(version, 13000);
        ok(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &name));
        cr_expect_str_eq(name, "CUDA_ERROR_OUT_OF_MEMORY");
        expect(1, cuInit(1));
        ok(cuInit(0));
        ok(cuInit(0));
        expect(801, cuProfilerStart());
        cr_expect_eq(sim_calls("cuProfilerStart"), 2);
}

Test(sim, without_devices_cuInit_says_so)
{
        setenv("SIM_DEVICES", "0", 1);
        expect(100, cuInit(0));
}

Test(sim, devices_and_their_memory_can_be_chosen)
{
        int count;
        size_t bytes;

        setenv("SIM_DEVICES", "5", 1);
        setenv("SIM_MEMORY", "512M", 1);
        begin();
        ok(cuDeviceGetCount(&count));
        cr_expect_eq(count, 5);
        ok(cuDeviceTotalMem(&bytes, 4));
        cr_expect_eq(bytes, 512 * MIB);
        expect(101, cuDeviceTotalMem(&bytes, 5));
        cr_expect_eq(free_bytes(), 512 * MIB);
}

/* ---- fork ---- */

static CUdeviceptr parents;
static CUstream parents_stream;

static void use_in_a_child(void)
{
        CUdeviceptr p;
        int version;

        expect(3, cuMemFree(parents));
        expect(3, cuMemAlloc(&p, 16));
        expect(3, cuInit(0));
        expect(3, cuCtxSynchronize());
        expect(3, cuStreamQuery(NULL));
        expect(3, cuStreamSynchronize(NULL));
        expect(3, cuMemAllocAsync(&p, 16, NULL));
        if (parents_stream) { /* which these calls still find */
                ok(cuStreamSynchronize(parents_stream));
                expect(2, cuMemAllocAsync(&p, 16, parents_stream));
                expect(2, cuMemFreeAsync(parents, parents_stream));
                expect(1, cuMemFreeAsync(parents + 512, parents_stream));
                expect(3, cuStreamQuery(parents_stream));
        }
        ok(cuDriverGetVersion(&version));
        _exit(0);
}

/* M25 */
Test(sim, a_fork_child_has_no_driver_and_the_parent_keeps_its_own)
{
        struct world world = begin();

        parents_stream = world.s1;
        spin(&world, world.s1, 50 * MS);
        ok(cuMemAlloc(&parents, 4096));
        cr_expect_eq(in_child(use_in_a_child), 0);
        ok(cuMemsetD8(parents, 1, 4096));
        ok(cuCtxSynchronize());
        ok(cuMemFree(parents));
}

static void use_first_in_a_child(void)
{
        begin();
        ok(cuMemAlloc(&parents, 4096));
        _exit(0);
}

Test(sim, a_child_of_a_process_without_cuInit_may_have_one)
{
        cr_expect_eq(in_child(use_first_in_a_child), 0);
}

static volatile int stop;

static void *hammer(void *context)
{
        CUdeviceptr p;

        ok(cuCtxSetCurrent(context));
        while (!stop) {
                ok(cuMemAlloc(&p, 4096));
                ok(cuMemFree(p));
        }
        return NULL;
}

Test(sim, forking_beside_busy_threads_leaves_no_lock_behind)
{
        struct world world = begin();
        pthread_t threads[4];

        ok(cuMemAlloc(&parents, 4096));
        for (int i = 0; i < 4; i++)
                pthread_create(&threads[i], NULL, hammer, world.context);
        for (int i = 0; i < 20; i++)
                cr_expect_eq(in_child(use_in_a_child), 0);
        stop = 1;
        for (int i = 0; i < 4; i++)
                pthread_join(threads[i], NULL);
}

static int forks;

static void count_fork(void)
{
        forks++;
}

Test(sim, cuInit_does_not_fork_unless_told_to)
{
        pthread_atfork(count_fork, NULL, NULL);
        ok(cuInit(0));
        cr_expect_eq(forks, 0);
}

Test(sim, cuInit_forks_when_it_is_told_to)
{
        setenv("SIM_INIT_FORKS", "1", 1);
        pthread_atfork(count_fork, NULL, NULL);
        begin();
        cr_expect_eq(forks, 1);
        ok(cuMemAlloc(&parents, 16));
}

/* ---- exit ---- */

static int before_code = -1;

static void alive(void)
{
        before_code = cuMemFree(parents);
}

static void dead(void)
{
        CUdeviceptr p;
        int version;

        _exit(before_code == 0 && cuMemAlloc(&p, 16) == 4 && cuMemFree(parents) == 4 &&
                              cuInit(0) == 4 && cuDriverGetVersion(&version) == 4
                      ? 0
                      : 1);
}

static void end_a_process(void)
{
        atexit(dead);
        begin();
        ok(cuMemAlloc(&parents, 16));
        atexit(alive);
        exit(98);
}

/* D19: handlers registered after cuInit still have a driver, those from before have none. */
Test(sim, the_driver_ends_in_the_order_of_atexit)
{
        cr_expect_eq(in_child(end_a_process), 0);
}

/* ---- faults ---- */

Test(sim, the_nth_call_fails_once_and_does_nothing)
{
        CUdeviceptr p = 7;
        size_t live;

        begin();
        live = sim_live_allocations();
        sim_fail("cuMemAlloc_v2", 2, 2);
        ok(cuMemAlloc(&p, 16));
        p = 7;
        expect(2, cuMemAlloc(&p, 16));
        cr_expect_eq(p, 7);
        ok(cuMemAlloc(&p, 16));
        cr_expect_eq(sim_live_allocations(), live + 2);
        sim_fail("*", 3, 999);
        ok(cuCtxSynchronize());
        ok(cuMemFree(p));
        expect(999, cuCtxSynchronize());
        ok(cuCtxSynchronize());
        sim_fail("cuMemAlloc_v2", 1, 2);
        sim_fail_none();
        ok(cuMemAlloc(&p, 16));
}

Test(sim, every_exported_function_can_be_made_to_fail)
{
        begin();
        sim_fail("cuProfilerStart", 1, 719);
        expect(719, cuProfilerStart());
        sim_fail("cuGetErrorName", 1, 1);
        expect(1, cuGetErrorName(0, &(const char *){0}));
        sim_fail("cuDriverGetVersion", 1, 999);
        expect(999, cuDriverGetVersion(&(int){0}));
}

Test(sim, faults_come_from_the_environment_too)
{
        CUdeviceptr p;

        setenv("SIM_FAIL", "cuMemAlloc_v2:1:2,cuMemFree_v2:2:999", 1);
        begin();
        expect(2, cuMemAlloc(&p, 16));
        ok(cuMemAlloc(&p, 16));
        ok(cuMemFree(0));
        expect(999, cuMemFree(p));
        ok(cuMemFree(p));
}

/* ---- counts and the log ---- */

static void make_a_log(void)
{
        CUdeviceptr p;

        begin();
        ok(cuMemAlloc(&p, 16));
        ok(cuMemFree(p));
        ok(cuMemFree(0));
        exit(0);
}

/* How often the file has this line. */
static int lines(const char *path, const char *line)
{
        FILE *file = fopen(path, "r");
        char text[256];
        int count = 0;

        cr_assert(file);
        while (fgets(text, sizeof(text), file))
                count += !strcmp(text, line);
        fclose(file);
        return count;
}

Test(sim, calls_are_logged_and_counted)
{
        char folder[] = "/tmp/sim-test-XXXXXX", log[64], calls[64];

        cr_assert(mkdtemp(folder));
        snprintf(log, sizeof(log), "%s/log", folder);
        snprintf(calls, sizeof(calls), "%s/calls", folder);
        setenv("SIM_LOG", log, 1);
        setenv("SIM_CALLS", calls, 1);
        cr_expect_eq(in_child(make_a_log), 0);
        cr_expect_eq(lines(log, "cuMemAlloc_v2\n"), 1);
        cr_expect_eq(lines(log, "cuMemFree_v2\n"), 2);
        cr_expect_eq(lines(calls, "cuMemFree_v2\t2\n"), 1);
        cr_expect_eq(lines(calls, "cuInit\t1\n"), 1);
        unlink(log);
        unlink(calls);
        rmdir(folder);
}
