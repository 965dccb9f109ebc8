/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who asks? -- RTLD_NEXT and RTLD_DEFAULT mean something else in every library
 *
 * The C library finds out by the return address. With a wrapper of the ordinary
 * kind the caller is the wrapper: symbols of a library that was opened with
 * RTLD_LOCAL are not found, and RTLD_NEXT begins behind the wrapper, where an
 * interposed function finds itself (which ends OpenMP programs in an endless
 * loop). Linked with caller_first, which is
 * linked with caller_second.
 *
 * caller_cudnn looks like the driver to those who test for "cu" only.
 */

#define _GNU_SOURCE

#include <pthread.h>

#include "routes.h"

#define THREADS 8
#ifndef ROUTES_ROUNDS
#define ROUTES_ROUNDS 100000
#endif

/* In caller_first: what RTLD_NEXT finds from there; in both: who they are. */
void *first_looks_next(const char *name);
const char *routes_name(void);

static void *expected_next;
static unsigned int wrong; /* atomic */

static void *look_often(void *unused)
{
        for (int i = 0; i < ROUTES_ROUNDS; i++) {
                if (first_looks_next("routes_name") != expected_next)
                        __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
        }
        return unused;
}

static void check_next(void)
{
        pthread_t threads[THREADS];

        CHECK(strcmp(routes_name(), "first") == 0, "%s", routes_name());
        expected_next = first_looks_next("routes_name");
        CHECK(expected_next, "nothing is next");
        if (!expected_next)
                return;
        CHECK(strcmp(((const char *(*)(void))expected_next)(), "second") == 0, "found itself");
        for (int i = 0; i < THREADS; i++)
                pthread_create(&threads[i], NULL, look_often, NULL);
        for (int i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
        CHECK(wrong == 0, "%u of the repeated look-ups differ", wrong);
        CHECK(first_looks_next("cuMemAlloc_v2") != (void *)first_looks_next, "self");
        CHECK(!first_looks_next("routes_nothing"), "found what is not there");
}

static void check_local(void)
{
        void *local = dlopen("libroutes_local.so", RTLD_NOW | RTLD_LOCAL);
        void *(*looks)(const char *) = (void *(*)(const char *))dlsym(local, "local_looks");

        CHECK(local && looks, "%s", dlerror());
        if (!looks)
                return;
        CHECK(looks("only_here"), "a library does not find its own symbol");
        CHECK(looks("cuOnlyHere"), "nor one that is named like the driver's");
        CHECK(!dlsym(RTLD_DEFAULT, "only_here"), "but it is nobody else's business");
}

static void check_cudnn(void)
{
        void *cudnn = dlopen("libroutes_cudnn.so", RTLD_NOW);
        int (*create)(void) = (int (*)(void))dlsym(cudnn, "cudnnCreate");
        int (*other)(void) = (int (*)(void))dlsym(cudnn, "cuOther");

        CHECK(create && create() == 5, "cudnnCreate");
        CHECK(other && other() == 6, "cuOther");
}

int main(void)
{
        check_next();
        check_local();
        check_cudnn();
        return RESULT();
}
