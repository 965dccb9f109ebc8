/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two threads start at once
 *
 * One opens a library whose constructor waits, inside the loader, until the
 * other has called a function of the driver. A shim that holds a lock of its own
 * while it calls the loader never ends here. The alarm ends the test then.
 */

#define _GNU_SOURCE

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "routes.h"

/* Exported, for the constructor in abba_lib.c. Atomic. */
atomic_int abba_stage;

int cuInit(unsigned int flags);

static void *call(void *unused)
{
        while (atomic_load(&abba_stage) < 1)
                usleep(100);
        /* The loader is busy in the other thread: this call needs it, and must not keep what the
         * constructor over there needs. */
        atomic_store(&abba_stage, 2);
        CHECK(cuInit(0) == 0, "cuInit of the thread");
        return unused;
}

int main(void)
{
        pthread_t thread;

        alarm(20);
        pthread_create(&thread, NULL, call, NULL);
        CHECK(dlopen("libroutes_abba.so", RTLD_NOW), "%s", dlerror());
        pthread_join(thread, NULL);
        CHECK(abba_stage == 3, "the constructor did not end");
        return RESULT();
}
