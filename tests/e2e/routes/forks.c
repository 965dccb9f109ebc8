/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children of a process that uses the driver
 *
 *   forks fork     while eight threads allocate and free: the child's calls are
 *                  answered 3, as the driver does, and it ends quietly
 *   forks exec     a child that becomes another program, which starts afresh
 *   forks spawn    posix_spawn() and vfork() many times
 *   forks before   a child that was made before the driver was started
 */

#define _GNU_SOURCE

#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "routes.h"

#define NOT_INITIALIZED 3
#define THREADS         8
#define CHILDREN        20

extern char **environ;

int cuInit(unsigned int flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(uint64_t *pointer, size_t size);
int cuMemFree_v2(uint64_t pointer);

static void *context;
static atomic_bool stop;

static void start(void)
{
        CHECK(cuInit(0) == 0, "cuInit");
        CHECK(cuDevicePrimaryCtxRetain(&context, 0) == 0, "retain");
        CHECK(cuCtxSetCurrent(context) == 0, "set current");
}

static void *hammer(void *unused)
{
        uint64_t pointer;

        CHECK(cuCtxSetCurrent(context) == 0, "set current");
        while (!atomic_load(&stop)) {
                CHECK(cuMemAlloc_v2(&pointer, 100000) == 0, "alloc");
                CHECK(cuMemFree_v2(pointer) == 0, "free");
        }
        return unused;
}

static int wait_for(pid_t child)
{
        int status = -1;

        waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int live_as_child(uint64_t parents)
{
        uint64_t pointer = 7;

        alarm(10);
        if (cuMemAlloc_v2(&pointer, 1000) != NOT_INITIALIZED || pointer != 7)
                return 1;
        if (cuMemFree_v2(parents) != NOT_INITIALIZED)
                return 2;
        if (cuInit(0) != NOT_INITIALIZED)
                return 3;
        return 0;
}

static void check_fork(void)
{
        pthread_t threads[THREADS];
        uint64_t pointer;

        CHECK(cuMemAlloc_v2(&pointer, 1000) == 0, "alloc");
        for (int i = 0; i < THREADS; i++)
                pthread_create(&threads[i], NULL, hammer, NULL);
        for (int i = 0; i < CHILDREN; i++) {
                pid_t child = fork();
                int status;

                /* exit() and not _exit(): what the shim does at the end is part of the test. */
                if (child == 0)
                        exit(live_as_child(pointer));
                status = wait_for(child);
                CHECK(status == 0, "child %d ended with %d", i, status);
        }
        atomic_store(&stop, true);
        for (int i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
        CHECK(cuMemFree_v2(pointer) == 0, "the parent goes on");
}

static void check_exec(const char *program)
{
        pid_t child = fork();
        int status;

        if (child == 0) {
                execl(program, program, "linked", NULL);
                _exit(9);
        }
        status = wait_for(child);
        CHECK(status == 0, "the program ended with %d", status);
}

static void check_spawn(void)
{
        char *arguments[] = {"true", NULL};

        for (int i = 0; i < 50; i++) {
                pid_t child;

                CHECK(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) == 0,
                      "posix_spawn");
                CHECK(wait_for(child) == 0, "spawned");
                child = vfork();
                if (child == 0) {
                        execv("/bin/true", arguments);
                        _exit(9);
                }
                CHECK(wait_for(child) == 0, "vforked");
        }
}

static int live_as_owner(void)
{
        uint64_t pointer;

        start();
        CHECK(cuMemAlloc_v2(&pointer, 1000) == 0, "alloc");
        CHECK(cuMemFree_v2(pointer) == 0, "free");
        return RESULT();
}

int main(int argc, char **argv)
{
        const char *what = argc > 1 ? argv[1] : "";

        if (strcmp(what, "before") == 0) {
                pid_t child = fork();

                if (child == 0)
                        return live_as_owner();
                CHECK(wait_for(child) == 0, "child");
                return RESULT();
        }
        start();
        if (strcmp(what, "fork") == 0)
                check_fork();
        else if (strcmp(what, "exec") == 0 && argc > 2)
                check_exec(argv[2]);
        else if (strcmp(what, "spawn") == 0)
                check_spawn();
        else
                return 2;
        return RESULT();
}
