/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Beside -- a program with a model of its own, under a shim with another
 *
 * It allocates device memory from the driver and plans memory with a pool of the
 * library, turn and turn about. The shim answers the first with a model that it
 * has inside. Whatever the program prints has to be the same with the shim and
 * without: its own model, that is, is told of nothing but what it was asked.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <streampool/model.h>

#include "cu.h"

#define ROUNDS 50

struct own {
        struct spm_model *model;
        spm_context context;
        spm_stream stream;
        spm_pool pool;
};

static void must(enum spm_status status)
{
        if (status == SPM_OK)
                return;
        fprintf(stderr, "%s\n", spm_status_name(status));
        exit(1);
}

static void begin(struct own *own)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .provider = SPM_PROVIDER_MODEL,
        };

        must(spm_model_new(NULL, &own->model));
        must(spm_context_add(own->model, 0, &own->context));
        must(spm_stream_add(own->model, own->context, SPM_STREAM_NON_BLOCKING, &own->stream));
        must(spm_pool_create(own->model, &config, &own->pool));
}

/* On one stream a freed block is served at once, and nothing is asked of a device. */
static uint64_t turn(struct own *own, size_t size, uint64_t previous)
{
        struct spm_request request = {.pool = own->pool, .stream = own->stream, .size = size};
        struct spm_allocation allocation;
        struct spm_actions actions;

        if (previous)
                must(spm_free(own->model, previous, 0, SPM_FREE_ASYNC, own->stream, NULL,
                              &actions));
        must(spm_alloc(own->model, &request, &allocation, &actions));
        return allocation.address;
}

/* The library that a function comes from; the program's own would be "beside". */
static const char *home(const void *function)
{
        const char *name;
        Dl_info info;

        if (!dladdr(function, &info))
                return "nowhere";
        name = strrchr(info.dli_fname, '/');
        return name ? name + 1 : info.dli_fname;
}

int main(void)
{
        struct own own;
        struct spm_stats stats;
        uint64_t planned = 0;
        CUdeviceptr held = 0;
        int i;

        cu_start(0);
        begin(&own);
        for (i = 0; i < ROUNDS; i++) {
                size_t size = (size_t)(i + 1) * 4096;
                CUdeviceptr next;

                CU_OK(cu.MemAlloc(&next, size));
                planned = turn(&own, size, planned);
                if (held)
                        CU_OK(cu.MemFree(held));
                held = next;
        }
        CU_OK(cu.MemFree(held));
        must(spm_stats(own.model, own.pool, &stats));
        printf("planned %" PRIu64 " allocations and %" PRIu64 " frees, %" PRIu64 " in use\n",
               stats.allocs, stats.frees, stats.used_current);
        printf("hash %016" PRIx64 "\n", spm_hash(own.model));
        printf("from %s\n", home(dlsym(RTLD_DEFAULT, "spm_alloc")));
        printf("driver %d allocations\n", ROUNDS);
        spm_model_free(own.model);
        return 0;
}
