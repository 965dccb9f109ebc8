/* SPDX-License-Identifier: Apache-2.0 */

/*
 * IPC -- memory of one process, opened in another (U9)
 *
 * The importer is forked before anybody calls cuInit(), so both have a driver.
 */

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
