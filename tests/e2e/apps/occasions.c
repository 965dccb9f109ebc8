/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Occasions -- a program that somebody wants a report of before its end
 *
 *   occasions wait       holds a block, works on until its input ends, says "ready"
 *   occasions abort      holds a block, and calls abort()
 *   occasions handled    the same as wait, with a handler of its own for SIGUSR1
 *   occasions small      the same as abort, in a thread with the smallest stack there is
 *   occasions ask        threads with little stack raise SIGUSR1, and work on
 *   occasions leave      holds a block, and a handler of SIGALRM calls exit() while the heap works
 *   occasions failed     a wait for the device fails, if the driver lets it; then _exit()
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <unistd.h>

#include "cu.h"

static volatile sig_atomic_t signals;

static void note(int number)
{
        (void)number;
        signals = signals + 1;
}

static void work_on(void)
{
        struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
        CUdeviceptr block;

        printf("ready\n");
        fflush(stdout);
        do {
                for (int i = 0; i < 100; i++) {
                        CU_OK(cu.MemAlloc(&block, 4096));
                        CU_OK(cu.MemFree(block));
                }
        } while (poll(&input, 1, 5) <= 0);
        printf("signals %d\n", (int)signals);
}

static void *die(void *unused)
{
        (void)unused;
        abort();
}

static void *ask(void *context)
{
        CUdeviceptr block;

        CU_OK(cu.CtxSetCurrent(context));
        raise(SIGUSR1);
        for (int i = 0; i < 3000; i++) {
                CU_OK(cu.MemAlloc(&block, 4096));
                CU_OK(cu.MemFree(block));
        }
        return NULL;
}

static void run_in_thread(size_t stack, void *(*function)(void *), void *given)
{
        pthread_attr_t attributes;
        pthread_t thread;

        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, stack);
        if (pthread_create(&thread, &attributes, function, given) == 0)
                pthread_join(thread, NULL);
}

static void ask_in_small_threads(void)
{
        CUcontext context;
        CUdeviceptr block;

        CU_OK(cu.CtxGetCurrent(&context));
        for (int i = 0; i < 100; i++) {
                CU_OK(cu.MemAlloc(&block, 4096));
                CU_OK(cu.MemFree(block));
        }
        for (size_t stack = 16 << 10; stack <= 512 << 10; stack *= 2)
                run_in_thread(stack, ask, context);
}

static void leave(int number)
{
        (void)number;
        exit(0); // NOLINT: what no handler should do, and many do
}

static void *idle(void *unused)
{
        pause();
        return unused;
}

/* With a second thread, as the heap takes no locks in front of one. */
static void leave_while_the_heap_works(void)
{
        void *volatile piece[50];
        pthread_t thread;

        pthread_create(&thread, NULL, idle, NULL);
        signal(SIGALRM, leave);
        ualarm(20000, 0);
        for (;;) {
                for (int i = 0; i < 50; i++)
                        piece[i] = malloc(2000 + (size_t)i * 100);
                for (int i = 0; i < 50; i++)
                        free(piece[i]);
        }
}

int main(int argc, char **argv)
{
        const char *way = argc > 1 ? argv[1] : "";
        CUdeviceptr held;

        if (strcmp(way, "handled") == 0)
                signal(SIGUSR1, note);
        cu_start(0);
        CU_OK(cu.MemAlloc(&held, 100000));
        if (strcmp(way, "abort") == 0)
                abort();
        if (strcmp(way, "small") == 0)
                run_in_thread(16 << 10, die, NULL); /* PTHREAD_STACK_MIN */
        if (strcmp(way, "ask") == 0)
                ask_in_small_threads();
        if (strcmp(way, "leave") == 0)
                leave_while_the_heap_works();
        if (strcmp(way, "failed") == 0) {
                fprintf(stderr, "synchronised: %d\n", (int)cu.CtxSynchronize());
                _exit(3);
        }
        if (strcmp(way, "ask") != 0)
                work_on();
        return 0;
}
