/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Look-up -- the table from the driver's functions to ours, and what is under it
 *
 * Here the hooks are the simulated driver's own functions, because a test that
 * links both must not have the names twice. What a program gets is tested
 * with the finished library, in tests/e2e/routes.
 */

#define _GNU_SOURCE

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <string.h>

#include "driver/driver.h"
#include "driver/lookup.h"

Test(lookup, finds_the_real_dlsym_in_the_c_library)
{
        Dl_info info;

        cr_assert(dladdr(sp_real_dlsym_find(), &info));
        cr_expect(strstr(info.dli_fname, "libc.so.6") || strstr(info.dli_fname, "libdl.so.2"), "%s",
                  info.dli_fname);
        cr_expect_eq(sp_real_dlsym_find(), atomic_load(&sp_real_dlsym));
}

Test(lookup, finds_the_same_dlsym_in_both_ways)
{
        cr_expect_neq(sp_real_dlsym_next(), NULL);
        cr_expect_eq(sp_real_dlsym_next(), sp_real_dlsym_versioned());
}

static void *load(void *unused)
{
        sp_driver_load();
        return unused;
}

Test(lookup, loads_the_driver_once_from_many_threads)
{
        pthread_t threads[8];

        cr_assert_not(sp_driver_is_loaded());
        cr_expect_str_eq(sp_driver_path(), "");
        for (int i = 0; i < 8; i++)
                pthread_create(&threads[i], NULL, load, NULL);
        for (int i = 0; i < 8; i++)
                pthread_join(threads[i], NULL);
        cr_expect(sp_driver_is_loaded());
        cr_expect(strstr(sp_driver_path(), "libcuda.so.1"), "%s", sp_driver_path());
}

Test(lookup, has_each_function_under_its_exported_name)
{
        void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

        cr_assert(handle);
        cr_assert(sp_driver_load());
        for (int i = 0; i < SP_ENTRY_COUNT; i++) {
                cr_expect_eq(sp_driver_address(i), sp_dlsym(handle, sp_entry_info[i].symbol), "%s",
                             sp_entry_info[i].symbol);
                cr_expect(sp_driver_address(i), "%s is missing", sp_entry_info[i].symbol);
        }
        cr_expect_eq((void *)sp_driver.cuMemFree_v2, sp_driver_address(SP_ENTRY_cuMemFree_v2));
}

Test(lookup, answers_an_address_that_is_not_the_drivers_with_itself)
{
        int variable;

        cr_expect_null(sp_lookup_wrapper(NULL));
        cr_expect_eq(sp_lookup_wrapper(&variable), &variable, "before the driver is there");
        cr_assert(sp_driver_load());
        cr_expect_null(sp_lookup_wrapper(NULL));
        cr_expect_eq(sp_lookup_wrapper(&variable), &variable);
        cr_expect_eq(sp_lookup_wrapper((void *)sp_driver.cuDeviceGetCount),
                     (void *)sp_driver.cuDeviceGetCount, "it has no hook");
}

Test(lookup, adopts_a_library_by_an_address_in_it)
{
        void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        void *address = sp_dlsym(handle, "cuDeviceGetCount");

        cr_expect_not(sp_driver_adopt((void *)memcpy), "the C library is no driver");
        cr_expect_not(sp_driver_adopt(&sp_driver), "nor are we");
        cr_expect_not(sp_driver_adopt(NULL));
        cr_expect_not(sp_driver_is_loaded());
        cr_expect(sp_driver_adopt(address));
        cr_expect(sp_driver_is_loaded());
}

Test(lookup, knows_that_it_is_the_only_copy)
{
        cr_expect_not(sp_lookup_is_second());
}
