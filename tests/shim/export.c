/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Export -- handles of blocks, as far as one process can see them
 *
 * What other processes do with them is in tests/e2e/apps/borrow.c.
 */

#include <criterion/criterion.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/lock.h"
#include "report/counters.h"
#include "tests/shim/begin.h"
#include "track/export.h"
#include "track/porter.h"
#include "track/state.h"

#define MIB ((size_t)1 << 20)

/* Is the call that takes a descriptor out of a process filtered, as in a container? */
static bool is_filtered;

long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, ...);

long __wrap_syscall(long number, ...)
{
        long argument[6];
        va_list list;

        va_start(list, number);
        for (int i = 0; i < 6; i++)
                argument[i] = va_arg(list, long);
        va_end(list);
        if (number == SYS_pidfd_getfd && is_filtered) {
                errno = EPERM;
                return -1;
        }
        return __real_syscall(number, argument[0], argument[1], argument[2], argument[3],
                              argument[4], argument[5]);
}

/* Could another thread come between the free of a block and the end of its record? */
static bool is_late;

void __real_sp_export_end(const struct spm_allocation *block);
void __wrap_sp_export_end(const struct spm_allocation *block);

void __wrap_sp_export_end(const struct spm_allocation *block)
{
        is_late = sp_lock_held() != SP_RANK_MODEL;
        __real_sp_export_end(block);
}

static CUdeviceptr alloc(size_t size)
{
        CUdeviceptr pointer = 0;

        cr_assert_eq(sp_on_cuMemAlloc_v2(&pointer, size), CUDA_SUCCESS);
        return pointer;
}

static CUipcMemHandle handle_of(CUdeviceptr pointer)
{
        CUipcMemHandle handle;

        memset(&handle, 1, sizeof(handle));
        cr_assert_eq(sp_on_cuIpcGetMemHandle(&handle, pointer), CUDA_SUCCESS);
        return handle;
}

static bool is_same(CUipcMemHandle a, CUipcMemHandle b)
{
        return !memcmp(&a, &b, sizeof(a));
}

static unsigned long long attribute(CUpointer_attribute name, CUdeviceptr pointer)
{
        unsigned long long value = 0;

        cr_assert_eq(sp_on_cuPointerGetAttribute(&value, name, pointer), CUDA_SUCCESS);
        return value;
}

Test(export, a_block_has_one_handle_and_its_neighbour_another)
{
        CUdeviceptr one, other;

        begin_on(0);
        one = alloc(1000);
        other = alloc(1000);
        cr_expect_eq(attribute(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, one), 1);
        cr_expect_eq(attribute(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, one), 0);
        cr_expect(is_same(handle_of(one), handle_of(one + 999)));
        cr_expect_not(is_same(handle_of(one), handle_of(other)));
}

Test(export, a_freed_block_has_none_and_its_successor_a_new_one)
{
        CUipcMemHandle first, refused;
        CUdeviceptr pointer;

        begin_on(0);
        pointer = alloc(5 * MIB);
        first = handle_of(pointer);
        cr_assert_eq(sp_on_cuMemFree_v2(pointer), CUDA_SUCCESS);
        cr_expect_eq(sp_on_cuIpcGetMemHandle(&refused, pointer), CUDA_ERROR_INVALID_VALUE);
        cr_expect_not(is_same(first, handle_of(alloc(5 * MIB))));
}

static struct sp_seal seal_of(CUdeviceptr pointer)
{
        CUipcMemHandle handle = handle_of(pointer);
        struct sp_seal seal;

        cr_assert(sp_seal_read(&handle, &seal));
        return seal;
}

static bool is_wiped(const struct sp_seal *seal)
{
        unsigned char key[sizeof(seal->key)], none[sizeof(seal->key)] = {0};

        cr_assert_eq(pread(seal->table, key, sizeof(key), (off_t)seal->at), sizeof(key));
        return !memcmp(key, none, sizeof(key));
}

/* What others would open may be given back as soon as the model is left. */
Test(export, a_record_ends_before_anybody_can_have_the_memory)
{
        CUdeviceptr pointer;
        struct sp_seal seal;

        begin_on(0);
        pointer = alloc(5 * MIB);
        seal = seal_of(pointer);
        is_late = true;
        cr_expect_not(is_wiped(&seal));
        cr_assert_eq(sp_on_cuMemFree_v2(pointer), CUDA_SUCCESS);
        cr_expect(is_wiped(&seal));
        cr_expect_not(is_late);
}

Test(export, no_handle_opens_in_the_process_that_made_it)
{
        CUdeviceptr pointer, opened = 7;

        begin_on(0);
        pointer = alloc(1000);
        cr_expect_eq(sp_on_cuIpcOpenMemHandle_v2(&opened, handle_of(pointer), 1),
                     CUDA_ERROR_INVALID_CONTEXT);
        cr_expect_eq(opened, 7);
}

Test(export, memory_that_the_driver_would_not_export_is_refused)
{
        CUipcMemHandle handle;
        CUdeviceptr pointer;
        void *pinned;

        begin_on(0);
        cr_assert_eq(sp_on_cuMemAllocAsync(&pointer, MIB, CU_STREAM_LEGACY), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemHostAlloc(&pinned, 4096, 0), CUDA_SUCCESS);
        cr_expect_eq(sp_on_cuIpcGetMemHandle(&handle, pointer), CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(sp_on_cuIpcGetMemHandle(&handle, (CUdeviceptr)(uintptr_t)pinned),
                     CUDA_ERROR_INVALID_VALUE);
        cr_expect_eq(attribute(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, pointer), 0);
        pointer = alloc(1000);
        cr_expect_eq(sp_on_cuIpcGetMemHandle(NULL, pointer), CUDA_ERROR_INVALID_VALUE);
}

/* Each question on a connection of its own: the porter hangs up on who asks for what is not. */
static bool hands_out(struct sp_seal seal, uint32_t part)
{
        int connection = sp_porter_meet(&seal), descriptor;

        cr_assert_geq(connection, 0);
        descriptor = sp_porter_ask(connection, &seal, part);
        close(connection);
        if (descriptor >= 0)
                close(descriptor);
        return descriptor >= 0;
}

Test(export, no_thread_is_started_where_descriptors_can_be_taken)
{
        begin_on(0);
        cr_expect_eq(seal_of(alloc(1000)).porter, 0);
}

Test(export, a_porter_hands_out_what_the_key_is_for)
{
        struct sp_seal seal, wrong;
        CUdeviceptr pointer;

        is_filtered = true;
        begin_on(0);
        pointer = alloc(1000);
        cr_expect_eq(attribute(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, pointer), 1);
        seal = seal_of(pointer);
        cr_assert_neq(seal.porter, 0);
        cr_expect(hands_out(seal, SP_PORTER_TABLE));
        cr_expect(hands_out(seal, 0));
        cr_expect_not(hands_out(seal, 1));
        wrong = seal;
        wrong.key[3] ^= 1;
        cr_expect_not(hands_out(wrong, SP_PORTER_TABLE));
        cr_expect_not(hands_out(wrong, 0));
        cr_assert_eq(sp_on_cuMemFree_v2(pointer), CUDA_SUCCESS);
        cr_expect_not(hands_out(seal, 0));
        wrong.porter ^= 1;
        cr_expect_lt(sp_porter_meet(&wrong), 0);
}

Test(export, parts_of_plain_memory_need_no_descriptors)
{
        CUdeviceptr one, other;

        is_filtered = true;
        setenv("STREAMPOOL_BACKING", "native", 1);
        begin_on(0);
        one = alloc(1000);
        other = alloc(1000);
        cr_expect_eq(attribute(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, one), 1);
        cr_expect(is_same(handle_of(one), handle_of(one + 999)));
        cr_expect_not(is_same(handle_of(one), handle_of(other)));
}

/* The device is full, so what is sealed has to go before there can be another block: the driver's
 * again, and not moved to where it is wanted. */
Test(export, a_chunk_that_others_have_is_not_moved)
{
        CUdeviceptr block[8];

        setenv("STREAMPOOL_GROWTH", "tight", 1);
        setenv("SIM_MEMORY", "16M", 1);
        begin_on(0);
        for (int i = 0; i < 8; i++)
                block[i] = alloc(2 * MIB);
        handle_of(block[3]);
        cr_assert_eq(sp_on_cuMemFree_v2(block[3]), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuCtxSynchronize(), CUDA_SUCCESS);
        alloc(2 * MIB);
        cr_expect_geq(sp_counter_sum(SP_COUNTER_segments_given_back), 1);
        cr_expect_eq(sp_counter_sum(SP_COUNTER_segments_moved), 0);
}

Test(export, a_context_takes_its_exports_with_it)
{
        CUcontext context, popped;
        struct sp_seal seal;

        begin_on(0);
        cr_assert_eq(sp_on_cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
        seal = seal_of(alloc(1000));
        cr_assert_eq(sp_driver.cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuCtxDestroy_v2(context), CUDA_SUCCESS);
        cr_expect(is_wiped(&seal));
}
