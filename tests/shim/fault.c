/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Fault -- allocations that are made to fail: which ones, and that nothing else comes of them
 */

#define _GNU_SOURCE

#include "track/fault.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/counters.h"
#include "tests/shim/begin.h"
#include "tests/sim_driver/control.h"

#define MIB ((size_t)1 << 20)

/* counting, by rules of its own */

static struct sp_faults faults;

static void set(const char *text)
{
        char bytes[480];
        struct sp_text complaint;

        memset(&faults, 0, sizeof(faults));
        sp_text_init(&complaint, bytes, sizeof(bytes));
        cr_assert(sp_fault_read(text, faults.rule, &faults.count, &complaint), "%s", bytes);
}

/* The error of the next call, or 0. */
static int next(enum sp_kind kind, size_t bytes)
{
        struct sp_fault_call call = {kind, bytes, "app (main)"};
        struct sp_fault fault;

        return sp_fault_strikes(&faults, &call, &fault) ? fault.error : 0;
}

Test(fault, strikes_no_more_often_than_times_says)
{
        unsigned int failed = 0;

        set("every=2,times=3");
        for (unsigned int i = 0; i < 20; i++)
                failed += next(SP_KIND_DEVICE, 8) != 0;
        cr_expect_eq(failed, 3);
        cr_expect_eq(faults.matched[0], 20);
        cr_expect_eq(faults.failed[0], 3);
        cr_expect_eq(faults.injected, 3);
}

Test(fault, counts_only_what_the_rule_matches)
{
        set("kind=async,size=1M-,nth=2");
        cr_expect_eq(next(SP_KIND_ASYNC, MIB), 0);
        cr_expect_eq(next(SP_KIND_DEVICE, MIB), 0);
        cr_expect_eq(next(SP_KIND_ASYNC, MIB - 1), 0);
        cr_expect_eq(next(SP_KIND_ASYNC, MIB), CUDA_ERROR_OUT_OF_MEMORY);
        cr_expect_eq(next(SP_KIND_ASYNC, MIB), 0, "once");
        cr_expect_eq(faults.matched[0], 3);
}

Test(fault, is_of_the_first_rule_that_wants_it_and_all_of_them_count)
{
        struct sp_fault_call call = {SP_KIND_DEVICE, 8, NULL};
        struct sp_fault fault = {0};

        set("every=2,error=700;every=3,error=999,times=1;kind=async,after=0");
        for (unsigned int i = 1; i <= 6; i++) {
                bool struck = sp_fault_strikes(&faults, &call, &fault);

                cr_expect_eq(struck, i % 2 == 0 || i == 3, "call %u", i);
                if (i == 3)
                        cr_expect(fault.error == 999 && fault.by == 1 && fault.ordinal == 3 &&
                                  fault.number == 2);
        }
        cr_expect(fault.error == 700 && fault.by == 0 && fault.ordinal == 6 && fault.number == 4);
        cr_expect_eq(faults.matched[1], 6);
        cr_expect_eq(faults.failed[1], 1);
        cr_expect_eq(faults.matched[2], 0);
        cr_expect_eq(next(SP_KIND_ASYNC, 8), CUDA_ERROR_OUT_OF_MEMORY);
}

enum { THREADS = 4, ROUNDS = 5000 };

static void *ask(void *unused)
{
        for (unsigned int i = 0; i < ROUNDS; i++)
                next(SP_KIND_DEVICE, 8);
        return unused;
}

Test(fault, is_counted_once_by_threads_at_once)
{
        pthread_t threads[THREADS];

        set("every=2,times=3000;p=0.5,seed=3");
        for (unsigned int i = 0; i < THREADS; i++)
                cr_assert_eq(pthread_create(&threads[i], NULL, ask, NULL), 0);
        for (unsigned int i = 0; i < THREADS; i++)
                cr_assert_eq(pthread_join(threads[i], NULL), 0);
        cr_expect_eq(faults.matched[0], THREADS * ROUNDS);
        cr_expect_eq(faults.failed[0], 3000);
        cr_expect_eq(faults.injected, faults.failed[0] + faults.failed[1]);
}

/* each kind, by its handlers */

static CUstream stream;
static CUmemoryPool pool;
static CUdeviceptr address;
static size_t pitch;
static CUarray array;
static CUmipmappedArray mipmap;
static CUmemGenericAllocationHandle handle;
static void *host;
static char page[8192];

static CUresult plain(void)
{
        return sp_on_cuMemAlloc_v2(&address, 4096);
}

static CUresult ordered(void)
{
        return sp_on_cuMemAllocAsync(&address, 4096, stream);
}

static CUresult from_pool(void)
{
        return sp_on_cuMemAllocFromPoolAsync(&address, 4096, pool, stream);
}

static CUresult pitched(void)
{
        return sp_on_cuMemAllocPitch_v2(&address, &pitch, 512, 8, 4);
}

static CUresult managed(void)
{
        return sp_on_cuMemAllocManaged(&address, 4096, CU_MEM_ATTACH_GLOBAL);
}

static CUresult flat(void)
{
        CUDA_ARRAY_DESCRIPTOR desc = {64, 16, CU_AD_FORMAT_FLOAT, 1};

        return sp_on_cuArrayCreate_v2(&array, &desc);
}

static CUDA_ARRAY3D_DESCRIPTOR deep_desc = {64, 16, 0, CU_AD_FORMAT_FLOAT, 1, 0};

static CUresult deep(void)
{
        return sp_on_cuArray3DCreate_v2(&array, &deep_desc);
}

static CUresult levels(void)
{
        return sp_on_cuMipmappedArrayCreate(&mipmap, &deep_desc, 1);
}

static CUresult physical(void)
{
        CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};

        return sp_on_cuMemCreate(&handle, 2 * MIB, &prop, 0);
}

static CUresult locked(void)
{
        return sp_on_cuMemAllocHost_v2(&host, 4096);
}

static CUresult locked_with_flags(void)
{
        return sp_on_cuMemHostAlloc(&host, 4096, 0);
}

static CUresult registered(void)
{
        return sp_on_cuMemHostRegister_v2(page, 4096, 0);
}

static CUresult registered_before(void)
{
        return sp_on_cuMemHostRegister(page, 4096, 0);
}

/* What these would need is not there: they fail in another way when they are not made to. */

static CUresult mapped(void)
{
        return sp_on_cuMemMap(address, 2 * MIB, 0, handle, 0);
}

static CUresult imported(void)
{
        return sp_on_cuIpcOpenMemHandle_v2(&address, (CUipcMemHandle){{0}}, 1);
}

static CUresult imported_before(void)
{
        return sp_on_cuIpcOpenMemHandle(&address, (CUipcMemHandle){{0}}, 1);
}

static CUresult imported_pointer(void)
{
        CUmemPoolPtrExportData exported = {{0}};

        return sp_on_cuMemPoolImportPointer(&address, NULL, &exported);
}

static CUresult imported_buffer(void)
{
        CUDA_EXTERNAL_MEMORY_BUFFER_DESC desc = {.size = 4096};

        return sp_on_cuExternalMemoryGetMappedBuffer(&address, NULL, &desc);
}

static CUresult shared(void)
{
        return sp_on_cuMemImportFromShareableHandle(&handle, NULL,
                                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

static const struct {
        enum sp_kind kind;
        const char *function;
        CUresult (*make)(void);
        bool works; /* where it is not made to fail */
} calls[] = {
        {SP_KIND_DEVICE, "cuMemAlloc", plain, true},
        {SP_KIND_ASYNC, "cuMemAllocAsync", ordered, true},
        {SP_KIND_ASYNC, "cuMemAllocFromPoolAsync", from_pool, true},
        {SP_KIND_PITCH, "cuMemAllocPitch", pitched, true},
        {SP_KIND_MANAGED, "cuMemAllocManaged", managed, true},
        {SP_KIND_ARRAY, "cuArrayCreate", flat, true},
        {SP_KIND_ARRAY, "cuArray3DCreate", deep, true},
        {SP_KIND_MIPMAP, "cuMipmappedArrayCreate", levels, true},
        {SP_KIND_VMM, "cuMemCreate", physical, true},
        {SP_KIND_PINNED, "cuMemAllocHost", locked, true},
        {SP_KIND_PINNED, "cuMemHostAlloc", locked_with_flags, true},
        {SP_KIND_REGISTERED, "cuMemHostRegister", registered, true},
        {SP_KIND_REGISTERED, "cuMemHostRegister", registered_before, false}, /* twice */
        {SP_KIND_MAPPED, "cuMemMap", mapped, false},
        {SP_KIND_IMPORTED, "cuIpcOpenMemHandle", imported, false},
        {SP_KIND_IMPORTED, "cuIpcOpenMemHandle", imported_before, false},
        {SP_KIND_IMPORTED, "cuMemPoolImportPointer", imported_pointer, false},
        {SP_KIND_IMPORTED, "cuExternalMemoryGetMappedBuffer", imported_buffer, false},
        {SP_KIND_SHARED, "cuMemImportFromShareableHandle", shared, false},
};

#define CALLS (sizeof(calls) / sizeof(calls[0]))

static int reading_end;

/* The lines on stderr since the last look. */
static const char *told(void)
{
        static char text[4096];
        ssize_t got = read(reading_end, text, sizeof(text) - 1);

        text[got > 0 ? got : 0] = '\0';
        return text;
}

static void start(const char *mode, const char *rules)
{
        int ends[2];

        setenv("STREAMPOOL_MODE", mode, 1);
        setenv("STREAMPOOL_FAULT", rules, 1);
        cr_assert_eq(pipe2(ends, O_NONBLOCK), 0);
        dup2(ends[1], STDERR_FILENO);
        reading_end = ends[0];
        begin_on(0);
        cr_assert_eq(sp_on_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        cr_assert_eq(cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
}

static void put_marks(void)
{
        address = 5;
        pitch = 6;
        array = (CUarray)&array;
        mipmap = (CUmipmappedArray)&mipmap;
        handle = 7;
        host = &host;
}

/* Of the model and the ledger. */
static uint64_t made(void)
{
        struct sp_ledger_totals totals;
        uint64_t sum = 0;

        cr_assert(sp_ledger_totals(&totals));
        for (unsigned int i = 0; i < SP_KIND_COUNT; i++)
                sum += totals.kind[i].tally.made;
        return sum;
}

static void expect_failure(size_t i, CUresult result)
{
        bool is_zeroed = calls[i].kind == SP_KIND_DEVICE || calls[i].kind == SP_KIND_ASYNC;

        put_marks();
        sim_calls_reset();
        cr_expect_eq(calls[i].make(), result, "%s", calls[i].function);
        cr_expect_eq(sim_calls_all(), 0, "%s: the driver heard of it", calls[i].function);
        cr_expect_eq(made(), 0, "%s", calls[i].function);
        cr_expect_eq(address, is_zeroed && result == CUDA_ERROR_OUT_OF_MEMORY ? 0 : 5, "%s",
                     calls[i].function);
        cr_expect(pitch == 6 && array == (CUarray)&array && mipmap == (CUmipmappedArray)&mipmap &&
                          handle == 7 && host == &host,
                  "%s: written on success only", calls[i].function);
}

static CUresult wanted(enum sp_kind kind)
{
        switch (kind) {
        case SP_KIND_DEVICE:
        case SP_KIND_PITCH:
                return CUDA_ERROR_UNKNOWN;
        case SP_KIND_VMM:
        case SP_KIND_MAPPED:
                return CUDA_ERROR_ILLEGAL_ADDRESS;
        default:
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
}

static void fail_all(const char *mode)
{
        start(mode, "kind=device+pitch,error=unknown;error=700,size=2M;after=0");
        for (size_t i = 0; i < CALLS; i++) {
                char words[96];

                expect_failure(i, wanted(calls[i].kind));
                snprintf(words, sizeof(words), "streampool: fault %zu: %s of ", i + 1,
                         calls[i].function);
                cr_expect_eq(strncmp(told(), words, strlen(words)), 0, "%s", words);
        }
        cr_expect_eq(sp_faults.injected, CALLS);
        cr_expect_eq(sp_counter_sum(SP_COUNTER_allocs_refused), 0);
}

Test(fault, of_every_kind_has_no_effect)
{
        fail_all("pool");
}

Test(fault, of_every_kind_has_no_effect_when_only_observing)
{
        fail_all("observe");
}

/* Each call that works without, with a rule that is about other kinds. */
Test(fault, leaves_other_kinds_alone)
{
        start("pool", "kind=shared");
        for (size_t i = 0; i < CALLS; i++) {
                if (calls[i].works)
                        cr_expect_eq(calls[i].make(), CUDA_SUCCESS, "%s", calls[i].function);
        }
        cr_expect_eq(shared(), CUDA_ERROR_OUT_OF_MEMORY);
        cr_expect_eq(sp_faults.matched[0], 1);
}

Test(fault, comes_between_calls_that_the_pool_serves)
{
        CUdeviceptr first;

        start("pool", "nth=2");
        cr_expect_eq(plain(), CUDA_SUCCESS);
        first = address;
        cr_expect_eq(plain(), CUDA_ERROR_OUT_OF_MEMORY);
        cr_expect_eq(plain(), CUDA_SUCCESS);
        cr_expect_eq(served_by_pools(), 2);
        cr_expect_eq(sp_on_cuMemFree_v2(first), CUDA_SUCCESS);
        cr_expect_eq(sp_on_cuMemFree_v2(address), CUDA_SUCCESS);
}

/* Pairs that find their block at hand otherwise. */
Test(fault, comes_in_the_middle_of_pairs)
{
        start("pool", "every=10");
        for (unsigned int i = 1; i <= 100; i++) {
                bool fails = i % 10 == 0;

                cr_expect_eq(ordered(), fails ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS, "%u", i);
                if (!fails)
                        cr_assert_eq(sp_on_cuMemFreeAsync(address, stream), CUDA_SUCCESS);
        }
        cr_expect_eq(served_by_pools(), 90);
        cr_expect_eq(sp_faults.failed[0], 10);
}

Test(fault, leaves_a_capture_as_it_is)
{
        CUgraph graph;

        start("pool", "times=2");
        cr_assert_eq(sp_on_cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL),
                     CUDA_SUCCESS);
        cr_expect_eq(plain(), CUDA_ERROR_OUT_OF_MEMORY);
        cr_expect_eq(ordered(), CUDA_ERROR_OUT_OF_MEMORY);
        cr_expect_eq(sp_on_cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
}

Test(fault, is_none_where_no_memory_is_asked_for)
{
        CUDA_ARRAY_DESCRIPTOR desc = {64, 16, CU_AD_FORMAT_FLOAT, 1};

        start("pool", "after=0");
        cr_expect_eq(sp_on_cuMemAlloc_v2(&address, 0), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_on_cuMemAlloc_v2(NULL, 4096), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_on_cuMemAllocAsync(&address, 0, stream), CUDA_SUCCESS);
        cr_expect_eq(sp_on_cuMemHostAlloc(&host, 0, 0), CUDA_SUCCESS);
        cr_expect_eq(sp_on_cuMemAllocPitch_v2(&address, NULL, 8, 8, 4), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_on_cuArrayCreate_v2(NULL, &desc), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_faults.matched[0], 0);
}

/* words */

Test(fault, is_told_with_the_call_and_what_leads_back_to_it)
{
        start("pool", "kind=async,error=35,times=1;after=1,p=1,seed=42");
        cr_expect_eq(ordered(), (CUresult)35);
        cr_expect_str_eq(told(), "streampool: fault 1: cuMemAllocAsync of 4096 bytes by unknown "
                                 "failed with error 35 (call 1 of rule 1)\n");
        cr_expect_eq(plain(), CUDA_ERROR_OUT_OF_MEMORY);
        cr_expect_str_eq(told(),
                         "streampool: fault 2: cuMemAlloc of 4096 bytes by unknown failed with "
                         "CUDA_ERROR_OUT_OF_MEMORY (call 2 of rule 2, seed 42)\n");
        cr_expect_eq(imported(), CUDA_ERROR_OUT_OF_MEMORY);
        cr_expect(strstr(told(), "cuIpcOpenMemHandle of an unknown size by"));
}

Test(fault, has_a_seed_that_is_told_where_none_was_said)
{
        char words[128];

        start("pool", "p=0.5;nth=1000");
        snprintf(words, sizeof(words),
                 "streampool: STREAMPOOL_FAULT, rule 1: in this run it is "
                 "p=0.5,seed=%u\n",
                 sp_faults.rule[0].seed);
        cr_expect_str_eq(told(), words);
}

Test(fault, is_none_where_a_rule_is_wrong)
{
        start("pool", "after=0;kind=devise");
        cr_expect(strstr(told(), "streampool: STREAMPOOL_FAULT is wrong, and nothing is made to "
                                 "fail: rule 2 (kind=devise): kind=devise will not do: kind= takes "
                                 "device, async,"));
        cr_expect_eq(sp_faults.count, 0);
        cr_expect_eq(plain(), CUDA_SUCCESS);
        cr_expect_eq(ordered(), CUDA_SUCCESS);
}
