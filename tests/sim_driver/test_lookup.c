/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Look-up -- cuGetProcAddress against the list of exports, and its failures
 *
 * The list is read again here, by other code than that which makes the driver:
 * SIM_EXPORTS names the file.
 */

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "test_support.h"

typedef int look_up_v1(const char *, void **, int, uint64_t);
typedef int look_up_v2(const char *, void **, int, uint64_t, int *);

struct row {
        char base[64], suffix[8], symbol[64];
        int introduced;
};

static struct row rows[1024];
static int row_count;
static look_up_v1 *v1;
static look_up_v2 *v2;

static void load(void)
{
        FILE *file = fopen(getenv("SIM_EXPORTS"), "r");
        char line[256];

        cr_assert(file);
        while (fgets(line, sizeof(line), file)) {
                struct row *row = &rows[row_count];

                if (sscanf(line, "%63s %d %7s %63s", row->base, &row->introduced, row->suffix,
                           row->symbol) == 4)
                        row_count++;
        }
        fclose(file);
        v1 = (look_up_v1 *)dlsym(RTLD_DEFAULT, "cuGetProcAddress");
        v2 = (look_up_v2 *)dlsym(RTLD_DEFAULT, "cuGetProcAddress_v2");
        cr_assert(v1 && v2);
}

static void *by_name(const char *symbol)
{
        return dlsym(RTLD_DEFAULT, symbol);
}

Test(sim, every_row_is_exported_and_found_at_its_own_version)
{
        int known = 0;

        load();
        for (int i = 0; i < row_count; i++) {
                const struct row *row = &rows[i];
                uint64_t flags = row->suffix[0] == '_' ? 2 : 0;
                void *found = NULL;
                int status = 7;

                cr_assert(by_name(row->symbol), "%s is not exported", row->symbol);
                if (row->base[0] == '-')
                        continue;
                known++;
                expect(0, v2(row->base, &found, row->introduced, flags, &status));
                cr_expect_eq(status, 0, "%s", row->symbol);
                cr_expect_eq(found, by_name(row->symbol), "%s", row->symbol);
                found = NULL;
                expect(0, v1(row->base, &found, row->introduced, flags));
                cr_expect_eq(found, by_name(row->symbol), "%s", row->symbol);
        }
        cr_assert_eq(known, 634);
        cr_assert_eq(row_count, 674);
}

Test(sim, just_below_its_version_a_row_is_an_older_one_or_too_old)
{
        load();
        for (int i = 0; i < row_count; i++) {
                const struct row *row = &rows[i];
                int older = 0, status = 7;
                void *found = &found;

                if (row->base[0] == '-' || row->suffix[0] == '_')
                        continue;
                for (int j = 0; j < row_count; j++)
                        older |= !strcmp(rows[j].base, row->base) && rows[j].suffix[0] == '-' &&
                                 rows[j].introduced < row->introduced;
                expect(0, v2(row->base, &found, row->introduced - 1, 0, &status));
                cr_expect_eq(status, older ? 0 : 2, "%s", row->symbol);
                cr_expect_neq(found, by_name(row->symbol), "%s", row->symbol);
                cr_expect_eq(found == NULL, !older, "%s", row->symbol);
        }
}

Test(sim, an_unknown_name_is_no_error_for_v2_and_one_for_v1)
{
        static const char *const names[] = {
                "cuNoSuchThing",
                "cuMemAlloc_v2",
                "cuStreamSynchronize_ptsz",
                "cuGetProcAddress_v2",
                "",
                "cuProfilerStart",
                "cuGLInit",
        };

        load();
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                void *found = &found;
                int status = 7;

                expect(0, v2(names[i], &found, 13000, 0, &status));
                cr_expect_eq(status, 1, "%s", names[i]);
                cr_expect_null(found);
                found = &found;
                expect(0, v2(names[i], &found, 13000, 0, NULL));
                cr_expect_null(found);
                found = &found;
                expect(500, v1(names[i], &found, 13000, 0));
                cr_expect_eq(found, (void *)&found);
        }
}

Test(sim, a_known_name_at_an_old_version_has_its_own_status)
{
        void *found = &found;
        int status = 7;

        load();
        expect(0, v2("cuMemAllocAsync", &found, 11010, 0, &status));
        cr_expect_eq(status, 2);
        cr_expect_null(found);
        found = &found;
        expect(500, v1("cuMemAllocAsync", &found, 11010, 0));
        cr_expect_eq(found, (void *)&found);
}

Test(sim, a_version_after_the_drivers_writes_nothing)
{
        void *found = &found;
        int status = 7;

        load();
        expect(1, v2("cuMemAlloc", &found, 13010, 0, &status));
        expect(1, v1("cuMemAlloc", &found, 13010, 0));
        cr_expect_eq(found, (void *)&found);
        cr_expect_eq(status, 7);
}

Test(sim, the_per_thread_flag_falls_back)
{
        static const uint64_t flags[] = {0, 1, 2, 3};
        int status;
        void *found;

        load();
        for (int i = 0; i < 4; i++) {
                expect(0, v2("cuMemAllocAsync", &found, 13000, flags[i], &status));
                cr_expect_eq(found,
                             by_name(flags[i] & 2 ? "cuMemAllocAsync_ptsz" : "cuMemAllocAsync"));
                expect(0, v2("cuMemAlloc", &found, 13000, flags[i], &status));
                cr_expect_eq(found, by_name("cuMemAlloc_v2"));
        }
        expect(0, v2("cuMemcpyHtoD", &found, 3020, 2, &status));
        cr_expect_eq(found, by_name("cuMemcpyHtoD_v2"));
}

Test(sim, cuCtxCreate_is_what_the_real_driver_says_and_not_the_header)
{
        int status;
        void *found;

        load();
        expect(0, v2("cuCtxCreate", &found, 12000, 0, &status));
        cr_expect_eq(found, by_name("cuCtxCreate_v3"));
        expect(0, v2("cuCtxCreate", &found, 12050, 0, &status));
        cr_expect_eq(found, by_name("cuCtxCreate_v4"));
        expect(0, v2("cuGetProcAddress", &found, 11030, 0, &status));
        cr_expect_eq(found, (void *)v1);
        expect(0, v2("cuGetProcAddress", &found, 12000, 0, &status));
        cr_expect_eq(found, (void *)v2);
}

Test(sim, addresses_can_differ_and_work_all_the_same)
{
        CUresult (*init)(unsigned int);
        int status;

        setenv("SIM_GPA_DIFFERENT", "1", 1);
        load();
        expect(0, v2("cuInit", (void **)&init, 13000, 0, &status));
        cr_expect_neq((void *)init, by_name("cuInit"));
        expect(1, init(1));
        ok(init(0));
        cr_expect_eq(sim_calls("cuInit"), 2);
}

Test(sim, an_age_hides_what_is_newer)
{
        void *found;
        int status, version;

        setenv("SIM_AGE", "11020", 1);
        load();
        ok(cuDriverGetVersion(&version));
        cr_expect_eq(version, 11020);
        expect(0, v2("cuMemAllocAsync", &found, 11020, 0, &status));
        cr_expect_eq(found, by_name("cuMemAllocAsync"));
        expect(1, v2("cuMemAllocAsync", &found, 12000, 0, &status));
        expect(0, v2("cuGetProcAddress", &found, 11020, 0, &status));
        cr_expect_eq(status, 1);
}

/* ---- libraries that were built old, or loaded twice ---- */

static void path_of(const char *age, char *path)
{
        char here[PATH_MAX];
        Dl_info info;

        cr_assert(dladdr((void *)cuInit, &info));
        snprintf(here, sizeof(here), "%s", info.dli_fname);
        snprintf(path, PATH_MAX, "%s/%s/libcuda.so.1", dirname(here), age);
}

Test(sim, a_library_of_an_age_lacks_what_is_newer)
{
        static const struct {
                const char *age;
                int async, look_up, look_up_2, context_4;
        } ages[] = {
                {"11010", 0, 0, 0, 0},
                {"11020", 1, 0, 0, 0},
                {"12000", 1, 1, 1, 0},
        };

        for (size_t i = 0; i < sizeof(ages) / sizeof(*ages); i++) {
                CUresult (*get_version)(int *);
                char path[PATH_MAX];
                void *library;
                int version;

                path_of(ages[i].age, path);
                library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
                cr_assert(library, "%s", dlerror());
                get_version = (CUresult(*)(int *))dlsym(library, "cuDriverGetVersion");
                ok(get_version(&version));
                cr_expect_eq(version, atoi(ages[i].age));
                cr_expect(dlsym(library, "cuMemAlloc_v2"));
                cr_expect_eq(!dlsym(library, "cuMemAllocAsync"), !ages[i].async);
                cr_expect_eq(!dlsym(library, "cuGetProcAddress"), !ages[i].look_up);
                cr_expect_eq(!dlsym(library, "cuGetProcAddress_v2"), !ages[i].look_up_2);
                cr_expect_eq(!dlsym(library, "cuCtxCreate_v4"), !ages[i].context_4);
                cr_expect_null(dlsym(library, "sim_current"), "internals are hidden");
        }
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#elif defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED false
#endif

/* A sanitizer's own library does not load into a second namespace. */
Test(sim, a_second_copy_is_a_second_driver, .disabled = SANITIZED)
{
        char path[PATH_MAX];
        void *library;
        CUresult (*init)(unsigned int), (*count)(int *);
        int devices = 0;

        path_of(".", path);
        library = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
        cr_assert(library, "%s", dlerror());
        init = (CUresult(*)(unsigned int))dlsym(library, "cuInit");
        count = (CUresult(*)(int *))dlsym(library, "cuDeviceGetCount");
        cr_assert_neq((void *)init, (void *)cuInit);
        ok(cuInit(0));
        expect(3, count(&devices));
        ok(init(0));
        ok(count(&devices));
        cr_expect_eq(devices, 2);
}
