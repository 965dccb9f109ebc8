/* SPDX-License-Identifier: Apache-2.0 */

/*
 * IPC -- memory of one process, opened in another (U9)
 *
 * The importer is forked before anybody calls cuInit(), so both have a driver.
 */

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test_support.h"

static int to_importer[2], to_exporter[2];

static void send(const int pipe[2], const void *bytes, size_t count)
{
        cr_assert_eq(write(pipe[1], bytes, count), (ssize_t)count);
}

static void receive(const int pipe[2], void *bytes, size_t count)
{
        cr_assert_eq(read(pipe[0], bytes, count), (ssize_t)count);
}

static uint32_t word_at(CUdeviceptr p)
{
        uint32_t word;

        ok(cuMemcpyDtoH(&word, p, 4));
        return word;
}

/* Opens two handles, reads, writes, closes; _exit(0) when all is as it should be. */
static void import(void)
{
        CUipcMemHandle large, small;
        CUdeviceptr p, q, again;
        size_t bytes;

        alarm(5); /* a failed assertion leaves this process waiting for the test runner */
        begin();
        receive(to_importer, &large, sizeof(large));
        receive(to_importer, &small, sizeof(small));
        ok(cuIpcOpenMemHandle(&p, large, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
        ok(cuIpcOpenMemHandle(&q, small, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
        ok(cuIpcOpenMemHandle(&again, large, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
        cr_assert_eq(p, again);
        cr_assert_eq(word_at(p), 1);
        cr_assert_eq(word_at(p + MIB), 2);
        cr_assert_eq(word_at(q), 3);
        ok(cuMemGetAddressRange(NULL, &bytes, p));
        cr_assert_eq(bytes, 4 * MIB);
        ok(cuMemsetD32(p, 4, 1));
        ok(cuCtxSynchronize());
        expect(1, cuMemFree(p));
        expect(1, cuIpcGetMemHandle(&large, p));
        ok(cuIpcCloseMemHandle(p));
        cr_assert_eq(word_at(p), 4);
        ok(cuIpcCloseMemHandle(p));
        expect(1, cuIpcCloseMemHandle(p));
        expect(1, cuMemsetD32(p, 4, 1));
        ok(cuIpcCloseMemHandle(q));
        send(to_exporter, &bytes, 1);
        _exit(0);
}

Test(sim, a_handle_opens_in_another_process_at_the_base)
{
        CUipcMemHandle large, small;
        CUdeviceptr p, q, other;
        pid_t importer;
        int status;
        char done;

        cr_assert(!pipe(to_importer) && !pipe(to_exporter));
        importer = fork();
        if (!importer)
                import();
        close(to_exporter[1]); /* so that a dead importer ends the wait for it */
        begin();
        ok(cuMemAlloc(&p, 4 * MIB));
        ok(cuMemAlloc(&other, 1000));
        ok(cuMemAlloc(&q, 1000)); /* shares a page with the one before */
        ok(cuMemsetD32(p, 1, 1));
        ok(cuMemsetD32(p + MIB, 2, 1));
        ok(cuMemsetD32(q, 3, 1));
        ok(cuCtxSynchronize());
        ok(cuIpcGetMemHandle(&large, p + MIB));
        ok(cuIpcGetMemHandle(&small, q));
        send(to_importer, &large, sizeof(large));
        send(to_importer, &small, sizeof(small));
        receive(to_exporter, &done, 1);
        cr_assert_eq(waitpid(importer, &status, 0), importer);
        cr_assert(WIFEXITED(status) && !WEXITSTATUS(status));
        cr_expect_eq(word_at(p), 4);
        ok(cuMemFree(p));
}

Test(sim, what_is_no_handle_does_not_open)
{
        CUipcMemHandle handle = {0};
        CUdeviceptr p;

        begin();
        expect(1, cuIpcOpenMemHandle(&p, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
}

/* Takes the descriptor out of its parent, maps what it stands for, and writes there. */
static void import_descriptor(void)
{
        CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                                  .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        CUmemGenericAllocationHandle handle;
        int there, file, process = (int)syscall(SYS_pidfd_open, getppid(), 0);
        CUdeviceptr p;

        alarm(5);
        begin();
        receive(to_importer, &there, sizeof(there));
        file = (int)syscall(SYS_pidfd_getfd, process, there, 0);
        cr_assert_geq(file, 0);
        ok(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)file,
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
        close(file);
        ok(cuMemAddressReserve(&p, 4 * MIB, 0, 0, 0));
        ok(cuMemMap(p, 4 * MIB, 0, handle, 0));
        ok(cuMemRelease(handle));
        ok(cuMemSetAccess(p, 4 * MIB, &access, 1));
        cr_assert_eq(word_at(p), 1);
        ok(cuMemsetD32(p, 4, 1));
        ok(cuCtxSynchronize());
        send(to_exporter, &file, 1);
        receive(to_importer, &there, sizeof(there));
        cr_assert_eq(word_at(p), 5); /* though its maker has let it go */
        ok(cuMemUnmap(p, 4 * MIB));
        ok(cuMemAddressFree(p, 4 * MIB));
        _exit(0);
}

Test(sim, a_descriptor_of_memory_works_in_another_process)
{
        CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                                    .requestedHandleTypes =
                                            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
        CUmemAccessDesc access = {.location = prop.location,
                                  .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        CUmemGenericAllocationHandle handle;
        size_t before, after, total;
        int file, status;
        pid_t importer;
        CUdeviceptr p;
        char done;

        cr_assert(!pipe(to_importer) && !pipe(to_exporter));
        importer = fork();
        if (!importer)
                import_descriptor();
        close(to_exporter[1]);
        begin();
        ok(cuMemGetInfo(&before, &total));
        ok(cuMemCreate(&handle, 4 * MIB, &prop, 0));
        ok(cuMemAddressReserve(&p, 4 * MIB, 0, 0, 0));
        ok(cuMemMap(p, 4 * MIB, 0, handle, 0));
        ok(cuMemSetAccess(p, 4 * MIB, &access, 1));
        ok(cuMemsetD32(p, 1, 1));
        ok(cuCtxSynchronize());
        ok(cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                        0));
        send(to_importer, &file, sizeof(file));
        receive(to_exporter, &done, 1);
        cr_expect_eq(word_at(p), 4);
        ok(cuMemsetD32(p, 5, 1));
        ok(cuCtxSynchronize());
        ok(cuMemRelease(handle));
        ok(cuMemUnmap(p, 4 * MIB));
        ok(cuMemGetInfo(&after, &total));
        cr_expect_eq(before, after);
        send(to_importer, &file, sizeof(file));
        cr_assert_eq(waitpid(importer, &status, 0), importer);
        cr_expect(WIFEXITED(status) && !WEXITSTATUS(status));
}
