/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Check table -- does the simulated driver have what the shim's table names?
 *
 * Every row is referenced, so one that the library does not export is a link
 * error, unless it is newer than the driver that is simulated. A row behind which
 * there is but a stub that answers "not supported" must be newer than the headers
 * (driver/cuda_11.h), or stand in the list of those of which the stub is all that
 * is wanted.
 */

#include "driver/entry_points.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "control.h"

struct row {
        const char *symbol;
        int since;
        void (*address)(void);
};

/* Weak, because the library need not have what is newer than it is. */
#define SP_EACH_SUBMIT(api, symbol, since, suffix, kind, params, raw_args, stream)                 \
        extern SP_TYPE(api, since, suffix) symbol##suffix __attribute__((weak));
#include "driver/entry_points.def"

/* Newer headers name functions that the simulated driver has not got. */
#define WEAK(symbol, suffix)                                             extern __typeof__(symbol##suffix) symbol##suffix __attribute__((weak));
#define SP_EACH_HOOK(api, symbol, since, suffix, params, raw_args, args) WEAK(symbol, suffix)
#define SP_EACH_RETRY(api, symbol, since, suffix, params, raw_args)      WEAK(symbol, suffix)
#define SP_EACH_SUBMIT(api, symbol, since, suffix, kind, params, raw_args, stream)                 \
        WEAK(symbol, suffix)
#define SP_EACH_CALL(api, symbol, since, suffix) WEAK(symbol, suffix)
#include "driver/entry_points.def"

#define ROW(symbol, since, suffix) {#symbol #suffix, since, (void (*)(void))symbol##suffix},

static const struct row rows[] = {
#define SP_EACH_HOOK(api, symbol, since, suffix, params, raw_args, args) ROW(symbol, since, suffix)
#define SP_EACH_RETRY(api, symbol, since, suffix, params, raw_args)      ROW(symbol, since, suffix)
#define SP_EACH_SUBMIT(api, symbol, since, suffix, kind, params, raw_args, stream)                 \
        ROW(symbol, since, suffix)
#define SP_EACH_CALL(api, symbol, since, suffix) ROW(symbol, since, suffix)
#include "driver/entry_points.def"
};

/* Answer 801, each with its per-thread variant. */
static const char *const refused[] = {
        /* 32-bit addresses: the simulated device has none below 4 GiB */
        "cuMemcpyHtoD", "cuMemcpyHtoDAsync", "cuMemcpyDtoH", "cuMemcpyDtoHAsync", "cuMemcpyDtoD",
        "cuMemcpyDtoDAsync", "cuMemcpyDtoA", "cuMemcpyAtoD", "cuMemcpyHtoA", "cuMemcpyHtoAAsync",
        "cuMemcpyAtoH", "cuMemcpyAtoHAsync", "cuMemcpyAtoA", "cuMemcpy2D", "cuMemcpy2DAsync",
        "cuMemcpy2DUnaligned", "cuMemcpy3D", "cuMemcpy3DAsync", "cuMemsetD8", "cuMemsetD16",
        "cuMemsetD32", "cuMemsetD2D8", "cuMemsetD2D16", "cuMemsetD2D32",
        /* launches that take their parameters from cuParamSet, which is gone */
        "cuLaunch", "cuLaunchGrid", "cuLaunchGridAsync",
        /* arrays hold no pixels */
        "cuMemcpyDtoA_v2", "cuMemcpyAtoD_v2", "cuMemcpyHtoA_v2", "cuMemcpyHtoAAsync_v2",
        "cuMemcpyAtoH_v2", "cuMemcpyAtoHAsync_v2", "cuMemcpyAtoA_v2", "cuMemMapArrayAsync",
        /* batches */
        "cuMemcpyBatchAsync", "cuMemcpyBatchAsync_v2", "cuMemcpy3DBatchAsync",
        "cuMemcpy3DBatchAsync_v2", "cuMemBatchDecompressAsync",
        /* objects of several devices */
        "cuMulticastBindMem", "cuMulticastBindAddr",
        /* what belongs to other libraries */
        "cuSignalExternalSemaphoresAsync", "cuWaitExternalSemaphoresAsync",
        "cuGraphicsMapResources", "cuGraphicsUnmapResources"};

static bool is_refused(const char *symbol)
{
        for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
                size_t length = strlen(refused[i]);

                if (strncmp(symbol, refused[i], length) == 0 &&
                    (!symbol[length] || strcmp(symbol + length, "_ptsz") == 0 ||
                     strcmp(symbol + length, "_ptds") == 0))
                        return true;
        }
        return false;
}

/* The newest function that the simulated driver knows is of this version (exports.tsv). */
#define NEWEST 13000

int main(void)
{
        int wrong = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                bool is_simulated = rows[i].address && sim_is_simulated(rows[i].symbol);

                if (rows[i].since > CUDA_VERSION || rows[i].since > NEWEST ||
                    is_simulated != is_refused(rows[i].symbol))
                        continue;
                printf("%s: %s\n", rows[i].symbol,
                       is_simulated ? "is simulated, and in the list of those that are not"
                                    : "is not simulated");
                wrong++;
        }
        printf("%zu rows, %d wrong\n", sizeof(rows) / sizeof(*rows), wrong);
        return wrong ? 1 : 0;
}
