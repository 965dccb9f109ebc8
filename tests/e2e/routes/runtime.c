/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's own runtime, watched
 *
 *   runtime libcudart.so.13    with libroutes_spy.so preloaded in front of the shim
 *
 * The runtime starts, makes its look-ups and then stops with an error, since
 * the simulated driver has none of its private tables. That is far enough: the
 * spy has seen every answer.
 */

#define _GNU_SOURCE

#include "routes.h"

int main(int argc, char **argv)
{
        void *runtime = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
        int (*start)(void *) = (int (*)(void *))dlsym(runtime, "cudaFree");
        unsigned int *seen = dlsym(RTLD_DEFAULT, "spy_seen");

        if (!runtime || !start || !seen)
                return 2;
        printf("cudaFree answered %d\n", start(NULL));
        printf("%u look-ups, %u answered with functions of ours, %u wrong\n", seen[0], seen[1],
               seen[2]);
        CHECK(seen[0] >= 400, "the runtime has not looked up its functions");
        CHECK(seen[1] > 80, "hardly any function is ours");
        CHECK(seen[2] == 0, "some answers are wrong");
        return RESULT();
}
