/* SPDX-License-Identifier: Apache-2.0 */
/* A program on a driver in two libraries (outer.c): it gets our functions for the outer one. */

#define _GNU_SOURCE

#include "routes.h"

int main(void)
{
        void *driver = dlopen("libcuda.so.1", RTLD_NOW);
        void *inner = dlopen("libcuda.so.1.1", RTLD_NOW | RTLD_NOLOAD);
        init_function init;

        CHECK(driver && inner, "%s", dlerror());
        /* Most of what the shim looks for is not in this driver, and it must not be heard failing.
         */
        init = (init_function)dlsym(driver, "cuInit");
        CHECK(!dlerror(), "a look-up that succeeded left an error");
        CHECK(is_ours((void *)init), "cuInit of the outer library");
        CHECK(dlsym(inner, "cuInit") == bare_dlsym(inner, "cuInit"), "cuInit of the inner one");
        CHECK(init && init(0) == 0, "cuInit");
        CHECK(!dlsym(driver, "cuMemAlloc_v2"), "found what is not there");
        return RESULT();
}
