/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Check table -- does the simulated driver have what the shim's table names?
 *
 * Every row is referenced, so one that the library does not export is a link
 * error. A row behind which there is but a stub that answers "not supported" must be
 * newer than the headers (driver/cuda_11.h).
 */

#include "driver/entry_points.h"

#include <stdio.h>

#include "control.h"

struct row {
        const char *symbol;
        int since;
        void (*address)(void);
};

#define ROW(symbol, since, suffix) {#symbol #suffix, since, (void (*)(void))symbol##suffix},

static const struct row rows[] = {
#define SP_EACH_HOOK(api, symbol, since, suffix, params, raw_args, args) ROW(symbol, since, suffix)
#define SP_EACH_RETRY(api, symbol, since, suffix, params, raw_args)      ROW(symbol, since, suffix)
#define SP_EACH_CALL(api, symbol, since, suffix)                         ROW(symbol, since, suffix)
#include "driver/entry_points.def"
};

int main(void)
{
        int wrong = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                if (rows[i].since > CUDA_VERSION ||
                    (rows[i].address && sim_is_simulated(rows[i].symbol)))
                        continue;
                printf("%s: is not simulated\n", rows[i].symbol);
                wrong++;
        }
        printf("%zu rows, %d wrong\n", sizeof(rows) / sizeof(*rows), wrong);
        return wrong ? 1 : 0;
}
