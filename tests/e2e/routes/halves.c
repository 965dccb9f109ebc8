/* SPDX-License-Identifier: Apache-2.0 */
/* A program on a driver in two libraries (outer.c): it gets our functions for the outer one. */

#define _GNU_SOURCE

#include "routes.h"

int main(void)
{
        void *driver = dlopen("libcuda.so.1", RTLD_NOW);
        void *inner = dlopen("libcuda.so.1.1", RTLD_NOW | RTLD_NOLOAD);
        init_function init = (init_function)dlsym(driver, "cuInit");

        CHECK(driver && inner, "%s", dlerror());
        CHECK(is_ours((void *)init), "cuInit of the outer library");
        CHECK(dlsym(inner, "cuInit") == bare_dlsym(inner, "cuInit"), "cuInit of the inner one");
        CHECK(init && init(0) == 0, "cuInit");
        CHECK(!dlsym(driver, "cuMemAlloc_v2"), "found what is not there");
        return RESULT();
}
