/* SPDX-License-Identifier: Apache-2.0 */

/* Graph gate -- launches of graphs and waits of ours, never in one stream at once */

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#include "stamp/graph_gate.h"
#include "stamp/stamp.h"
#include "tests/shim/begin.h"
#include "tests/sim_driver/control.h"

static CUcontext context;
static CUstream one, two;
static CUgraphExec graph;
static struct sp_stamper stamper;

/* The driver's function, that takes as long as a test likes. */
static sem_t inside, go_on;
static atomic_uint launched;
static CUresult (*real_launch)(CUgraphExec, CUstream);

static CUresult CUDAAPI slow_launch(CUgraphExec exec, CUstream stream)
{
        CUresult result;

        sem_post(&inside);
        sem_wait(&go_on);
        result = real_launch(exec, stream);
        launched++;
        return result;
}

static void start(void)
{
        CUgraph empty;

        context = begin_on(0);
        cr_assert_eq(sp_on_cuStreamCreate(&one, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuStreamCreate(&two, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        cr_assert_eq(cuGraphCreate(&empty, 0), CUDA_SUCCESS);
        cr_assert_eq(cuGraphInstantiateWithFlags(&graph, empty, 0), CUDA_SUCCESS);
        sem_init(&inside, 0, 0);
        sem_init(&go_on, 0, 0);
        real_launch = sp_driver.cuGraphLaunch;
        sp_driver.cuGraphLaunch = slow_launch;
        sp_stamper_init(&stamper, context);
}

TestSuite(graph_gate, .init = start, .timeout = 60);

static void *launch(void *stream)
{
        cr_assert_eq(cuCtxSetCurrent(context), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuGraphLaunch(graph, stream), CUDA_SUCCESS);
        return NULL;
}

static pthread_t launch_beside(CUstream stream)
{
        pthread_t thread;

        cr_assert_eq(pthread_create(&thread, NULL, launch, stream), 0);
        return thread;
}

static void end(pthread_t thread)
{
        sem_post(&go_on);
        cr_assert_eq(pthread_join(thread, NULL), 0);
}

static struct sp_stamp stamp_of(CUstream stream)
{
        struct sp_stamp stamp;

        cr_assert_eq(sp_stamp_on_stream(&stamper, stream, &stamp), CUDA_SUCCESS);
        return stamp;
}

static uint64_t waits(void)
{
        return sim_calls("cuStreamWaitEvent");
}

Test(graph_gate, no_wait_is_made_in_the_midst_of_a_launch)
{
        struct sp_stamp stamp = stamp_of(one);
        uint64_t before = waits();
        pthread_t thread = launch_beside(two);

        sem_wait(&inside);
        cr_assert_eq(sp_stamp_make_wait(&stamp, two), CUDA_ERROR_NOT_READY);
        cr_assert_eq(waits(), before);
        /* Nobody launches there. */
        cr_assert_eq(sp_stamp_make_wait(&stamp, one), CUDA_SUCCESS);
        cr_assert_eq(waits(), before + 1);
        end(thread);
        cr_assert_eq(sp_stamp_make_wait(&stamp, two), CUDA_SUCCESS);
        cr_assert_eq(waits(), before + 2);
        sp_stamp_drop(&stamp);
}

static void *end_soon(void *unused)
{
        const struct timespec moment = {.tv_nsec = SP_GATE_PATIENCE_NS / 10};

        nanosleep(&moment, NULL);
        sem_post(&go_on);
        return unused;
}

Test(graph_gate, a_short_launch_is_waited_for)
{
        struct sp_stamp stamp = stamp_of(one);
        bool waited = false;

        /* The machine may be busy, and the launch not end in time. */
        for (int i = 0; i < 100 && !waited; i++) {
                uint64_t before = waits();
                pthread_t thread = launch_beside(two), other;

                sem_wait(&inside);
                cr_assert_eq(pthread_create(&other, NULL, end_soon, NULL), 0);
                waited = sp_stamp_make_wait(&stamp, two) == CUDA_SUCCESS;
                cr_assert_eq(waits(), before + waited);
                cr_assert(!waited || launched == (unsigned int)i + 1);
                pthread_join(thread, NULL);
                pthread_join(other, NULL);
        }
        cr_assert(waited);
        sp_stamp_drop(&stamp);
}

Test(graph_gate, a_launch_lets_a_wait_pass)
{
        const struct timespec moment = {.tv_nsec = 20000000};
        pthread_t thread;

        cr_assert(sp_graph_gate_close(two));
        thread = launch_beside(two);
        nanosleep(&moment, NULL);
        cr_assert_neq(sem_trywait(&inside), 0);
        /* By now it has let enough of them go first. */
        cr_assert_not(sp_graph_gate_close(two));
        sp_graph_gate_open(two);
        sem_wait(&inside);
        end(thread);
        cr_assert_eq(launched, 1);
}
