/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lost -- a program whose places lines.py knows
 *
 *   lost [plugin PATH]
 *
 * What it allocates stays. The comments `here: WORD` mark the lines that a report
 * must name; what is lost in the plugin is lost together with its names.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "cu.h"

static __attribute__((noinline)) int lose_plain(size_t bytes)
{
        CUdeviceptr p = 0;
        CUresult result = cu.MemAlloc(&p, bytes); /* here: plain */

        return result == CUDA_SUCCESS && p;
}

static inline __attribute__((always_inline)) int lose_managed(size_t bytes)
{
        CUdeviceptr p = 0;
        CUresult result = cu.MemAllocManaged(&p, bytes, CU_MEM_ATTACH_GLOBAL); /* here: managed */

        return result == CUDA_SUCCESS && p;
}

static inline __attribute__((always_inline)) int lose_between(size_t bytes)
{
        int lost = lose_managed(bytes); /* here: between */

        return lost * 2;
}

/* Exported, and so known by name without debug information. */
int lose_pinned(size_t bytes);
__attribute__((noinline)) int lose_pinned(size_t bytes)
{
        void *host = NULL;
        CUresult result = cu.MemHostAlloc(&host, bytes, 0); /* here: pinned */

        return result == CUDA_SUCCESS && host;
}

static int lose_in_plugin(const char *path)
{
        void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        int (*lose)(PFN_cuMemAlloc_v3020 alloc) = NULL;
        int lost;

        if (!plugin) {
                fprintf(stderr, "%s\n", dlerror());
                return 0;
        }
        *(void **)&lose = dlsym(plugin, "lose_in_library");
        lost = lose ? lose(cu.MemAlloc) : 0;
        dlclose(plugin);
        return lost;
}

int main(int argc, char **argv)
{
        int lost;

        cu_start(0);
        if (argc == 3 && strcmp(argv[1], "plugin") == 0)
                return lose_in_plugin(argv[2]) ? 0 : 1;
        lost = lose_plain(1000);
        lost += lose_between(2000); /* here: main */
        lost += lose_pinned(3000);
        return lost == 4 ? 0 : 1;
}
