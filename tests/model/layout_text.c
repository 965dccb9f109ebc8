/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layout text -- layouts from text, what is wrong with them, and the presets
 */

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>
#include <streampool/model.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

static struct spm_layout layout;
static struct spm_layout_error error;

static void parse(const char *text)
{
        char why[160];
        enum spm_status status = spm_layout_parse(text, &layout, &error);

        spm_layout_explain(&error, why, sizeof(why));
        cr_assert_eq(status, SPM_OK, "%s: %s", text, why);
}

static const char *print(void)
{
        static char text[8192];

        cr_assert(spm_layout_print(&layout, text, sizeof(text)));
        return text;
}

Test(layout_text, every_field_is_read)
{
        const struct spm_shelf_config *shelf = layout.shelves;

        parse(" sliced : page=32M, slice=1M , cap=256M ;exclusive:max=512M,period=5000;\n"
              "direct:reclaim=2G;persistent=size-match;");
        cr_expect_eq(layout.count, 3);
        cr_expect_eq(layout.persistent, SPM_PERSISTENT_SIZE_MATCH);
        cr_expect_eq(layout.preset, SPM_PRESET_NONE);
        cr_expect_eq(shelf[0].kind, SPM_SHELF_SLICED);
        cr_expect_eq(shelf[0].page, 32 * MIB);
        cr_expect_eq(shelf[0].slice, MIB);
        cr_expect_eq(shelf[0].cap, 256 * MIB);
        cr_expect_not(shelf[0].shrink);
        cr_expect_eq(shelf[1].kind, SPM_SHELF_EXCLUSIVE);
        cr_expect_eq(shelf[1].max, 512 * MIB);
        cr_expect_eq(shelf[1].period, 5000);
        cr_expect_eq(shelf[2].kind, SPM_SHELF_DIRECT);
        cr_expect_eq(shelf[2].reclaim, 2 * GIB);
}

Test(layout_text, sizes_have_units_of_1024)
{
        parse("sliced:page=3T,slice=65,cap=4096GiB;exclusive:max=7k;exclusive:max=8kB");
        cr_expect_eq(layout.shelves[0].page, 3072 * GIB);
        cr_expect_eq(layout.shelves[0].slice, 65);
        cr_expect_eq(layout.shelves[0].cap, 4096 * GIB);
        cr_expect_eq(layout.shelves[1].max, 7 * KIB);
        cr_expect_eq(layout.shelves[2].max, 8 * KIB);
}

/* What is printed is what was read, in one form, and is read as the same again. */

struct text {
        char in[128];
        char out[128];
};

ParameterizedTestParameters(layout_text, is_printed)
{
        static struct text rows[] = {
                {"sliced:page=32M,slice=1M,cap=256M;exclusive:max=512M,period=5000;"
                 "direct:reclaim=2G;persistent=size-match",
                 "sliced:page=32M,slice=1M,cap=256M;exclusive:max=512M,period=5000;"
                 "direct:reclaim=2G;persistent=size-match"},
                {"sliced:cap=1023,page=1024,shrink", "sliced:page=1K,cap=1023,shrink"},
                {"direct;persistent=enabled", "direct"},
                {"persistent=enforced;exclusive:max=1536K,period=0",
                 "exclusive:max=1536K;persistent=enforced"},
                {"exclusive", "exclusive=1G"},
                {"exclusive=3G;persistent=enforced", "exclusive=3G;persistent=enforced"},
                {"subslices", "subslices=1G"},
                {"persistent=disabled ; subslices = 4097M", "subslices=4097M;persistent=disabled"},
                {"\n# all of it\n\tsliced : page=2M, # a grain\r\n\n cap=8M#\ndirect\n\n"
                 "persistent=\nenforced",
                 "sliced:page=2M,cap=8M;direct;persistent=enforced"},
                {"direct;# ; sliced\n\nexclusive:\nmax=1M # at the end", "direct;exclusive:max=1M"},
        };

        return cr_make_param_array(struct text, rows, sizeof(rows) / sizeof(rows[0]));
}

ParameterizedTest(struct text *row, layout_text, is_printed)
{
        struct spm_layout first;

        parse(row->in);
        memcpy(&first, &layout, sizeof(first));
        cr_expect_str_eq(print(), row->out);
        parse(print());
        cr_expect_arr_eq(&first, &layout, sizeof(first));
}

Test(layout_text, what_does_not_fit_the_buffer_is_told)
{
        char small[8];

        parse("exclusive");
        cr_expect_not(spm_layout_print(&layout, small, sizeof(small)));
        cr_expect_eq(strlen(small), 7);
}

/* Mistakes: each names the pool, the field, the value and the rule (C5). */

struct mistake {
        char text[64];
        enum spm_layout_fault fault;
        unsigned int index;
        size_t at;
        char why[120];
};

ParameterizedTestParameters(layout_text, mistakes)
{
        static struct mistake rows[] = {
                {"", SPM_LAYOUT_EMPTY_POOL_LIST, 0, 0, "the list has no pool"},
                {"persistent=enforced", SPM_LAYOUT_EMPTY_POOL_LIST, 0, 0, "the list has no pool"},
                {"direct;sliced", SPM_LAYOUT_ZERO_SIZE, 1, 0, "pool 2: page=0 must not be zero"},
                {"sliced:page=0", SPM_LAYOUT_ZERO_SIZE, 0, 12, "pool 1: page=0 must not be zero"},
                {"sliced:page=1M,cap=0", SPM_LAYOUT_ZERO_SIZE, 0, 19,
                 "pool 1: cap=0 must not be zero"},
                {"sliced:page=1M,slice=0K", SPM_LAYOUT_ZERO_SIZE, 0, 21,
                 "pool 1: slice=0 must not be zero"},
                {"direct:reclaim=0", SPM_LAYOUT_ZERO_SIZE, 0, 15,
                 "pool 1: reclaim=0 must not be zero"},
                {"exclusive:period=5", SPM_LAYOUT_ZERO_SIZE, 0, 0,
                 "pool 1: max=0 must not be zero"},
                {"direct;sliced:page=1K,slice=1025", SPM_LAYOUT_SLICE_LARGER_THAN_PAGE, 1, 0,
                 "pool 2: slice=1025 is larger than a page, and a slice lies in one page, page: "
                 "1024"},
                {"sliced:page=1K,cap=1023", SPM_LAYOUT_CAP_SMALLER_THAN_PAGE, 0, 0,
                 "pool 1: cap=1023 is smaller than a page, so that not one fits (shrink makes the "
                 "page smaller), page: 1024"},
                {"sliced:page=1K,cap=64M", SPM_LAYOUT_TOO_MANY_PAGES, 0, 0,
                 "pool 1: cap=65536 is more pages than a pool can have, at most: 65535"},
                {"exclusive:max=65537T", SPM_LAYOUT_SIZE_TOO_LARGE, 0, 0,
                 "pool 1: max=72058693549555712 is more than can be counted, at most: "
                 "72057594037927936"},
                {"direct;slices:page=1M", SPM_LAYOUT_UNKNOWN_WORD, 1, 7,
                 "pool 2, at character 8: 'slices' is not known here"},
                {"direct;persistent=always", SPM_LAYOUT_UNKNOWN_WORD, 1, 18,
                 "pool 2, at character 19: persistent 'always' is not known here"},
                {"sliced:page=1M;persistent", SPM_LAYOUT_UNKNOWN_WORD, 1, 15,
                 "pool 2, at character 16: 'persistent' is not known here"},
                {"direct:page=1M", SPM_LAYOUT_UNKNOWN_FIELD, 0, 7,
                 "pool 1, at character 8: 'page' is no field of this kind of pool"},
                {"exclusive:max=1M,shrink", SPM_LAYOUT_UNKNOWN_FIELD, 0, 17,
                 "pool 1, at character 18: 'shrink' is no field of this kind of pool"},
                {"subslices:page=4G", SPM_LAYOUT_UNKNOWN_WORD, 3, 9,
                 "pool 4, at character 10: ':' is not known here"},
                {"sliced:page=12Q", SPM_LAYOUT_BAD_SIZE, 0, 12,
                 "pool 1, at character 13: page '12Q' is no size such as 4096, 64K or 32M"},
                {"sliced:page=", SPM_LAYOUT_BAD_SIZE, 0, 12,
                 "pool 1, at character 13: page (nothing) is no size such as 4096, 64K or 32M"},
                {"sliced:page=-1", SPM_LAYOUT_BAD_SIZE, 0, 12,
                 "pool 1, at character 13: page '-1' is no size such as 4096, 64K or 32M"},
                {"sliced:page=16777216T", SPM_LAYOUT_BAD_SIZE, 0, 12,
                 "pool 1, at character 13: page '16777216T' is no size such as 4096, 64K or 32M"},
                {"sliced:page=18446744073709551616", SPM_LAYOUT_BAD_SIZE, 0, 12,
                 "pool 1, at character 13: page '18446744073709551616' is no size such as 4096, "
                 "64K or "
                 "32M"},
                {"sliced:page=1M,page=1M", SPM_LAYOUT_TWICE, 0, 15,
                 "pool 1, at character 16: page 'page' is said twice"},
                {"direct;exclusive", SPM_LAYOUT_MIXED, 1, 7,
                 "pool 2, at character 8: 'exclusive' cannot stand beside other pools, as a preset "
                 "is "
                 "a "
                 "whole list"},
                {"direct,", SPM_LAYOUT_UNKNOWN_WORD, 1, 6,
                 "pool 2, at character 7: ',' is not known here"},
                {"# none\n\n", SPM_LAYOUT_EMPTY_POOL_LIST, 0, 0, "the list has no pool"},
                {"direct\n\n  sliced:page=\n 12Q", SPM_LAYOUT_BAD_SIZE, 1, 24,
                 "pool 2, at line 4, character 2: page '12Q' is no size such as 4096, 64K or 32M"},
                {"bogus\n", SPM_LAYOUT_UNKNOWN_WORD, 0, 0,
                 "pool 1, at line 1, character 1: 'bogus' is not known here"},
                {"direct\n;direct", SPM_LAYOUT_UNKNOWN_WORD, 1, 7,
                 "pool 2, at line 2, character 1: ';' is not known here"},
                {"direct # one\nsliced:page=1K,\nslice=2K\ndirect",
                 SPM_LAYOUT_SLICE_LARGER_THAN_PAGE, 1, 0,
                 "pool 2, at line 2: slice=2048 is larger than a page, and a slice lies in one "
                 "page, "
                 "page: 1024"},
                {"#\nsubslices=127M", SPM_LAYOUT_PRESET_UNAVAILABLE, 0, 0,
                 "at line 2: subslices is a preset that cannot be made of this size, value: "
                 "133169152, at least: 134217728"},
                {"a\033[31mb", SPM_LAYOUT_UNKNOWN_WORD, 0, 0,
                 "pool 1, at character 1: 'a?[31mb' is not known here"},
                {"subslices=127M", SPM_LAYOUT_PRESET_UNAVAILABLE, 0, 0,
                 "subslices is a preset that cannot be made of this size, value: 133169152, at "
                 "least: 134217728"},
        };

        return cr_make_param_array(struct mistake, rows, sizeof(rows) / sizeof(rows[0]));
}

ParameterizedTest(struct mistake *row, layout_text, mistakes)
{
        struct spm_layout before;
        char why[200];

        memset(&layout, 0x5a, sizeof(layout));
        memcpy(&before, &layout, sizeof(before));
        cr_expect_eq(spm_layout_parse(row->text, &layout, &error), SPM_E_INVALID_VALUE, "%s",
                     row->text);
        spm_layout_explain(&error, why, sizeof(why));
        cr_expect_eq(error.fault, row->fault, "%s: %s", row->text, why);
        cr_expect_eq(error.index, row->index, "%s: %s", row->text, why);
        cr_expect_eq(error.at, row->at, "%s: at %zu", row->text, error.at);
        cr_expect_str_eq(why, row->why, "%s: %s", row->text, why);
        cr_expect_arr_eq(&before, &layout, sizeof(before));
        cr_expect_eq(spm_layout_parse(row->text, &layout, NULL), SPM_E_INVALID_VALUE);
}

Test(layout_text, there_are_254_pools_at_most)
{
        char text[255 * 7 + 1] = "";
        unsigned int i;

        for (i = 0; i < 255; i++)
                memcpy(text + i * 7, "direct;", 8);
        cr_expect_eq(spm_layout_parse(text, &layout, &error), SPM_E_INVALID_VALUE);
        cr_expect_eq(error.fault, SPM_LAYOUT_TOO_MANY_POOLS);
        cr_expect_eq(error.at, 254 * 7);
        text[254 * 7] = '\0';
        parse(text);
        cr_expect_eq(layout.count, 254);
        layout.count = 255;
        cr_expect_eq(spm_layout_check(&layout, &error), SPM_E_INVALID_VALUE);
        cr_expect_eq(error.fault, SPM_LAYOUT_TOO_MANY_POOLS);
        cr_expect_eq(error.value, 255);
}

Test(layout_text, kinds_that_are_none_are_refused)
{
        parse("direct;direct");
        layout.shelves[1].kind = SPM_SHELF_PERSISTENT;
        cr_expect_eq(spm_layout_check(&layout, &error), SPM_E_INVALID_VALUE);
        cr_expect_eq(error.fault, SPM_LAYOUT_NO_SUCH_KIND);
        cr_expect_eq(error.index, 1);
        layout.shelves[1].kind = SPM_SHELF_DIRECT;
        layout.persistent = (enum spm_persistent)7;
        cr_expect_eq(spm_layout_check(&layout, &error), SPM_E_INVALID_VALUE);
        cr_expect_str_eq(error.field, "persistent");
        cr_expect_eq(error.value, 7);
}

/* presets */

Test(layout_text, subslices_are_a_ladder_with_an_exclusive_tail)
{
        static const uint64_t tops[] = {128 * MIB, 511 * MIB, GIB, 20 * GIB, 100 * GIB + 512};
        unsigned int i;

        for (i = 0; i < sizeof(tops) / sizeof(tops[0]); i++) {
                uint64_t max = tops[i];
                unsigned int k = 0;
                unsigned int at;

                cr_assert_eq(spm_layout_preset(SPM_PRESET_SUBSLICES, max, &layout, &error), SPM_OK);
                while (max / (4 * ((uint64_t)1 << 2 * k)) >= 32 * MIB)
                        k++;
                cr_assert_eq(layout.count, k + 1);
                for (at = 0; at < k; at++) {
                        const struct spm_shelf_config *shelf = &layout.shelves[at];

                        cr_expect_eq(shelf->kind, SPM_SHELF_SLICED);
                        cr_expect_eq(shelf->page, max / ((uint64_t)1 << 2 * (k - at)));
                        cr_expect_eq(shelf->slice, shelf->page / ((uint64_t)1 << (k - at)));
                        cr_expect_eq(shelf->cap, 0);
                }
                cr_expect_eq(layout.shelves[k].kind, SPM_SHELF_EXCLUSIVE);
                cr_expect_eq(layout.shelves[k].max, max);
                cr_expect_eq(layout.shelves[k].period,
                             (uint64_t)(5000 * (1 + (double)max / (double)GIB) + 0.5));
                cr_expect_eq(spm_layout_check(&layout, &error), SPM_OK);
        }
}

Test(layout_text, exclusive_pages_are_24_sizes_from_32_KiB)
{
        unsigned int i;

        cr_assert_eq(spm_layout_preset(SPM_PRESET_EXCLUSIVE, 32 * GIB, &layout, &error), SPM_OK);
        cr_assert_eq(layout.count, 24);
        cr_expect_eq(layout.shelves[0].max, 32 * KIB);
        cr_expect_eq(layout.shelves[23].max, 32 * GIB);
        for (i = 0; i < 24; i++) {
                uint64_t size = layout.shelves[i].max;
                double step = i ? (double)size / (double)layout.shelves[i - 1].max : 0;

                cr_expect_eq(size % 512, 0);
                cr_expect_eq(layout.shelves[i].period,
                             (uint64_t)(5000 * (1 + (double)size / (double)GIB) + 0.5));
                /* 2^20 in 23 steps: each is 1.827, but for the rounding. */
                if (i)
                        cr_expect(step > 1.80 && step < 1.86, "step %u is %f", i, step);
        }
        cr_expect_eq(spm_layout_check(&layout, &error), SPM_OK);
}

Test(layout_text, presets_that_cannot_be_made_are_unavailable)
{
        cr_expect_eq(spm_layout_preset(SPM_PRESET_EXCLUSIVE, 32 * KIB, &layout, &error),
                     SPM_E_INVALID_VALUE);
        cr_expect_eq(error.fault, SPM_LAYOUT_PRESET_UNAVAILABLE);
        cr_expect_str_eq(error.field, "exclusive");
        cr_expect_eq(spm_layout_preset(SPM_PRESET_NONE, GIB, &layout, &error), SPM_E_INVALID_VALUE);
        cr_expect_eq(error.fault, SPM_LAYOUT_NO_SUCH_KIND);
        cr_expect_eq(spm_layout_preset(SPM_PRESET_EXCLUSIVE, 33 * KIB, &layout, &error), SPM_OK);
        cr_expect_eq(layout.count, 3, "32 KiB, 32.5 KiB and 33 KiB");
}

Test(layout_text, some_failures_pass)
{
        cr_expect(spm_layout_is_transient(SPM_LAYOUT_POOLS_IN_USE));
        cr_expect(spm_layout_is_transient(SPM_LAYOUT_CAPACITY_EXCEEDED));
        cr_expect_not(spm_layout_is_transient(SPM_LAYOUT_UNSUPPORTED));
        cr_expect_not(spm_layout_is_transient(SPM_LAYOUT_TOO_BIG));
        cr_expect_not(spm_layout_is_transient(SPM_LAYOUT_ZERO_SIZE));
}
