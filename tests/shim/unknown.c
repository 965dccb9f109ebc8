/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Unknown -- which functions that a program looks up may submit work unseen
 *
 * Here nothing is hooked, so whatever is looked up is a function that we do not
 * export. What the finished library says is tested in tests/e2e/routes.
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <string.h>

#include "driver/lookup.h"
#include "tests/shim/begin.h"
#include "track/submit.h"

/* A function of the program, by a name like the driver's. */
extern void cuOfTheProgram(void);
__attribute__((visibility("default"))) void cuOfTheProgram(void)
{
}

static void *driver;

static void start(void)
{
        driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        begin_on(0);
}

TestSuite(unknown, .init = start);

static void expect_none(void)
{
        cr_expect(sp_submit_is_complete());
        cr_expect_null(sp_submit_first_unknown());
}

static void expect_first(const char *name)
{
        cr_assert_not(sp_submit_is_complete());
        cr_expect_str_eq(sp_submit_first_unknown(), name);
}

Test(unknown, knows_other_calls_by_any_of_their_names)
{
        cr_expect(sp_submit_is_other("cuStreamQuery"));
        cr_expect(sp_submit_is_other("cuStreamQuery_ptsz"));
        cr_expect(sp_submit_is_other("cuStreamGetCtx_v2_ptsz"));
        cr_expect(sp_submit_is_other("cuMemAlloc_v2"));
        cr_expect(sp_submit_is_other("cuArray3DCreate"), "the first");
        cr_expect(sp_submit_is_other("cuWaitForNothing") == false);
        cr_expect_not(sp_submit_is_other("cuStreamQuer"));
        cr_expect_not(sp_submit_is_other("cuStreamQueryAll"));
        cr_expect_not(sp_submit_is_other("cuMemcpyAsync"));
        cr_expect_not(sp_submit_is_other("cuLaunchKernelEx_ptsz"));
        cr_expect_not(sp_submit_is_other(""));
}

Test(unknown, finds_each_name_of_its_list)
{
#define SP_OTHER(api, class) cr_expect(sp_submit_is_other(#api), "%s", #api);
#include "driver/other_calls.def"
}

/* No row that submits may be in the list: no look-up of it would be noted. */
Test(unknown, has_no_call_that_submits)
{
        for (int i = 0; i < SP_ENTRY_COUNT; i++)
                cr_expect(sp_entry_info[i].kind != SP_ROW_SUBMIT ||
                                  !sp_submit_is_other(sp_entry_info[i].symbol),
                          "%s", sp_entry_info[i].symbol);
}

Test(unknown, notes_what_dlsym_gives_away)
{
        cr_assert_not_null(sp_on_dlsym(driver, "cuStreamQuery_ptsz"));
        cr_assert_not_null(sp_on_dlsym(driver, "cuGetExportTable"));
        cr_assert_null(sp_on_dlsym(driver, "cuNothingOfThisName"));
        expect_none();
        cr_assert_not_null(sp_on_dlsym(driver, "cuMemcpyHtoD_v2_ptds"));
        expect_first("cuMemcpyHtoD_v2_ptds");
        cr_assert_not_null(sp_on_dlsym(driver, "cuLaunchKernel"));
        expect_first("cuMemcpyHtoD_v2_ptds");
}

Test(unknown, notes_nothing_of_other_libraries)
{
        cr_assert_eq(sp_on_dlsym(dlopen(NULL, RTLD_NOW), "cuOfTheProgram"), (void *)cuOfTheProgram);
        expect_none();
}

Test(unknown, notes_what_the_driver_gives_away)
{
        void *found = NULL;

        cr_assert_eq(sp_on_cuGetProcAddress("cuStreamQuery", &found, 13000, 0), CUDA_SUCCESS);
        sp_on_cuGetProcAddress("cuNothingOfThisName", &found, 13000, 0);
        sp_on_cuGetProcAddress("", &found, 13000, 0);
        expect_none();
        cr_assert_eq(sp_on_cuGetProcAddress_v2("cuMemcpyAsync", &found, 13000, 0, NULL),
                     CUDA_SUCCESS);
        expect_first("cuMemcpyAsync");
}

Test(unknown, keeps_to_its_room)
{
        char name[200] = "cuVery";

        memset(name + 6, 'x', sizeof(name) - 7);
        name[sizeof(name) - 1] = '\0';
        sp_submit_unknown(name);
        cr_assert_not(sp_submit_is_complete());
        cr_expect_eq(strlen(sp_submit_first_unknown()), 63);
        cr_expect_eq(strncmp(sp_submit_first_unknown(), name, 63), 0);
}
