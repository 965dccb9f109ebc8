/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submissions -- the exports of the shim, and which of them are noted as work
 *
 * One a line: `submit` for what marks a stream, `hook` for what has a handler of
 * its own, `retry` for what is only forwarded, and the exported name.
 */
#include <stdio.h>

#include "driver/entry_points.h"

int main(void)
{
#define SP_EACH_HOOK(api, symbol, since, suffix, params, raw_args, args)                           \
        puts("hook " #symbol #suffix);
#define SP_EACH_RETRY(api, symbol, since, suffix, params, raw_args) puts("retry " #symbol #suffix);
#define SP_EACH_SUBMIT(api, symbol, since, suffix, kind, params, raw_args, stream)                 \
        puts("submit " #symbol #suffix);
#include "driver/entry_points.def"
        return 0;
}
