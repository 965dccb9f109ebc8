/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The look-ups of a CUDA runtime
 *
 *   requests cudart13_requests.tsv
 *
 * Replays what libcudart 13.0 asks for when it starts, in its order: a name, the
 * version in which the signature appeared that it was compiled for, and flags.
 * The last column is what the driver exports the answer as. Then it calls
 * through the pointers, as a runtime does.
 */

#define _GNU_SOURCE

#include "routes.h"

/* What a driver answers that was simulated with headers too old for the function. */
#define NOT_SIMULATED 801

static void *found_for(void *(*const pairs)[2], size_t count, void *expected)
{
        for (size_t i = 0; i < count; i++) {
                if (pairs[i][0] == expected)
                        return pairs[i][1];
        }
        return NULL;
}

int main(int argc, char **argv)
{
        void *driver = dlopen("libcuda.so.1", RTLD_NOW);
        gpa2_function ask = (gpa2_function)dlsym(driver, "cuGetProcAddress_v2");
        FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
        static void *pairs[512][2];
        char line[256], name[64], symbol[64];
        unsigned int flags;
        int version;
        size_t count = 0;
        size_t ours = 0;
        uint64_t pointer = 0;
        int synchronized;

        if (!driver || !ask || !file)
                return 2;
        while (fgets(line, sizeof(line), file) && count < 512) {
                void *bare, *expected, *got = NULL;
                int status = -1;

                if (sscanf(line, "%63s %d %u %63s", name, &version, &flags, symbol) != 4)
                        continue;
                if (strcmp(name, "\"\"") == 0)
                        name[0] = '\0';
                bare = strcmp(symbol, "NOTFOUND") == 0 ? NULL : bare_dlsym(driver, symbol);
                expected = bare ? wrapper_named(symbol) : NULL;
                if (!expected)
                        expected = bare;
                CHECK(ask(name, &got, version, flags, &status) == 0, "%s", name);
                CHECK(status == (bare ? 0 : 1), "%s@%d: status %d", name, version, status);
                CHECK(got == expected, "%s@%d flags %u is not %s", name, version, flags, symbol);
                pairs[count][0] = bare;
                pairs[count][1] = got;
                count++;
                ours += got != bare;
        }
        fclose(file);
        CHECK(count == 440, "%zu requests", count);
        CHECK(ours > 80, "only %zu were answered with functions of ours", ours);

#define POINTER(symbol) found_for(pairs, count, bare_dlsym(driver, symbol))
        CHECK(((init_function)POINTER("cuInit"))(0) == 0, "cuInit");
        CHECK(((int (*)(void **, int))POINTER("cuDevicePrimaryCtxRetain"))(&pairs[511][0], 0) == 0,
              "retain");
        CHECK(((int (*)(void *))POINTER("cuCtxSetCurrent"))(pairs[511][0]) == 0, "set current");
        CHECK(((alloc_function)POINTER("cuMemAlloc_v2"))(&pointer, 1000) == 0 && pointer, "alloc");
        synchronized = ((int (*)(void *))POINTER("cuCtxSynchronize_v2"))(pairs[511][0]);
        CHECK(synchronized == 0 || synchronized == NOT_SIMULATED, "synchronize: %d", synchronized);
        CHECK(((free_function)POINTER("cuMemFree_v2"))(pointer) == 0, "free");
        printf("%zu requests, %zu answered with functions of ours\n", count, ours);
        return RESULT();
}
