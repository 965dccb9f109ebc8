/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sift -- what is left of the findings, asked where little may be used
 *
 * Links the report with the ledger and base/. The places are functions of this
 * program and of the C library, whose names the loader knows.
 */

#include <criterion/criterion.h>
#include <pthread.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/life.h"
#include "report/inner.h"
#include "report/report.h"
#include "track/state.h"

enum { INVALID_VALUE = 1 };

uint64_t sp_route_stream_handle(uint64_t number)
{
        return number;
}

void sp_route_figures(struct sp_figures *figures)
{
        (void)figures;
}

void sp_route_reset_peaks(void)
{
}

static unsigned int allocations;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
        allocations++;
        return __real_malloc(size);
}

/* the program */

static const void *in_lfind(uintptr_t offset)
{
        return (const char *)&lfind + 1 + offset;
}

static const void *in_hsearch(uintptr_t offset)
{
        return (const char *)&hsearch + 1 + offset;
}

static void leak(uint64_t address, size_t bytes, const void *site)
{
        struct sp_ledger_entry entry = {
                .address = address, .bytes = bytes, .kind = SP_KIND_DEVICE, .site = site};

        sp_ledger_add(&entry);
}

static void free_wrongly(const void *site)
{
        sp_caller = site;
        sp_ledger_bad_free(SP_SPACE_DEVICE, 0x1234, "cuMemFree", INVALID_VALUE);
}

static void use_rules(const char *rules)
{
        char path[] = "/tmp/streampool-sift-XXXXXX";
        int fd = mkstemp(path);

        cr_assert_geq(fd, 0);
        cr_assert_eq(write(fd, rules, strlen(rules)), (ssize_t)strlen(rules));
        close(fd);
        setenv("STREAMPOOL_SUPPRESS", path, 1);
        sp_config_load();
        sp_suppress_start();
        unlink(path);
        cr_assert(sp_suppress_rules());
}

static struct sp_report report;
static char seen[1 << 16];

static const char *text_of_report(void)
{
        struct sp_text text;

        memset(&report, 0, sizeof(report));
        sp_report_gather(&report);
        sp_text_init(&text, seen, sizeof(seen));
        sp_report_text(&report, false, &text);
        return seen;
}

Test(sift, takes_what_a_rule_applies_to_out_of_lists_and_sums)
{
        use_rules("leak:^lfind$\nforeign:hsearch\n");
        leak(0x10000, 100, in_lfind(0));
        leak(0x20000, 200, in_lfind(1));
        leak(0x30000, 400, in_hsearch(0));
        free_wrongly(in_hsearch(1));
        free_wrongly(in_hsearch(1));
        free_wrongly(in_lfind(2));
        text_of_report();
        cr_expect_eq(report.leaks, 1);
        cr_expect_eq(report.leak[0].bytes, 400);
        cr_expect_eq(report.leaked_count, 1);
        cr_expect_eq(report.leaked_bytes, 400);
        cr_expect_eq(report.findings, 1);
        cr_expect_eq(report.finding[0].site, in_lfind(2));
        cr_expect_eq(report.totals.findings[SP_FINDING_FOREIGN], 1);
        cr_expect_eq(report.sifted.leaks, 2);
        cr_expect_eq(report.sifted.bytes, 300);
        cr_expect_eq(report.sifted.wrong_frees, 2);
        cr_expect(strstr(seen, "Suppressed by 2 rules: 2 wrong frees, and 300 B in 2 allocations"),
                  "%s", seen);
        cr_expect(sp_report_has_findings());
}

Test(sift, says_without_the_heap_whether_anything_is_left)
{
        unsigned int before;

        /* They are what takes the heap. */
        setenv("STREAMPOOL_SYMBOLS", "0", 1);
        use_rules("leak:^lfind$\nforeign:hsearch\n");
        cr_expect_not(sp_report_has_findings());
        leak(0x10000, 100, in_lfind(0));
        free_wrongly(in_hsearch(1));
        before = allocations;
        cr_expect_not(sp_report_has_findings());
        cr_expect_eq(allocations, before);
        leak(0x20000, 100, in_hsearch(0));
        cr_expect(sp_report_has_findings());
}

Test(sift, reads_its_rules_without_the_heap)
{
        unsigned int before;

        setenv("STREAMPOOL_SUPPRESS", "/dev/null", 1);
        sp_config_load();
        before = allocations;
        sp_suppress_start();
        cr_expect(sp_suppress_rules());
        cr_expect_eq(allocations, before);
}

Test(sift, knows_nothing_of_what_did_not_fit_the_list)
{
        use_rules("any:*\n");
        for (uintptr_t i = 0; i < SP_LEDGER_FINDINGS; i++)
                free_wrongly(in_lfind(i % 8));
        cr_expect_not(sp_report_has_findings());
        for (uintptr_t i = 0; i < SP_LEDGER_FINDINGS + 3; i++)
                free_wrongly(in_lfind(i));
        cr_expect(sp_report_has_findings());
        cr_expect(strstr(text_of_report(), "as the list is full: 3 times"), "%s", seen);
        cr_expect_not(strstr(seen, "freed once"), "%s", seen);
}

static pthread_barrier_t barrier;

static void *keep_the_books(void *unused)
{
        (void)unused;
        sp_model_enter();
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        sp_model_leave();
        return NULL;
}

Test(sift, calls_no_rule_useless_while_the_books_are_kept)
{
        pthread_t thread;

        use_rules("leak:^lfind$\nleak:nothing\n");
        leak(0x10000, 100, in_lfind(0));
        pthread_barrier_init(&barrier, NULL, 2);
        pthread_create(&thread, NULL, keep_the_books, NULL);
        pthread_barrier_wait(&barrier);
        cr_expect_not(strstr(text_of_report(), "nothing matched"), "%s", seen);
        cr_expect(report.busy);
        pthread_barrier_wait(&barrier);
        pthread_join(thread, NULL);
        cr_expect(strstr(text_of_report(), ":2: leak:nothing"), "%s", seen);
        cr_expect_not(strstr(seen, ":1: leak:"), "%s", seen);
}
