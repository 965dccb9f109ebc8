/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between -- a program that reaches the driver through a library like NVIDIA's runtime
 *
 *   between ACT...
 *
 *   early          the library looks its functions up before the driver is started
 *   late           and after
 *   keep N         N leaks in keep_plain(), of 1000 bytes
 *   deep N         N leaks in keep_deep(), 2000 bytes, each from another depth
 *   sized N        N leaks in keep_sized(), 3000 bytes, through frames of many sizes, and
 *                  as many in keep_other(), 4000 bytes, in turns
 *   thread N       N leaks in keep_in_thread(), 5000 bytes, in a thread each
 *   direct N       N leaks in keep_direct(), 6000 bytes, without the library
 *   library BYTES  a leak within a library that is called like one of NVIDIA's, which calls
 *                  the first one in its turn
 *   tensor N       N leaks in keep_tensor(), 9000 bytes, through a library that is called like
 *                  PyTorch's allocator, which calls the first one
 *   workspace B    a leak of so many bytes within a library that is called like another one of
 *                  PyTorch's, through the allocator
 *   twice          a double free in drop_twice()
 *   pairs N        N pairs through the library and N without; says what each took
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "between.h"
#include "cu.h"
#include "keeper.h"

/* Exported, so that places in them have names. */
#define SHOWN __attribute__((noinline, visibility("default")))

SHOWN void keep_plain(int count);
SHOWN void keep_deep(int depth);
SHOWN void keep_sized(int i);
SHOWN void keep_other(int i);
SHOWN void *keep_in_thread(void *unused);
SHOWN void keep_direct(int count);
SHOWN void keep_tensor(int count);
SHOWN void drop_twice(void);

static volatile int calls; /* keeps a call from being the last thing that a function does */

void keep_plain(int count)
{
        CUdeviceptr p;

        for (int i = 0; i < count; i++)
                CU_OK(between_allocate(&p, 1000));
}

void keep_deep(int depth)
{
        CUdeviceptr p;

        if (depth)
                keep_deep(depth - 1);
        else
                CU_OK(between_allocate(&p, 2000));
        calls++;
}

void keep_sized(int i)
{
        CUdeviceptr p;

        CU_OK(between_allocate_sized(&p, 3000, (size_t)(i * 37 % 1024)));
        calls++;
}

void keep_other(int i)
{
        CUdeviceptr p;

        CU_OK(between_allocate_sized(&p, 4000, (size_t)(i * 53 % 1024)));
        calls++;
}

void *keep_in_thread(void *unused)
{
        CUdeviceptr p;

        (void)unused;
        cu_start(0);
        CU_OK(between_allocate(&p, 5000));
        calls++;
        return NULL;
}

void keep_direct(int count)
{
        CUdeviceptr p;

        for (int i = 0; i < count; i++)
                CU_OK(cu.MemAlloc(&p, 6000));
}

void keep_tensor(int count)
{
        CUdeviceptr p;

        for (int i = 0; i < count; i++)
                CU_OK(between_ask(&p, 9000));
}

void drop_twice(void)
{
        CUdeviceptr p;

        CU_OK(between_allocate(&p, 7000));
        CU_OK(between_free(p));
        printf("code %d\n", (int)between_free(p));
}

static void keep_in_threads(int count)
{
        pthread_t thread;

        for (int i = 0; i < count; i++) {
                pthread_create(&thread, NULL, keep_in_thread, NULL);
                pthread_join(thread, NULL);
        }
}

typedef CUresult (*allocate_function)(CUdeviceptr *memory, size_t bytes);
typedef CUresult (*free_function)(CUdeviceptr memory);

static double pairs(int count, allocate_function allocate, free_function give_back)
{
        struct timespec begin, end;
        CUdeviceptr p;

        clock_gettime(CLOCK_MONOTONIC, &begin);
        for (int i = 0; i < count; i++) {
                allocate(&p, 8000);
                give_back(p);
        }
        clock_gettime(CLOCK_MONOTONIC, &end);
        return ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) /
               count;
}

static void act(const char *word, int number)
{
        if (!strcmp(word, "keep"))
                keep_plain(number);
        else if (!strcmp(word, "direct"))
                keep_direct(number);
        else if (!strcmp(word, "library"))
                CU_OK(keep_in_cufft(between_allocate, (size_t)number));
        else if (!strcmp(word, "workspace"))
                CU_OK(keep_in_torch_cuda(between_ask, (size_t)number));
        else if (!strcmp(word, "tensor"))
                keep_tensor(number);
        else if (!strcmp(word, "thread"))
                keep_in_threads(number);
        for (int i = 0; !strcmp(word, "deep") && i < number; i++)
                keep_deep(i % 100);
        for (int i = 0; !strcmp(word, "sized") && i < number; i++) {
                keep_sized(i);
                keep_other(i);
        }
        for (int i = 0; !strcmp(word, "pairs") && i < 3; i++)
                printf("%.1f ns through both libraries, %.1f through one, %.1f without\n",
                       pairs(number, between_ask, between_free),
                       pairs(number, between_allocate, between_free),
                       pairs(number, cu.MemAlloc, cu.MemFree));
}

int main(int count, char **words)
{
        if (count > 1 && !strcmp(words[1], "early") && !between_start())
                return 98;
        cu_start(0);
        for (int i = 1; i < count; i++) {
                if (!strcmp(words[i], "late") && !between_start())
                        return 98;
                if (!strcmp(words[i], "twice"))
                        drop_twice();
                else if (i + 1 < count)
                        act(words[i], atoi(words[i + 1]));
        }
        return 0;
}
