/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cuGetProcAddress promises
 *
 * The table was measured on a driver of CUDA 13.0; cuda.h is silent on half of
 * it. Callers depend on all of it: on who writes what, and on a success that
 * found nothing.
 */

#define _GNU_SOURCE

#include "routes.h"

#define UNTOUCHED ((void *)0x5a5a)
#define NEWER     99000

struct row {
        const char *name;
        int version;
        unsigned int flags;
        const char *symbol; /* what is found; NULL: nothing */
        int status;         /* of _v2; -7: not written */
        int result1;
        int result2;
};

static const struct row table[] = {
        {"cuMemAlloc", 3020, 0, "cuMemAlloc_v2", 0, 0, 0},
        {"cuMemAlloc", 2000, 0, "cuMemAlloc", 0, 0, 0},
        {"cuInit", 2000, 0, "cuInit", 0, 0, 0},
        {"cuGetProcAddress", 11030, 0, "cuGetProcAddress", 0, 0, 0},
        {"cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2", 0, 0, 0},
        {"cuStreamSynchronize", 7000, 0, "cuStreamSynchronize", 0, 0, 0},
        {"cuStreamSynchronize", 7000, 1, "cuStreamSynchronize", 0, 0, 0},
        {"cuStreamSynchronize", 7000, 2, "cuStreamSynchronize_ptsz", 0, 0, 0},
        {"cuStreamSynchronize", 7000, 3, "cuStreamSynchronize_ptsz", 0, 0, 0},
        {"cuMemFree", 13000, 2, "cuMemFree_v2", 0, 0, 0},
        {"cuCtxCreate", 12000, 0, "cuCtxCreate_v3", 0, 0, 0},
        {"cuCtxCreate", 12050, 0, "cuCtxCreate_v4", 0, 0, 0},
        {"cuCtxSynchronize", 13000, 0, "cuCtxSynchronize_v2", 0, 0, 0},
        {"cuCtxGetDevice", 13000, 0, "cuCtxGetDevice_v2", 0, 0, 0},
        {"cuMemAlloc_v2", 13000, 0, NULL, 1, 500, 0},
        {"cuStreamSynchronize_ptsz", 13000, 0, NULL, 1, 500, 0},
        {"cuGetProcAddress_v2", 13000, 0, NULL, 1, 500, 0},
        {"cuNothing", 13000, 0, NULL, 1, 500, 0},
        {"", 0, 0, NULL, 1, 500, 0},
        {"cuMemAllocAsync", 11010, 0, NULL, 2, 500, 0},
        {"cuMemAlloc", NEWER, 0, NULL, -7, 1, 1},
};

static void *expected(void *driver, const struct row *row, int result)
{
        void *ours = row->symbol ? wrapper_named(row->symbol) : NULL;

        if (result != 0)
                return UNTOUCHED;
        if (!row->symbol)
                return NULL;
        return ours ? ours : bare_dlsym(driver, row->symbol);
}

static void check(void *driver, const struct row *row)
{
        gpa1_function ask1 = (gpa1_function)dlsym(driver, "cuGetProcAddress");
        gpa2_function ask2 = (gpa2_function)dlsym(driver, "cuGetProcAddress_v2");
        void *pfn = UNTOUCHED;
        int status = -7;
        int result;

        result = ask1(row->name, &pfn, row->version, row->flags);
        CHECK(result == row->result1, "%s v1: %d", row->name, result);
        CHECK(pfn == expected(driver, row, row->result1), "%s v1: %p", row->name, pfn);

        pfn = UNTOUCHED;
        result = ask2(row->name, &pfn, row->version, row->flags, &status);
        CHECK(result == row->result2, "%s v2: %d", row->name, result);
        CHECK(status == row->status, "%s v2: status %d", row->name, status);
        CHECK(pfn == expected(driver, row, row->result2), "%s v2: %p", row->name, pfn);

        pfn = UNTOUCHED;
        result = ask2(row->name, &pfn, row->version, row->flags, NULL);
        CHECK(result == row->result2, "%s v2, no status: %d", row->name, result);
        CHECK(pfn == expected(driver, row, row->result2), "%s v2, no status: %p", row->name, pfn);
}

int main(void)
{
        void *driver = dlopen("libcuda.so.1", RTLD_NOW);

        if (!driver)
                return 2;
        for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
                check(driver, &table[i]);
        return RESULT();
}
