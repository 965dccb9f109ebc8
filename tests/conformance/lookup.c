/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lookup -- what cuGetProcAddress answers, and that it agrees with dlsym
 */
#include "conformance.h"

static int version(void)
{
        int number = 0;

        CU_OK(cu.DriverGetVersion(&number));
        return number;
}

static void first_form(void)
{
        void *mark = &mark, *pfn;

        pfn = mark;
        CODE(GetProcAddress, "cuMemAlloc", &pfn, 11030, 0);
        conf_say("dlsym=%d", pfn == cu_symbol("cuMemAlloc_v2"));
        pfn = mark;
        CODE(GetProcAddress, "cuNothing", &pfn, 11030, 0);
        conf_say("untouched=%d", pfn == mark);
        CODE(GetProcAddress, "cuMemAllocAsync", &pfn, 10000, 0);
        conf_say("untouched=%d", pfn == mark);
        CODE(GetProcAddress, "cuMemAlloc", &pfn, version() + 1000000, 0);
        conf_say("untouched=%d", pfn == mark);
        CODE(GetProcAddress, "cuGetProcAddress", &pfn, 11030, 0);
        conf_say("dlsym=%d", pfn == cu_symbol("cuGetProcAddress"));
}

#if CUDA_VERSION >= 12000
static void ask(const char *name, int number, uint64_t flags, const char *symbol)
{
        CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)-1;
        void *mark = &status, *pfn = mark;
        CUresult result = cu.GetProcAddress_v2(name, &pfn, number, flags, &status);

        conf_say("%s=%d,%d,%s", name[0] ? name : "\"\"", (int)result, (int)status,
                 pfn == mark                          ? "untouched"
                 : !pfn                               ? "null"
                 : symbol && pfn == cu_symbol(symbol) ? "dlsym"
                                                      : "other");
}

static void second_form(void)
{
        void *pfn = NULL;

        NEED(GetProcAddress_v2);
        ask("cuMemAlloc", 12000, 0, "cuMemAlloc_v2");
        ask("cuMemAlloc", 2000, 0, "cuMemAlloc");
        ask("cuMemFree", 12000, 0, "cuMemFree_v2");
        ask("cuMemAllocAsync", 12000, 0, "cuMemAllocAsync");
        ask("cuMemAllocAsync", 12000, 1, "cuMemAllocAsync");
        ask("cuMemAllocAsync", 12000, 2, "cuMemAllocAsync_ptsz");
        ask("cuMemAllocAsync", 12000, 3, "cuMemAllocAsync_ptsz");
        ask("cuMemFree", 12000, 2, "cuMemFree_v2");
        ask("cuStreamSynchronize", 12000, 2, "cuStreamSynchronize_ptsz");
        ask("cuMemAllocAsync", 11010, 0, NULL);
        ask("cuGetProcAddress", 11030, 0, "cuGetProcAddress");
        ask("cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2");
        ask("cuNothing", 12000, 0, NULL);
        ask("cuMemAlloc_v2", 12000, 0, NULL);
        ask("cuMemAllocAsync_ptsz", 12000, 0, NULL);
        ask("", 0, 0, NULL);
        ask("cuMemAlloc", version() + 1000000, 0, NULL);
        CODE(GetProcAddress_v2, "cuMemAlloc", &pfn, 12000, 0, NULL);
        conf_say("dlsym=%d", pfn == cu_symbol("cuMemAlloc_v2"));
        CODE(GetProcAddress_v2, "cuNothing", &pfn, 12000, 0, NULL);
        conf_say("null=%d", !pfn);
}
#endif

/* A pointer that was looked up serves and frees like one that was linked. */
static void pointers_work(void)
{
        PFN_cuMemAlloc_v3020 alloc = NULL;
        PFN_cuMemFree_v3020 release = NULL;
        CUdeviceptr p = 0;

        CODE(GetProcAddress, "cuMemAlloc", (void **)&alloc, 11030, 0);
        CODE(GetProcAddress, "cuMemFree", (void **)&release, 11030, 0);
        conf_code("alloc", alloc(&p, 5000));
        CODE(MemFree, p);
        CODE(MemAlloc, &p, 5000);
        conf_code("free", release(p));
        conf_code("free", release(p));
}

const struct conf_case conf_lookup[] = {
        {"lookup.first_form", first_form, 0, NULL},
#if CUDA_VERSION >= 12000
        {"lookup.second_form", second_form, 0, NULL},
#endif
        {"lookup.pointers_work", pointers_work, 0, NULL},
        {NULL, NULL, 0, NULL},
};
