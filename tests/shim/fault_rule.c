/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Fault rule -- what the words of STREAMPOOL_FAULT mean, and what is said of wrong ones
 */

#include "track/fault_rule.h"

#include <criterion/criterion.h>
#include <cuda.h>
#include <string.h>

#include "base/pattern.h"
#include "track/result.h"

#define MIB ((size_t)1 << 20)

static struct sp_fault_rule rules[SP_FAULT_RULES];
static unsigned int count;
static char complaint_bytes[480];
static struct sp_text complaint;

static bool reads(const char *text)
{
        sp_text_init(&complaint, complaint_bytes, sizeof(complaint_bytes));
        return sp_fault_read(text, rules, &count, &complaint);
}

static struct sp_fault_rule rule_of(const char *text)
{
        cr_assert(reads(text), "%s: %s", text, complaint_bytes);
        cr_assert_eq(count, 1);
        cr_expect_str_eq(complaint_bytes, "");
        return rules[0];
}

/* reading */

Test(fault_rule, nothing_is_no_rule)
{
        count = 7;
        cr_expect(reads(""));
        cr_expect_eq(count, 0);
}

Test(fault_rule, fails_everything_for_lack_of_memory_where_nothing_else_is_said)
{
        struct sp_fault_rule rule = rule_of("after=0");
        struct sp_fault_call call = {SP_KIND_MAPPED, SP_FAULT_UNSIZED, NULL};

        cr_expect(sp_fault_matches(&rule, &call));
        cr_expect(sp_fault_wants(&rule, 1));
        cr_expect_eq(rule.error, CUDA_ERROR_OUT_OF_MEMORY);
}

Test(fault_rule, of_all_words_is_read_as_it_is_written)
{
        const char *text =
                "kind=device+pinned, size=4K-1M,site=lib*.so,every=3,p=0.25,seed=9,after=5,"
                "times=2,error=999";
        struct sp_fault_rule rule = rule_of(text);

        cr_expect_str_eq(rule.words, text);
        cr_expect_eq(rule.kinds, 1U << SP_KIND_DEVICE | 1U << SP_KIND_PINNED);
        cr_expect(rule.size.low == 4096 && rule.size.high == MIB);
        cr_expect_str_eq(rule.site, "lib*.so");
        cr_expect(rule.every == 3 && rule.after == 5 && rule.times == 2 && rule.seed == 9);
        cr_expect_eq(rule.chance, 1ULL << 62);
        cr_expect_eq(rule.error, CUDA_ERROR_UNKNOWN);
}

Test(fault_rule, is_one_of_several)
{
        cr_assert(reads("nth=1;kind=async,nth=2; error=1,nth=3"), "%s", complaint_bytes);
        cr_expect_eq(count, 3);
        cr_expect(rules[0].nth == 1 && rules[1].nth == 2 && rules[2].nth == 3);
        cr_expect_str_eq(rules[2].words, "error=1,nth=3");
        cr_expect_eq(rules[2].error, 1);
}

Test(fault_rule, knows_every_kind_by_the_name_that_the_report_gives)
{
        for (unsigned int i = 0; i < SP_KIND_COUNT; i++) {
                char text[32] = "kind=";

                strcat(text, sp_kind_name(i));
                cr_expect_eq(rule_of(text).kinds, 1U << i, "%s", text);
                cr_expect_not(reads("kind=no"));
                cr_expect(strstr(complaint_bytes, sp_kind_name(i)), "%s would do", sp_kind_name(i));
        }
}

/* A part of what is wrong in each, as it is told. */
Test(fault_rule, that_is_wrong_is_told_with_what_would_do)
{
        static const struct {
                const char *text, *told;
        } rows[] = {
                {"nht=3", "rule 1 (nht=3): nht=3 is none of nth=, every=,"},
                {"nth", "nth will not do: nth= takes a whole number from 1"},
                {"nth=", "nth= will not do: nth= takes a whole number from 1"},
                {"nth=0", "nth=0 will not do:"},
                {"nth=3x", "nth=3x will not do:"},
                {"nth=-1", "nth=-1 will not do:"},
                {"nth=4294967296", "nth=4294967296 will not do:"},
                {"every=0", "every=0 will not do: every= takes a whole number from 1"},
                {"times=0", "times=0 will not do: times= takes a whole number from 1"},
                {"p=0", "p=0 will not do: p= takes a share above 0 and up to 1, as 0.01"},
                {"p=1.01", "p=1.01 will not do:"},
                {"p=1%", "p=1% will not do:"},
                {"p=.", "p=. will not do:"},
                {"p=0.1.1", "p=0.1.1 will not do:"},
                {"p=", "p= will not do:"},
                {"p=1e-3", "p=1e-3 will not do:"},
                {"p=0.5,seed=-1",
                 "seed=-1 will not do: seed= takes a whole number up to 4294967295"},
                {"after=x", "after=x will not do: after= takes a whole number"},
                {"size=", "size= will not do: size= takes a size or a range"},
                {"size=-", "size=- will not do:"},
                {"size=2M-1M", "size=2M-1M will not do:"},
                {"size=1-2-3", "size=1-2-3 will not do:"},
                {"size=4Q", "size=4Q will not do:"},
                {"kind=devise", "kind=devise will not do: kind= takes device, async, pitch,"},
                {"kind=device+", "kind=device+ will not do:"},
                {"kind=", "kind= will not do:"},
                {"site=", "site= will not do: site= takes a part of"},
                {"error=0",
                 "error=0 will not do: error= takes a number from 1 or a name of cuda.h"},
                {"error=CUDA_SUCCESS", "error=CUDA_SUCCESS will not do:"},
                {"error=CUDA_ERROR_", "error=CUDA_ERROR_ will not do:"},
                {"error=oom", "error=oom will not do:"},
                {"nth=1,nth=2", "rule 1 (nth=1,nth=2): nth is there twice; once would do"},
                {"nth=1;every=2;kind=x,nth=1", "rule 3 (kind=x,nth=1): kind=x will not do"},
                {"nth=1;", "rule 2 (): nothing is none of nth="},
                {"nth=1,", "rule 1 (nth=1,): nothing is none of"},
                {"seed=3,nth=2", "rule 1 (seed=3,nth=2): seed is of no use without p"},
                {"nth=2,every=2", "nth and every exclude each other"},
                {"nth=3,after=3", "nth has to be above after"},
                {"after=1;after=1;after=1;after=1;after=1;after=1;after=1;after=1;after=1;after=1;"
                 "after=1;after=1;after=1;after=1;after=1;after=1;after=1",
                 "there are more than 16 rules"},
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                count = 7;
                rules[0].error = 77;
                cr_expect_not(reads(rows[i].text), "%s", rows[i].text);
                cr_expect(strstr(complaint_bytes, rows[i].told), "%s: %s", rows[i].text,
                          complaint_bytes);
                cr_expect(count == 7 && rules[0].error == 77, "%s: written on success only",
                          rows[i].text);
        }
}

Test(fault_rule, that_is_too_long_is_told_and_the_longest_is_read)
{
        char text[SP_FAULT_WORDS + 1] = "site=";

        memset(text + 5, 'x', SP_FAULT_WORDS - 6);
        cr_expect_eq(strlen(rule_of(text).site), SP_FAULT_WORDS - 6);
        text[SP_FAULT_WORDS - 1] = 'x';
        cr_expect_not(reads(text));
        cr_expect_str_eq(complaint_bytes, "rule 1 is longer than 239 letters");
}

/* results */

Test(fault_rule, names_each_error_as_cuda_h_does)
{
        static const struct {
                int number;
                CUresult header;
        } rows[] = {
                {2, CUDA_ERROR_OUT_OF_MEMORY},
                {100, CUDA_ERROR_NO_DEVICE},
                {201, CUDA_ERROR_INVALID_CONTEXT},
                {304, CUDA_ERROR_OPERATING_SYSTEM},
                {700, CUDA_ERROR_ILLEGAL_ADDRESS},
                {719, CUDA_ERROR_LAUNCH_FAILED},
                {801, CUDA_ERROR_NOT_SUPPORTED},
                {900, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED},
                {910, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE},
        };
        unsigned int names = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                cr_expect_eq(rows[i].number, (int)rows[i].header);
        /* The simulated driver has a list of its own. */
        for (int number = 1; number < 1000; number++) {
                const char *name = NULL;
                char text[128] = "error=";

                if (cuGetErrorName((CUresult)number, &name) != CUDA_SUCCESS)
                        continue;
                names++;
                cr_assert_not_null(sp_result_name(number), "%s", name);
                cr_expect_str_eq(sp_result_name(number), name);
                cr_expect_eq(rule_of(strcat(text, name)).error, number, "%s", text);
        }
        cr_expect_gt(names, 90);
        cr_expect_null(sp_result_name(998));
        cr_expect_eq(rule_of("error=out_of_memory").error, 2);
        cr_expect_eq(rule_of("error=Unknown").error, 999);
        cr_expect_eq(rule_of("error=998").error, 998, "a number needs no name");
}

/* conditions */

Test(fault_rule, of_a_size_includes_both_ends)
{
        static const struct {
                const char *text;
                size_t bytes;
                bool matches;
        } rows[] = {
                {"size=8", 8, true},
                {"size=8", 9, false},
                {"size=8", 7, false},
                {"size=4K-1M", 4095, false},
                {"size=4K-1M", 4096, true},
                {"size=4K-1M", MIB, true},
                {"size=4K-1M", MIB + 1, false},
                {"size=1M-", MIB - 1, false},
                {"size=1M-", MIB, true},
                {"size=1M-", SIZE_MAX - 1, true},
                {"size=-2M", 1, true},
                {"size=-2M", 2 * MIB, true},
                {"size=-2M", 2 * MIB + 1, false},
                {"size=1-", SP_FAULT_UNSIZED, false},
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct sp_fault_rule rule = rule_of(rows[i].text);
                struct sp_fault_call call = {.bytes = rows[i].bytes};

                cr_expect_eq(sp_fault_matches(&rule, &call), rows[i].matches, "%s and %zu",
                             rows[i].text, rows[i].bytes);
        }
}

Test(fault_rule, of_kinds_matches_these)
{
        struct sp_fault_rule rule = rule_of("kind=Array+async");

        for (unsigned int i = 0; i < SP_KIND_COUNT; i++) {
                struct sp_fault_call call = {.kind = i, .bytes = 8};

                cr_expect_eq(sp_fault_matches(&rule, &call),
                             i == SP_KIND_ARRAY || i == SP_KIND_ASYNC, "%s", sp_kind_name(i));
        }
}

Test(fault_rule, of_a_site_matches_a_part_of_it)
{
        static const struct {
                const char *pattern, *site;
                bool fits;
        } rows[] = {
                {"libfoo", "libfoo.so+0x12 (bar)", true},
                {"bar", "libfoo.so+0x12 (bar)", true},
                {"Bar", "libfoo.so+0x12 (bar)", false},
                {"libfoo.so+0x12", "libfoo.so+0x12 (bar)", true},
                {"libfoo.so+0x13", "libfoo.so+0x12 (bar)", false},
                {"lib*bar", "libfoo.so+0x12 (bar)", true},
                {"bar*lib", "libfoo.so+0x12 (bar)", false},
                {"*foo*(b*r)", "libfoo.so+0x12 (bar)", true},
                {"foo*foo", "libfoo.so", false},
                {"*", "", true},
                {"x", "", false},
        };
        struct sp_fault_rule rule = rule_of("site=foo*(bar)");

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                cr_expect_eq(sp_pattern_is_in(rows[i].site, rows[i].pattern,
                                              strlen(rows[i].pattern), false, false),
                             rows[i].fits, "%s in %s", rows[i].pattern, rows[i].site);
        cr_expect(sp_fault_matches(&rule, &(struct sp_fault_call){.site = "libfoo.so (bar)"}));
        cr_expect_not(sp_fault_matches(&rule, &(struct sp_fault_call){.site = "app (main)"}));
        cr_expect_not(sp_fault_matches(&rule, &(struct sp_fault_call){.site = NULL}));
}

/* which of them */

/* The numbers up to 12 that fail, as bits. */
static unsigned int wanted(const char *text)
{
        struct sp_fault_rule rule = rule_of(text);
        unsigned int bits = 0;

        for (unsigned int i = 0; i <= 12; i++)
                bits |= (unsigned int)sp_fault_wants(&rule, i) << i;
        return bits;
}

Test(fault_rule, picks_calls_by_their_number)
{
        cr_expect_eq(wanted("nth=1"), 1U << 1);
        cr_expect_eq(wanted("nth=7"), 1U << 7);
        cr_expect_eq(wanted("every=5"), 1U << 5 | 1U << 10);
        cr_expect_eq(wanted("every=1,after=10"), 1U << 11 | 1U << 12);
        cr_expect_eq(wanted("after=11"), 1U << 12);
        cr_expect_eq(wanted("every=5,after=5"), 1U << 10);
        cr_expect_eq(wanted("p=1,after=9"), 7U << 10);
}

enum { DRAWS = 200000 };

static unsigned int failures(const char *text, unsigned int every)
{
        struct sp_fault_rule rule = rule_of(text);
        unsigned int failed = 0;

        for (uint64_t i = every; i <= DRAWS; i += every)
                failed += sp_fault_wants(&rule, i);
        return failed;
}

/* Within five standard deviations; the generator has no state, so this never changes. */
static void expect_share(const char *text, unsigned int every, double share)
{
        double draws = DRAWS / every, off = failures(text, every) - draws * share;

        cr_expect(off * off <= 25 * draws * share * (1 - share), "%s: off by %f of %f", text, off,
                  draws * share);
}

Test(fault_rule, picks_as_large_a_share_as_it_says)
{
        expect_share("p=0.01,seed=42", 1, 0.01);
        expect_share("p=.5,seed=42", 1, 0.5);
        expect_share("p=0.5,seed=43", 1, 0.5);
        expect_share("p=0.999,seed=0", 1, 0.999);
        expect_share("p=0.0001,seed=4294967295", 1, 0.0001);
        expect_share("p=0.25,seed=1", 64, 0.25);
        cr_expect_eq(failures("p=1,seed=5", 1), DRAWS);
        cr_expect_leq(failures("p=0.00000000000000001,seed=5", 1), 0);
}

/* How many of the calls that @a and @b pick with half a chance are the same. */
static unsigned int agreement(const char *a, const char *b, unsigned int shift)
{
        struct sp_fault_rule first = rule_of(a), second = rule_of(b);
        unsigned int same = 0;

        for (uint64_t i = 1; i <= 10000; i++)
                same += sp_fault_wants(&first, i) == sp_fault_wants(&second, i + shift);
        return same;
}

Test(fault_rule, picks_the_same_with_the_same_seed_and_others_with_another)
{
        cr_expect_eq(agreement("p=0.5,seed=7", "p=0.5,seed=7", 0), 10000);
        for (unsigned int shift = 0; shift < 3; shift++) {
                unsigned int same = agreement("p=0.5,seed=7", "p=0.5,seed=8", shift);

                cr_expect(same > 4750 && same < 5250, "%u of 10000 agree", same);
        }
}
