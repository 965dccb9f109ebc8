/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that asks what there is
 *
 *   weak absent    there is no driver at all
 *   weak old       there is one from before memory pools and cuGetProcAddress_v2
 *
 * The shim exports its names in any case, so "if (cuInit)" and RTLD_DEFAULT say
 * yes. The functions then answer as a stub or as an old driver would; dlsym()
 * on the driver itself says the truth.
 */

#define _GNU_SOURCE

#include "routes.h"

#pragma weak cuInit
#pragma weak cuMemAlloc_v2
#pragma weak cuMemAllocAsync
#pragma weak cuLaunchKernel
int cuInit(unsigned int flags);
int cuMemAlloc_v2(uint64_t *pointer, size_t size);
int cuMemAllocAsync(uint64_t *pointer, size_t size, void *stream);
int cuLaunchKernel(void *function, ...);

#define STUB_LIBRARY  34
#define NOT_SUPPORTED 801

static void check_absent(void)
{
        uint64_t pointer = 7;

        CHECK(!dlopen("libcuda.so.1", RTLD_NOW), "there is a driver");
        CHECK(cuInit(0) == STUB_LIBRARY, "cuInit");
        CHECK(cuMemAlloc_v2(&pointer, 1) == STUB_LIBRARY, "cuMemAlloc_v2");
        CHECK(cuMemAllocAsync(&pointer, 1, NULL) == STUB_LIBRARY, "cuMemAllocAsync");
        CHECK(pointer == 7, "a failed call wrote its return argument");
        CHECK(!dlsym(dlopen(NULL, RTLD_NOW), "cuNothing"), "found what is not there");
}

static void check_old(void)
{
        void *driver = dlopen("libcuda.so.1", RTLD_NOW);
        uint64_t pointer = 7;

        CHECK(cuInit(0) == 0, "cuInit");
        CHECK(cuMemAllocAsync(&pointer, 1, NULL) == NOT_SUPPORTED, "cuMemAllocAsync");
        CHECK(pointer == 7, "a failed call wrote its return argument");
        CHECK(!dlsym(driver, "cuMemAllocAsync"), "the driver does not have it");
        CHECK(!dlsym(driver, "cuGetProcAddress_v2"), "the driver does not have it");
        CHECK(is_ours(dlsym(driver, "cuMemAlloc_v2")), "cuMemAlloc_v2");
}

int main(int argc, char **argv)
{
        if (argc < 2 || !cuInit || !cuMemAlloc_v2)
                return 2;
        if (strcmp(argv[1], "old") == 0)
                check_old();
        else
                check_absent();
        return RESULT();
}
