/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sites -- a program whose faults are made in functions that have names
 *
 *   sites ACT...
 *
 *   keep N BYTES    N leaks of device memory, in keep_some()
 *   pin BYTES       a leak of pinned memory, in pin_some()
 *   twice N         N double frees, in drop_twice()
 *   library BYTES   a leak within a library
 *   another BYTES   a leak within another one
 *   device N        what follows happens on that device
 *   catch           on SIGABRT call the driver, and end with status 3
 *
 * The functions are exported, so that a place in them is one in a function. Each says when
 * it is through.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cu.h"
#include "keeper.h"

__attribute__((noinline)) void keep_some(int count, size_t bytes);
__attribute__((noinline)) void pin_some(size_t bytes);
__attribute__((noinline)) void drop_twice(int count);

void keep_some(int count, size_t bytes)
{
        for (int i = 0; i < count; i++) {
                CUdeviceptr p = 0;

                CU_OK(cu.MemAlloc(&p, bytes));
        }
        puts("kept");
}

void pin_some(size_t bytes)
{
        void *host = NULL;

        CU_OK(cu.MemHostAlloc(&host, bytes, 0));
        puts("pinned");
}

void drop_twice(int count)
{
        CUdeviceptr p = 0;

        CU_OK(cu.MemAlloc(&p, 5000));
        CU_OK(cu.MemFree(p));
        for (int i = 0; i < count; i++)
                printf("code %d\n", (int)cu.MemFree(p));
}

/* Waits for ever if the thread has a lock of the shim's. */
static void on_abort(int signal)
{
        CUdeviceptr p = 0;

        (void)signal;
        if (cu.MemAlloc(&p, 1 << 20) == CUDA_SUCCESS && cu.MemFree(p) == CUDA_SUCCESS)
                _exit(3);
        _exit(4);
}

int main(int count, char **words)
{
        cu_start(0);
        setvbuf(stdout, NULL, _IOLBF, 0);
        for (int i = 1; i < count; i++) {
                const char *word = words[i];

                if (!strcmp(word, "keep") && i + 2 < count) {
                        keep_some(atoi(words[i + 1]), (size_t)atol(words[i + 2]));
                        i += 2;
                } else if (!strcmp(word, "catch")) {
                        signal(SIGABRT, on_abort);
                } else if (++i == count) {
                        return 98;
                } else if (!strcmp(word, "pin")) {
                        pin_some((size_t)atol(words[i]));
                } else if (!strcmp(word, "twice")) {
                        drop_twice(atoi(words[i]));
                } else if (!strcmp(word, "library")) {
                        CU_OK(keep_in_cufft(cu.MemAlloc, (size_t)atol(words[i])));
                } else if (!strcmp(word, "another")) {
                        CU_OK(keep_in_nccl(cu.MemAlloc, (size_t)atol(words[i])));
                } else if (!strcmp(word, "device")) {
                        cu_start(atoi(words[i]));
                } else {
                        return 98;
                }
        }
        return 0;
}
