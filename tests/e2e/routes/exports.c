/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every function of the driver, by every way to look it up
 *
 *   exports exports.tsv
 *
 * Also with drivers that lack what is newer than they are.
 *
 * Asks for each exported name by dlsym(), and for each undecorated one by both
 * versions of cuGetProcAddress, for every version at which something appeared
 * and every combination of flags. The answer must be the driver's, with the
 * addresses of hooked functions, and of these only, replaced by the shim's
 * function of the same exported name.
 */

#define _GNU_SOURCE

#include "routes.h"

#include "driver/entry_points.h"

#define ROWS 1024

struct row {
        char base[64];
        int introduced;
        char symbol[64];
        void *bare;
        void *expected;
};

static struct row rows[ROWS];
static size_t row_count;
static size_t named_count; /* rows that cuGetProcAddress knows, too */
static size_t hooked_count;

/* What the shim is to hook, from its own list. */
static const char *const hooks[] = {
#define SP_EACH_HOOK(api, symbol, since, suffix, params, raw_args, args)           #symbol #suffix,
#define SP_EACH_RETRY(api, symbol, since, suffix, params, raw_args)                #symbol #suffix,
#define SP_EACH_SUBMIT(api, symbol, since, suffix, kind, params, raw_args, stream) #symbol #suffix,
#include "driver/entry_points.def"
};

static bool is_hooked(const char *symbol)
{
        for (size_t i = 0; i < sizeof(hooks) / sizeof(*hooks); i++) {
                if (strcmp(hooks[i], symbol) == 0)
                        return true;
        }
        return false;
}

static void read_rows(const char *path, void *driver)
{
        FILE *file = fopen(path, "r");
        char line[256];
        char unused[8];

        while (file && fgets(line, sizeof(line), file) && row_count < ROWS) {
                struct row *row = &rows[row_count];

                if (sscanf(line, "%63s %d %7s %63s", row->base, &row->introduced, unused,
                           row->symbol) != 4)
                        continue;
                named_count += strcmp(row->base, "-") != 0;
                row->bare = bare_dlsym(driver, row->symbol);
                row->expected = row->bare;
                if (row->bare && is_hooked(row->symbol)) {
                        row->expected = wrapper_named(row->symbol);
                        CHECK(row->expected, "the shim has no %s", row->symbol);
                        hooked_count++;
                }
                row_count++;
        }
        CHECK(file, "%s", path);
        if (file)
                fclose(file);
}

/* What a look-up must answer where the driver answers @bare. */
static void *expected_for(void *bare)
{
        for (size_t i = 0; i < row_count; i++) {
                if (bare && rows[i].bare == bare)
                        return rows[i].expected;
        }
        return bare;
}

static void check_dlsym(void *driver)
{
        for (size_t i = 0; i < row_count; i++) {
                const struct row *row = &rows[i];
                void *found;

                dlerror();
                found = dlsym(driver, row->symbol);
                CHECK(found == row->expected, "%s by dlsym", row->symbol);
                CHECK(!dlerror() == !!row->bare, "%s left the wrong error", row->symbol);
        }
        CHECK(!dlsym(driver, "cuNothingOfThisName"), "found what is not there");
        CHECK(dlerror(), "a failed look-up left no error");
}

/* What one look-up answers, with marks where nothing was written. */
struct answer {
        int result;
        void *pfn;
        int status;
};

#define UNTOUCHED ((void *)0x5a5a)

static struct answer ask1(void *function, const char *name, int version, uint64_t flags)
{
        struct answer answer = {.pfn = UNTOUCHED, .status = -7};

        answer.result = ((gpa1_function)function)(name, &answer.pfn, version, flags);
        return answer;
}

static struct answer ask2(void *function, const char *name, int version, uint64_t flags,
                          bool wants_status)
{
        struct answer answer = {.pfn = UNTOUCHED, .status = -7};

        answer.result = ((gpa2_function)function)(name, &answer.pfn, version, flags,
                                                  wants_status ? &answer.status : NULL);
        return answer;
}

static void compare(struct answer bare, struct answer got, const char *name, int version,
                    unsigned int flags)
{
        CHECK(got.result == bare.result, "%s@%d flags %u: %d, not %d", name, version, flags,
              got.result, bare.result);
        CHECK(got.status == bare.status, "%s@%d flags %u: status %d, not %d", name, version, flags,
              got.status, bare.status);
        CHECK(got.pfn == expected_for(bare.pfn), "%s@%d flags %u: wrong address", name, version,
              flags);
}

static void check_name(void *driver, const char *name, int version)
{
        void *bare1 = bare_dlsym(driver, "cuGetProcAddress");
        void *bare2 = bare_dlsym(driver, "cuGetProcAddress_v2");
        void *ours1 = dlsym(driver, "cuGetProcAddress");
        void *ours2 = dlsym(driver, "cuGetProcAddress_v2");

        for (unsigned int flags = 0; flags < 4; flags++) {
                if (bare1)
                        compare(ask1(bare1, name, version, flags),
                                ask1(ours1, name, version, flags), name, version, flags);
                for (int status = 0; bare2 && status < 2; status++)
                        compare(ask2(bare2, name, version, flags, status),
                                ask2(ours2, name, version, flags, status), name, version, flags);
        }
}

static void check_get_proc_address(void *driver)
{
        static const int versions[] = {0,     2000,  3020,  4000,  7000,  11020, 11030,
                                       12000, 12030, 12050, 12080, 13000, 13010, 99000};

        for (size_t i = 0; i < row_count; i++) {
                const struct row *row = &rows[i];

                /* Its own version, the one before, and decorated, which is no name at all. */
                check_name(driver, row->base, row->introduced);
                check_name(driver, row->base, row->introduced - 1);
                check_name(driver, row->symbol, 13000);
                if (i && strcmp(row->base, rows[i - 1].base) == 0)
                        continue;
                for (size_t v = 0; v < sizeof(versions) / sizeof(*versions); v++)
                        check_name(driver, row->base, versions[v]);
        }
        check_name(driver, "", 0);
        check_name(driver, "cuNothingOfThisName", 13000);
}

int main(int argc, char **argv)
{
        void *driver = dlopen("libcuda.so.1", RTLD_NOW);

        if (argc < 2 || !driver)
                return 2;
        read_rows(argv[1], driver);
        CHECK(named_count == 634, "%zu rows", named_count);
        CHECK(hooked_count > 200, "only %zu rows are hooked", hooked_count);
        check_dlsym(driver);
        check_get_proc_address(driver);
        /* The same again, now that the driver works. */
        CHECK(((init_function)dlsym(driver, "cuInit"))(0) == 0, "cuInit");
        check_dlsym(driver);
        check_name(driver, "cuMemAlloc", 13000);
        printf("%zu names, %zu hooked, headers of %d\n", row_count, hooked_count, CUDA_VERSION);
        return RESULT();
}
