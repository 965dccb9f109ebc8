/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts at run time -- a program that says itself how its pools are cut up
 *
 * It keeps some memory from its first moment to its last, the weights, and then works in two phases
 * that need memory of different kinds. Each has a layout. The weights are allocated in a window of
 * persistent memory, so that they do not stand in the way of the next one.
 *
 *   cc layouts_at_run_time.c $(pkg-config --cflags streampool) -ldl -o layouts_at_run_time
 *   LD_PRELOAD=libstreampool_shim.so ./layouts_at_run_time
 *
 * It links neither the driver nor streampool, and does the same without the latter.
 */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <streampool/streampool.h>

#define MIB ((size_t)1 << 20)

static int (*init)(unsigned int);
static int (*retain)(void **context, int device);
static int (*set_current)(void *context);
static int (*alloc)(unsigned long long *pointer, size_t size);
static int (*give_back)(unsigned long long pointer);

static void find_driver(void)
{
        void *driver = dlopen("libcuda.so.1", RTLD_NOW);

        if (!driver) {
                puts("there is no driver");
                exit(77);
        }
        *(void **)&init = dlsym(driver, "cuInit");
        *(void **)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
        *(void **)&set_current = dlsym(driver, "cuCtxSetCurrent");
        *(void **)&alloc = dlsym(driver, "cuMemAlloc_v2");
        *(void **)&give_back = dlsym(driver, "cuMemFree_v2");
}

static void must(int result)
{
        if (result) {
                printf("the driver says %d\n", result);
                exit(1);
        }
}

static unsigned long long take(size_t size)
{
        unsigned long long pointer;

        must(alloc(&pointer, size));
        return pointer;
}

/* What is transient may be asked for again when this program has freed more; the rest may not. */
static void lay_out(const char *text)
{
        enum streampool_status status;
        char why[200];

        if (!streampool_set_layout)
                return;
        status = streampool_set_layout(text, -1, why, sizeof(why));
        if (status == STREAMPOOL_OK)
                printf("from now on %s\n", text);
        else
                printf("%s, %s: %s\n", text, status == STREAMPOOL_IN_USE ? "not now" : "never",
                       why);
}

static void turn_window(enum streampool_status (*turned)(int device))
{
        if (turned)
                (void)turned(-1);
}

static void start(void)
{
        void *context;

        find_driver();
        must(init(0));
        must(retain(&context, 0));
        must(set_current(context));
}

int main(void)
{
        unsigned long long weights, request, batch;

        start();
        lay_out("sliced:page=32M,slice=8M,cap=64M;direct");
        turn_window(streampool_persistent_enter);
        weights = take(100 * MIB);
        turn_window(streampool_persistent_leave);

        /* many small requests, which a cap holds whatever happens */
        request = take(3 * MIB);
        lay_out("exclusive:max=256M,period=1000");
        must(give_back(request));

        /* a few large batches of sizes that come again */
        lay_out("exclusive:max=256M,perod=1000");
        lay_out("exclusive:max=256M,period=1000");
        batch = take(200 * MIB);
        must(give_back(batch));

        must(give_back(weights));
        lay_out("pool");
        puts("done");
        return 0;
}
