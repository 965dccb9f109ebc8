/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small program that uses the driver, and says what it got
 *
 *   user linked    calls the driver as a C program does
 *   user opened    opens it and looks its functions up
 *   user asked     asks cuGetProcAddress, and must get the shim's functions
 */

#define _GNU_SOURCE

#include "routes.h"

int cuInit(unsigned int flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(uint64_t *pointer, size_t size);
int cuMemFree_v2(uint64_t pointer);
int cuGetProcAddress_v2(const char *name, void **pfn, int version, uint64_t flags, int *status);

static void *ask(const char *name)
{
        void *pfn = NULL;

        CHECK(cuGetProcAddress_v2(name, &pfn, 12000, 0, NULL) == 0, "%s", name);
        CHECK(is_ours(pfn), "%s is not ours", name);
        return pfn;
}

int main(int argc, char **argv)
{
        init_function init = cuInit;
        alloc_function alloc = cuMemAlloc_v2;
        free_function free_it = cuMemFree_v2;
        void *context = NULL;
        uint64_t pointer = 0;

        if (argc > 1 && strcmp(argv[1], "opened") == 0) {
                void *driver = dlopen("libcuda.so.1", RTLD_NOW);

                init = (init_function)dlsym(driver, "cuInit");
                alloc = (alloc_function)dlsym(driver, "cuMemAlloc_v2");
                free_it = (free_function)dlsym(driver, "cuMemFree_v2");
        } else if (argc > 1 && strcmp(argv[1], "asked") == 0) {
                init = (init_function)ask("cuInit");
                alloc = (alloc_function)ask("cuMemAlloc");
                free_it = (free_function)ask("cuMemFree");
        }
        CHECK(init(0) == 0, "cuInit");
        CHECK(cuDevicePrimaryCtxRetain(&context, 0) == 0, "retain");
        CHECK(cuCtxSetCurrent(context) == 0, "set current");
        for (int i = 0; i < 10; i++) {
                CHECK(alloc(&pointer, 4096) == 0 && pointer, "alloc %d", i);
                CHECK(free_it(pointer) == 0, "free %d", i);
        }
        printf("%d failures\n", routes_failures);
        return RESULT();
}
