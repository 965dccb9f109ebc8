/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a process ends
 *
 *   endings WAY [LEAKS]
 *
 * Allocates, leaves LEAKS allocations behind, writes "done" into the buffer of
 * stdout and ends: return, exit7, quick, _exit, abort, thread (exit() in another
 * thread), last (main's thread ends first), busy (with threads that go on
 * allocating), atexit (handlers from before and after cuInit that free), statics
 * (a destructor that frees), again (a handler that calls exit(5)).
 */

#define _GNU_SOURCE

#include <pthread.h>
#include <unistd.h>

#include "routes.h"

int cuInit(unsigned int flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(uint64_t *pointer, size_t size);
int cuMemFree_v2(uint64_t pointer);
int last_is_here(void); /* in last.c */

static const char *way;
static void *context;
static uint64_t kept;

/* After the driver's own end these calls fail, and must do no more than that. */
static void free_late(void)
{
        if (kept)
                cuMemFree_v2(kept);
        kept = 0;
}

static void free_in_time(void)
{
        uint64_t pointer;

        CHECK(cuMemAlloc_v2(&pointer, 1000) == 0, "the driver works still");
        CHECK(cuMemFree_v2(pointer) == 0, "the driver works still");
        if (routes_failures)
                _exit(3);
}

static void exit_again(void)
{
        exit(5);
}

__attribute__((destructor)) static void end_statics(void)
{
        uint64_t pointer;

        if (way && strcmp(way, "statics") == 0) {
                free_late();
                cuMemAlloc_v2(&pointer, 1000);
        }
}

static void *hammer(void *unused)
{
        uint64_t pointer;

        cuCtxSetCurrent(context);
        for (;;) {
                if (cuMemAlloc_v2(&pointer, 1000) == 0)
                        cuMemFree_v2(pointer);
        }
        return unused;
}

static void *end_process(void *unused)
{
        exit(0);
        return unused;
}

static void *end_later(void *unused)
{
        usleep(50000);
        return unused;
}

static void start_threads(void)
{
        pthread_t thread;

        for (int i = 0; i < 4; i++) {
                pthread_create(&thread, NULL, hammer, NULL);
                pthread_detach(thread);
        }
        usleep(20000);
}

static int end(void)
{
        pthread_t thread;

        if (strcmp(way, "exit7") == 0)
                exit(7);
        if (strcmp(way, "quick") == 0)
                quick_exit(0);
        if (strcmp(way, "_exit") == 0)
                _exit(0);
        if (strcmp(way, "abort") == 0)
                abort();
        if (strcmp(way, "thread") == 0) {
                pthread_create(&thread, NULL, end_process, NULL);
                pause();
        }
        if (strcmp(way, "last") == 0) {
                pthread_create(&thread, NULL, end_later, NULL);
                pthread_exit(NULL);
        }
        if (strcmp(way, "busy") == 0)
                start_threads();
        return RESULT();
}

int main(int argc, char **argv)
{
        uint64_t pointer;

        way = argc > 1 ? argv[1] : "return";
        alarm(20);
        CHECK(last_is_here(), "last");
        if (strcmp(way, "atexit") == 0)
                atexit(free_late);
        if (strcmp(way, "again") == 0)
                atexit(exit_again);
        CHECK(cuInit(0) == 0, "cuInit");
        if (strcmp(way, "atexit") == 0)
                atexit(free_in_time);
        CHECK(cuDevicePrimaryCtxRetain(&context, 0) == 0, "retain");
        CHECK(cuCtxSetCurrent(context) == 0, "set current");
        if (strcmp(way, "statics") == 0 || strcmp(way, "atexit") == 0)
                CHECK(cuMemAlloc_v2(&kept, 3000) == 0, "alloc");
        for (int i = argc > 2 ? atoi(argv[2]) : 0; i > 0; i--)
                CHECK(cuMemAlloc_v2(&pointer, 1000) == 0, "alloc");
        CHECK(cuMemAlloc_v2(&pointer, 1000) == 0, "alloc");
        CHECK(cuMemFree_v2(pointer) == 0, "free");
        printf("done\n");
        return end();
}
