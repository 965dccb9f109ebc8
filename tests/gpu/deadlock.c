/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deadlock -- the list of cases, and how one is run
 *
 *   deadlock --list    names; those that hang on the bare driver say so
 *   deadlock CASE [N]  one case: "CASE ok", or status 1 if a kernel gave up
 *
 * A case that is done in many ways begins with the N-th of them: an allocator that
 * has seen many streams may be another one later on.
 *
 * A case that hangs altogether is ended by whoever runs it; the last line on
 * standard error then says how far it came.
 */
#include "deadlock.h"

/* Kernels give up after this; longer than anything that is only slow. */
#define LIMIT_NS UINT64_C(5000000000)

static const struct {
        const char *name;
        void (*run)(struct ground *g);
} cases[] = {
#define CASE(name) {#name, case_##name},
        CASES
#undef CASE
};

/* The bare driver waits there for a kernel that only the waiting thread would have ended; in the
 * second one only on a GPU, where an allocation waits behind another thread's free. */
static const struct {
        const char *name, *remark;
} hang_bare[] = {
        {"free_behind", " hangs-bare"},
        {"first_alloc_opens", " hangs-bare-on-a-gpu"},
};

static const char *remark_on(const char *name)
{
        for (size_t i = 0; i < sizeof(hang_bare) / sizeof(hang_bare[0]); i++)
                if (!strcmp(name, hang_bare[i].name))
                        return hang_bare[i].remark;
        return "";
}

/* ---- gates ---- */

static CUdeviceptr gate(const struct ground *g, enum opener opener)
{
        return opener == BY_COPY || opener == BY_SET ? g->far_gate
                                                     : (CUdeviceptr)(uintptr_t)g->gates;
}

void hold(struct ground *g, CUstream stream, enum opener opener)
{
        CU_OK(cu_hold(&g->kernels, stream, gate(g, opener), 1, LIMIT_NS,
                      (CUdeviceptr)(uintptr_t)g->gave_up));
}

void open_by_host(struct ground *g)
{
        __atomic_store_n(g->gates, 1, __ATOMIC_RELEASE);
}

static void CUDA_CB host_function(void *ground)
{
        open_by_host(ground);
}

void open_on(struct ground *g, CUstream stream, enum opener opener)
{
        CUdeviceptr p = gate(g, opener);

        switch (opener) {
        case BY_KERNEL:
                CU_OK(cu_fill(&g->kernels, stream, p, 1, 1));
                break;
        case BY_COPY:
                CU_OK(cu.MemcpyHtoDAsync(p, g->one, sizeof(*g->one), stream));
                break;
        case BY_SET:
                CU_OK(cu.MemsetD32Async(p, 1, 1, stream));
                break;
        case BY_VALUE:
                CU_OK(cu.StreamWriteValue32(stream, p, 1, 0));
                break;
        case BY_GRAPH:
                CU_OK(cu.GraphLaunch(g->open, stream));
                break;
        default:
                CU_OK(cu.LaunchHostFunc(stream, host_function, g));
        }
}

/* ---- memory ---- */

CUdeviceptr take(size_t bytes)
{
        CUdeviceptr p;

        CU_OK(cu.MemAlloc(&p, bytes));
        cu_owned(p, bytes);
        return p;
}

CUdeviceptr take_async(CUstream stream, size_t bytes)
{
        CUdeviceptr p;

        CU_OK(cu.MemAllocAsync(&p, bytes, stream));
        cu_owned(p, bytes);
        return p;
}

void give(CUdeviceptr p)
{
        cu_disowned(p);
        CU_OK(cu.MemFree(p));
}

void give_async(CUdeviceptr p, CUstream stream)
{
        cu_disowned(p);
        CU_OK(cu.MemFreeAsync(p, stream));
}

void free_all(CUdeviceptr *blocks, int count)
{
        for (int i = 0; i < count; i++)
                give(blocks[i]);
}

void fill_and_check(struct ground *g, CUstream stream, CUdeviceptr p, uint64_t words)
{
        static uint32_t serial;
        uint32_t value = __atomic_add_fetch(&serial, 1, __ATOMIC_RELAXED);

        CU_OK(cu_fill(&g->kernels, stream, p, words, value));
        CU_OK(cu_check(&g->kernels, stream, p, words, value,
                       (CUdeviceptr)(uintptr_t)g->mismatches));
}

void churn(struct ground *g, CUstream stream, size_t bytes)
{
        CUdeviceptr p;

        CU_OK(cu_spin(&g->kernels, stream, 300000));
        for (int i = 0; i < 6; i++) {
                p = take(bytes);
                fill_and_check(g, stream, p, 256);
                give(p);
        }
}

void loop_async(struct ground *g, CUstream stream, int count, size_t bytes)
{
        for (int i = 0; i < count; i++) {
                CUdeviceptr p = take_async(stream, bytes);

                fill_and_check(g, stream, p, 256);
                give_async(p, stream);
        }
}

void loop_sync(struct ground *g, CUstream stream, int count, size_t bytes, CUdeviceptr *blocks)
{
        for (int i = 0; i < count; i++) {
                blocks[i] = take(bytes);
                fill_and_check(g, stream, blocks[i], 256);
        }
}

/* ---- the ground ---- */

static void make_graph(struct ground *g, CUstream stream)
{
        CUgraph graph;

        CU_OK(cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        CU_OK(cu_fill(&g->kernels, stream, (CUdeviceptr)(uintptr_t)g->gates, 1, 1));
        CU_OK(cu.StreamEndCapture(stream, &graph));
        CU_OK(cu.GraphInstantiateWithFlags(&g->open, graph, 0));
        CU_OK(cu.GraphDestroy(graph));
}

static void warm_up(struct ground *g)
{
        CUstream stream;

        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        make_graph(g, stream);
        for (int opener = 0; opener < OPENERS; opener++)
                open_on(g, stream, opener);
        hold(g, stream, BY_KERNEL);
        CU_OK(cu_meet(&g->kernels, stream, (CUdeviceptr)(uintptr_t)g->gates,
                      (CUdeviceptr)(uintptr_t)g->gates, 1, LIMIT_NS,
                      (CUdeviceptr)(uintptr_t)g->gave_up));
        CU_OK(cu_spin(&g->kernels, stream, 1000));
        loop_async(g, stream, 1, 4096);
        CU_OK(cu.CtxSynchronize());
        CU_OK(cu.StreamDestroy(stream));
}

void ground_open(struct ground *g, int start)
{
        *g = (struct ground){.context = cu_start(0), .start = start};
        cu_load_kernels(&g->kernels);
        g->gave_up = cu_counter(1);
        g->mismatches = cu_counter(1);
        g->gates = cu_counter(GATES);
        g->one = cu_counter(1);
        *g->one = 1;
        g->far_gate = take(sizeof(uint32_t));
        CU_OK(cu.StreamCreate(&g->a, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.StreamCreate(&g->b, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.StreamCreate(&g->blocking, CU_STREAM_DEFAULT));
        g->first = g->a;
        warm_up(g);
        ground_settle(g);
}

bool ground_settle(struct ground *g)
{
        CU_OK(cu.CtxSynchronize());
        memset(g->gates, 0, GATES * sizeof(*g->gates));
        CU_OK(cu.MemsetD32Async(g->far_gate, 0, 1, g->first));
        /* Twice, for allocators that begin to count streams with the first time. */
        CU_OK(cu.CtxSynchronize());
        CU_OK(cu.CtxSynchronize());
        return !*g->gave_up && !*g->mismatches;
}

int ground_close(struct ground *g)
{
        bool right = ground_settle(g);

        if (!right)
                printf("%u kernels waited in vain, %u words were wrong\n", *g->gave_up,
                       *g->mismatches);
        give(g->far_gate);
        CU_OK(cu.GraphExecDestroy(g->open));
        CU_OK(cu.StreamDestroy(g->a));
        CU_OK(cu.StreamDestroy(g->b));
        CU_OK(cu.StreamDestroy(g->blocking));
        CU_OK(cu.MemFreeHost(g->gave_up));
        CU_OK(cu.MemFreeHost(g->mismatches));
        CU_OK(cu.MemFreeHost(g->gates));
        CU_OK(cu.MemFreeHost(g->one));
        return !right;
}

int main(int argc, char **argv)
{
        static struct ground ground;
        const char *wanted = argc == 2 || argc == 3 ? argv[1] : "";

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                const char *name = cases[i].name;

                if (!strcmp(wanted, "--list"))
                        printf("%s%s\n", name, remark_on(name));
                if (strcmp(wanted, name))
                        continue;
                ground_open(&ground, argc == 3 ? atoi(argv[2]) : 0);
                cases[i].run(&ground);
                if (ground_close(&ground))
                        return 1;
                printf("%s ok\n", name);
                return 0;
        }
        if (!strcmp(wanted, "--list"))
                return 0;
        fprintf(stderr, "usage: deadlock --list | CASE [N]\n");
        return 2;
}
