/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dump -- the state as text and as a number
 */

#include "bench.h"
#include "shelves.h"

#include <string.h>

#include "text.h"

TestSuite(dump, .init = bench_set_up, .fini = bench_tear_down);

static void append(const char *text, void *user)
{
        char *all = user;

        if (strlen(all) + strlen(text) + 2 < 8192) {
                strcat(all, text);
                strcat(all, "\n");
        }
}

Test(dump, tells_of_blocks_and_streams)
{
        static char all[8192];

        bench_free(bench_alloc(bench.async, bench.s, 1000), bench.s);
        bench_alloc(bench.sync, 0, 512);
        spm_dump(bench.model, append, all);
        cr_expect_not_null(strstr(all, "size 1024 pending after "), "%s", all);
        cr_expect_not_null(strstr(all, "size 512 live"), "%s", all);
        cr_expect_not_null(strstr(all, "context 1 device 0"), "%s", all);
}

Test(dump, tells_of_pages)
{
        static char all[8192];
        spm_pool pool = shelves_pool("sliced:page=1K,cap=1K;exclusive:max=1K");

        bench_alloc(pool, bench.s, 1000);
        bench_alloc(pool, bench.s, 1000);
        spm_dump(bench.model, append, all);
        cr_expect_not_null(strstr(all, "size 1024 shelf 0 page 0 idle 4"), "%s", all);
        cr_expect_not_null(strstr(all, "size 1024 shelf 1 page 0 idle 4"), "%s", all);
}

Test(dump, equal_inputs_give_equal_hashes)
{
        uint64_t first;
        int round;

        for (round = 0; round < 2; round++) {
                uint64_t hash;
                int i;

                bench_tear_down();
                bench_set_up();
                for (i = 1; i < 50; i++)
                        bench_free(bench_alloc(bench.async, bench.s, (size_t)i * 777), bench.s);
                hash = spm_hash(bench.model);
                if (round)
                        cr_expect_eq(hash, first, "A19");
                first = hash;
        }
        bench_alloc(bench.async, bench.s, 1);
        cr_expect_neq(spm_hash(bench.model), first);
}

Test(dump, text_that_does_not_fit_is_left_out)
{
        struct spm_text text;
        char buffer[12];

        spm_text_start(&text, buffer, sizeof(buffer));
        spm_text_count(&text, "n", 1234567890123456789u);
        cr_expect_str_eq(buffer, "n 123456789");
        spm_text_start(&text, buffer, sizeof(buffer));
        spm_text_address(&text, "a", 0xfeed);
        cr_expect_str_eq(buffer, "a 0xfeed");
        spm_text_start(&text, NULL, 0);
        spm_text_word(&text, "nowhere");
}
