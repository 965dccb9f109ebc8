/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Occasions -- a program that somebody wants a report of before its end
 *
 *   occasions wait       holds a block, works on until its input ends, says "ready"
 *   occasions abort      holds a block, and calls abort()
 *   occasions handled    the same as wait, with a handler of its own for SIGUSR1
 *   occasions failed     a wait for the device fails, if the driver lets it; then _exit()
 */
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
        if (strcmp(way, "failed") == 0) {
                fprintf(stderr, "synchronised: %d\n", (int)cu.CtxSynchronize());
                _exit(3);
        }
        work_on();
        return 0;
}
