/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Entry names -- the rows of entry_points.def that become exports, one a line
 *
 * Compiled with the headers of this build, so a row that is newer than they are
 * is missing here as it is missing in the shim. check_exports.py compares.
 */

#include <stdio.h>

#include "driver/entry_points.h"

int main(void)
{
#define SP_EACH_HOOK(api, symbol, since, suffix, params, raw_args, args) puts(#symbol #suffix);
#define SP_EACH_RETRY(api, symbol, since, suffix, params, raw_args)      puts(#symbol #suffix);
#define SP_EACH_SUBMIT(api, symbol, since, suffix, kind, params, raw_args, stream)                 \
        puts(#symbol #suffix);
#include "driver/entry_points.def"
        return 0;
}
