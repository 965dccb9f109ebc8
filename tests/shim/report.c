/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Report -- where it goes, when there is none, and what a person reads
 *
 * Links the report with the ledger and base/. The pools are a function of this
 * file. The JSON form is check_report.py's.
 */

#define _GNU_SOURCE

#include "report/report.h"

/* A weak reference would not take the functions out of a static library. */
#define STREAMPOOL_API
#include <streampool/streampool.h>

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "base/life.h"
#include "report/inner.h"
#include "track/ledger_inner.h"
#include "track/state.h"
#include "track/submit.h"

enum { OK = 0, INVALID_VALUE = 1 };

static struct sp_figures pools;
static bool peaks_were_reset;

uint64_t sp_route_stream_handle(uint64_t number)
{
        return number;
}

void sp_route_figures(struct sp_figures *figures)
{
        *figures = pools;
}

void sp_route_reset_peaks(void)
{
        peaks_were_reset = true;
}

/* the program */

static void add(enum sp_kind kind, uint64_t address, size_t bytes, const void *site)
{
        struct sp_ledger_entry entry = {
                .address = address, .bytes = bytes, .kind = kind, .site = site};

        sp_ledger_add(&entry);
}

static void free_it(uint64_t address, int result)
{
        struct sp_ledger_entry entry;
        bool known = sp_ledger_take(SP_SPACE_DEVICE, address, &entry);

        sp_ledger_free_ended(known ? &entry : NULL, SP_SPACE_DEVICE, address, "cuMemFree", result);
}

static void work(void)
{
        add(SP_KIND_DEVICE, 0x10000, 4096, NULL);
        free_it(0x10000, OK);
}

static void add_pool(int device, enum sp_pool_class class, uint64_t allocs, uint64_t hits)
{
        pools.pool[pools.pools++] = (struct sp_pool_figures){
                .device = device,
                .class = class,
                .requested_high = 3 << 20,
                .reserved_high = 32 << 20,
                .allocs = allocs,
                .frees = allocs,
                .hits = hits,
        };
}

/* reading */

static char folder[] = "/tmp/streampool-report-XXXXXX";
static char seen[1 << 16];

static void enter_folder(void)
{
        cr_assert(mkdtemp(folder));
        cr_assert_eq(chdir(folder), 0);
}

static void leave_folder(void)
{
        char command[64];

        snprintf(command, sizeof(command), "rm -r %s", folder);
        cr_assert_eq(system(command), 0);
}

TestSuite(write, .init = enter_folder, .fini = leave_folder);

static const char *read_file(const char *path)
{
        int fd = open(path, O_RDONLY);
        ssize_t length;

        cr_assert_geq(fd, 0, "%s: %s", path, strerror(errno));
        length = read(fd, seen, sizeof(seen) - 1);
        cr_assert_geq(length, 0);
        seen[length] = '\0';
        close(fd);
        return seen;
}

/* Writes the report with stderr in the file "stderr". */
static void write_with(const char *report)
{
        int fd = open("stderr", O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);
        int kept = dup(STDERR_FILENO);

        cr_assert(fd >= 0 && kept >= 0);
        if (report)
                setenv("STREAMPOOL_REPORT", report, 1);
        sp_config_load();
        dup2(fd, STDERR_FILENO);
        sp_report_write();
        dup2(kept, STDERR_FILENO);
        close(kept);
        close(fd);
}

static const char *text_of(bool with_lookups)
{
        static struct sp_report report;
        struct sp_text text;

        memset(&report, 0, sizeof(report));
        sp_report_gather(&report);
        sp_text_init(&text, seen, sizeof(seen));
        sp_report_text(&report, with_lookups, &text);
        cr_assert_not(text.cut);
        return seen;
}

static unsigned int lines(const char *text)
{
        unsigned int count = 0;

        for (; *text; text++)
                count += *text == '\n';
        return count;
}

static bool says(const char *text, const char *words)
{
        return strstr(text, words) != NULL;
}

/* where it goes */

Test(write, goes_to_stderr_if_nothing_is_said)
{
        work();
        write_with(NULL);
        cr_expect(says(read_file("stderr"), "Everything was freed, and freed once."), "%s", seen);
}

Test(write, nothing_of_a_process_that_did_nothing)
{
        struct stat status;

        write_with("out");
        cr_expect_str_empty(read_file("stderr"));
        cr_expect_neq(stat("out", &status), 0);
}

Test(write, a_file_with_process_host_and_rank_in_its_name)
{
        char host[65];
        char path[128];

        gethostname(host, sizeof(host) - 1);
        host[64] = '\0';
        snprintf(path, sizeof(path), "%d-%s-12-%%-%%x-%%", (int)getpid(), host);
        setenv("SLURM_PROCID", "12", 1);
        work();
        write_with("%p-%h-%r-%%-%x-%");
        cr_expect(says(read_file(path), "rank 12"));
        cr_expect_str_empty(read_file("stderr"));
}

Test(write, replaces_a_longer_file_of_an_earlier_run)
{
        int fd = open("out", O_WRONLY | O_CREAT, 0600);
        char old[8192];

        memset(old, 'x', sizeof(old));
        cr_assert_eq(write(fd, old, sizeof(old)), (ssize_t)sizeof(old));
        close(fd);
        work();
        write_with("out");
        cr_expect_not(says(read_file("out"), "xxx"));
}

Test(write, to_stderr_with_the_reason_if_the_file_cannot_be_written)
{
        work();
        write_with("no/such/folder");
        read_file("stderr");
        cr_expect(says(seen, "cannot be written to no/such/folder: No such file"), "%s", seen);
        cr_expect(says(seen, "What the program held"), "%s", seen);
}

Test(write, to_stderr_if_the_device_is_full)
{
        work();
        write_with("/dev/full");
        read_file("stderr");
        cr_expect(says(seen, "/dev/full: No space left"), "%s", seen);
        cr_expect(says(seen, "What the program held"), "%s", seen);
}

Test(write, nothing_if_none_is_wanted)
{
        struct stat status;

        work();
        write_with("none");
        cr_expect_str_empty(read_file("stderr"));
        cr_expect_neq(stat("none", &status), 0);
}

Test(write, the_look_ups_of_a_process_that_did_nothing_if_asked_for)
{
        setenv("STREAMPOOL_DIAG", "1", 1);
        sp_count_add(lookups_driver, 410);
        write_with("-");
        read_file("stderr");
        cr_expect(says(seen, "       410  cuGetProcAddress asked"), "%s", seen);
        cr_expect(says(seen, "No memory was allocated"), "%s", seen);
}

Test(write, leaves_no_file_open)
{
        int before = dup(STDERR_FILENO);
        int after;

        close(before);
        work();
        write_with("out");
        after = dup(STDERR_FILENO);
        close(after);
        cr_expect_eq(before, after);
}

/* what it says */

Test(text, of_a_correct_program_fits_on_a_screen)
{
        for (enum sp_kind kind = 0; kind < SP_KIND_MAPPED; kind++)
                add(kind, 0x10000 * (kind + 1), 4096, NULL);
        sp_ledger_context_gone(0);
        free_it(0x20000, OK);
        add_pool(0, SP_CLASS_SYNC, 100, 90);
        add_pool(0, SP_CLASS_ASYNC, 100, 90);
        add_pool(1, SP_CLASS_SYNC, 100, 90);
        cr_expect_lt(lines(text_of(true)), 50);
        cr_expect_not(says(seen, "Freed"));

        memset(&sp_ledger.totals, 0, sizeof(sp_ledger.totals));
        sp_ledger.nodes = NULL;
        work();
        cr_expect_leq(lines(text_of(false)), 24);
        cr_expect(says(seen, "Everything was freed, and freed once."));
        cr_expect_not(says(seen, "Never freed"));
}

Test(text, tells_the_worst_first)
{
        const char *twice;
        const char *middle;
        const char *never_made;
        const char *never;

        free_it(0x999, INVALID_VALUE);
        add(SP_KIND_DEVICE, 0x20000, 4096, NULL);
        free_it(0x20100, INVALID_VALUE);
        work();
        free_it(0x10000, INVALID_VALUE);
        text_of(false);
        twice = strstr(seen, "Freed twice: 1 time\n  One of the two frees is too many");
        middle = strstr(seen, "Freed in the middle: 1 time");
        never_made = strstr(seen, "Freed, but never allocated: 1 time");
        never = strstr(seen, "Never freed: 4 KiB in 1 allocation\n  Free it; or, if it is held");
        cr_assert(twice && middle && never_made && never, "%s", seen);
        cr_expect(twice < middle && middle < never_made && never_made < never, "%s", seen);
        cr_expect(says(seen, "\n  cuMemFree(0x10000): invalid value (1) "), "%s", seen);
        cr_expect(says(seen, "\n      1 x 4 KiB of device memory "), "%s", seen);
        cr_expect(says(seen, "256 bytes into 4 KiB of device memory"), "%s", seen);
        cr_expect(says(seen, "freed before by cuMemFree"), "%s", seen);
        cr_expect_not(says(seen, "Everything was freed"));
}

Test(text, tells_what_a_copy_touched)
{
        struct sp_finding finding = {
                .kind = SP_FINDING_OUT_OF_BOUNDS,
                .address = 0x20010,
                .function = "cuMemcpyDtoH",
                .times = 1,
                .has_block = true,
                .block = {.address = 0x20000, .bytes = 4096, .kind = SP_KIND_DEVICE},
                .touched = 4087,
                .outside = 4096,
                .beyond = 7,
        };

        work();
        sp_ledger_add_finding(&finding);
        finding.kind = SP_FINDING_USE_AFTER_FREE;
        finding.has_block = false;
        finding.touched = 1;
        finding.is_write = true;
        sp_ledger_add_finding(&finding);
        text_of(false);
        cr_expect(says(seen, "\n  cuMemcpyDtoH(0x20010): writes 1 byte "), "%s", seen);
        cr_expect(says(seen, "    in memory of the pool that is in no block;"), "%s", seen);
        cr_expect(says(seen, "\n  cuMemcpyDtoH(0x20010): reads 4087 bytes "), "%s", seen);
        cr_expect(says(seen, "    outside from byte 4096 on, and 7 bytes past the end of 4096\n"
                             "    4 KiB of device memory, allocated "),
                  "%s", seen);
        cr_expect_lt(strstr(seen, "Used after it was freed: 1 time\n"),
                     strstr(seen, "Used past its end: 1 time\n"));
        cr_expect_not(says(seen, "error"), "a use was refused nothing: %s", seen);
}

Test(text, adds_up_what_was_lost_in_one_place)
{
        for (uint64_t i = 0; i < 300; i++)
                add(SP_KIND_DEVICE, 0x100000 + i * 0x1000, i < 200 ? 1024 : 2048,
                    (const char *)&qsort + 1 + i / 100);
        text_of(false);
        cr_expect(says(seen, "Never freed: 400 KiB in 300 allocations"), "%s", seen);
        cr_expect(says(seen, "    100 x 2 KiB of device memory, 200 KiB"), "%s", seen);
        cr_expect(says(seen, "    100 x 1 KiB of device memory, 100 KiB"), "%s", seen);
        cr_expect_eq(lines(strstr(seen, "Never freed")) - lines(strstr(seen, "\naddr2line")), 5);
}

/* Where stacks are kept, one line of a program can be any number of places. */
Test(gather, adds_up_what_finds_no_place_in_the_list)
{
        static struct sp_report report;
        uint64_t count = 0, bytes = 0, unplaced = 0;

        for (size_t i = 0; i < 3 * SP_REPORT_LEAKS; i++)
                add(i % 3 ? SP_KIND_DEVICE : SP_KIND_ASYNC, 4096 + i * 512, 1 + i % 512,
                    (const char *)0x10000 + i * 16);
        sp_report_gather(&report);
        for (size_t i = 0; i < report.leaks; i++) {
                count += report.leak[i].count;
                bytes += report.leak[i].bytes;
                unplaced += report.leak[i].site ? 0 : report.leak[i].count;
        }
        cr_expect_eq(report.leaked_count, 3 * SP_REPORT_LEAKS);
        cr_expect_eq(count, report.leaked_count);
        cr_expect_eq(bytes, report.leaked_bytes);
        cr_expect_gt(unplaced, SP_REPORT_LEAKS);
        cr_expect_null(report.leak[0].site, "the most bytes come first");
        cr_expect_null(report.leak[1].site);
        cr_expect_neq(report.leak[0].kind, report.leak[1].kind);
}

Test(text, says_how_many_places_are_not_shown)
{
        for (uintptr_t i = 0; i < 2000; i++)
                add(SP_KIND_DEVICE, 0x100000 + i * 0x1000, 1024, (const void *)(i + 1));
        text_of(false);
        cr_expect(says(seen, "Never freed: 1.95 MiB in 2000 allocations"), "%s", seen);
        cr_expect(says(seen, "  and from 1990 more places"), "%s", seen);
}

Test(text, has_one_row_for_all_pools_of_a_device_and_class)
{
        work();
        add_pool(0, SP_CLASS_SYNC, 100, 50);
        add_pool(1, SP_CLASS_SYNC, 100, 100);
        add_pool(0, SP_CLASS_SYNC, 300, 250);
        text_of(false);
        cr_expect(says(seen, "  device 0, cuMemAlloc                0 B       6 MiB         0 B"
                             "      64 MiB      75.0 %\n"),
                  "%s", seen);
        cr_expect(says(seen, "100.0 %\n"), "%s", seen);
        cr_expect_eq(lines(strstr(seen, "What the pool held")) -
                             lines(strstr(seen, "\nDriver calls")),
                     3);
}

Test(text, says_what_time_was_saved_and_how_that_is_known)
{
        work();
        add_pool(0, SP_CLASS_SYNC, 1000, 900);
        sp_count_add(stamps_recorded, 10);
        text_of(false);
        cr_expect(says(seen, "Driver calls saved: 2000, and 10 made for that"), "%s", seen);
        cr_expect(says(seen, "Time saved: at most 58.0 ms"), "%s", seen);
        cr_expect(says(seen, "medians of an idle H200: cuMemAlloc 31.00 us, cuMemFree 27.00 us\n"),
                  "%s", seen);
        cr_expect_not(says(seen, "medians of this run"));

        sp_native_end(SP_NATIVE_ALLOC, sp_native_begin() - 500000000);
        text_of(false);
        cr_expect(says(seen, "medians of this run: cuMemAlloc 50"), "%s", seen);
        cr_expect(says(seen, "us (of 1)\n  medians of an idle H200: cuMemFree 27.00 us\n"), "%s",
                  seen);
        cr_expect(says(seen, "Time saved: at most 500."), "%s", seen);
}

Test(text, knows_what_page_locked_memory_costs)
{
        work();
        add_pool(0, SP_CLASS_HOST, 1000, 900);
        text_of(false);
        cr_expect(says(seen, "device 0, pinned"), "%s", seen);
        cr_expect(says(seen, "Driver calls saved: 2000"), "%s", seen);
        cr_expect(says(seen, "Time saved: at most 755.0 ms"), "%s", seen);
        cr_expect(says(seen, "cuMemHostAlloc 530.00 us, cuMemFreeHost 225.00 us\n"), "%s", seen);
}

Test(text, names_a_call_that_nobody_sees)
{
        work();
        text_of(false);
        cr_expect_not(says(seen, "unseen"), "%s", seen);
        sp_submit_unknown("cuNewAsync");
        text_of(false);
        cr_expect(says(seen, "give a stream work unseen, by cuNewAsync:"), "%s", seen);
}

Test(text, of_an_observed_program_claims_nothing)
{
        work();
        pools.observing = true;
        add_pool(0, SP_CLASS_SYNC, 1000, 900);
        text_of(false);
        cr_expect(says(seen, "observed: the driver served every call"), "%s", seen);
        cr_expect(says(seen, "What a pool would have held"), "%s", seen);
        cr_expect(says(seen, "Driver calls a pool would save: 2000\nTime it would save"), "%s",
                  seen);
        cr_expect_not(says(seen, "Driver calls saved"), "%s", seen);
}

static int turns[4];

static void *hold(void *unused)
{
        char byte = 0;

        (void)unused;
        sp_model_enter();
        cr_assert_eq(write(turns[1], &byte, 1), 1);
        cr_assert_eq(read(turns[2], &byte, 1), 1);
        sp_model_leave();
        return NULL;
}

Test(text, says_what_is_missing_when_a_thread_keeps_the_ledger, .timeout = 10)
{
        pthread_t thread;
        char byte = 0;

        work();
        cr_assert(pipe(&turns[0]) == 0 && pipe(&turns[2]) == 0);
        cr_assert_eq(pthread_create(&thread, NULL, hold, NULL), 0);
        cr_assert_eq(read(turns[0], &byte, 1), 1);
        text_of(false);
        cr_assert_eq(write(turns[3], &byte, 1), 1);
        pthread_join(thread, NULL);
        cr_expect(says(seen, "Another thread kept the books"), "%s", seen);
        cr_expect_not(says(seen, "Everything was freed"), "%s", seen);
}

/* findings, for the exit status */

Test(findings, are_leaks_and_wrong_frees_and_nothing_else)
{
        cr_expect_not(sp_report_has_findings());
        work();
        add(SP_KIND_IMPORTED, 0x50000, 0, NULL);
        add(SP_KIND_MAPPED, 0x60000, 1, NULL);
        cr_expect_not(sp_report_has_findings());
        add(SP_KIND_PINNED, 0x70000, 1, NULL);
        cr_expect(sp_report_has_findings());
        memset(&sp_ledger.totals, 0, sizeof(sp_ledger.totals));
        cr_expect_not(sp_report_has_findings());
        free_it(0x10000, INVALID_VALUE);
        cr_expect(sp_report_has_findings());
}

/* control */

static void start(void)
{
        cr_assert(sp_life_begin());
        sp_life_settle(true);
}

Test(control, tells_nothing_before_the_start)
{
        struct streampool_figures figures = {.size = sizeof(figures), .live = 77};

        work();
        cr_expect_not(streampool_get_figures(&figures));
        cr_expect_eq(figures.live, 77, "written by a call that failed");
        streampool_reset_peaks();
        cr_expect_not(peaks_were_reset);
}

Test(control, tells_what_the_program_and_the_pools_hold)
{
        struct streampool_figures figures = {.size = sizeof(figures)};

        start();
        work();
        add(SP_KIND_ASYNC, 0x20000, 1000, NULL);
        add(SP_KIND_PINNED, 0x30000, 50, NULL);
        free_it(0x999, INVALID_VALUE);
        add_pool(0, SP_CLASS_SYNC, 10, 9);
        add_pool(1, SP_CLASS_SYNC, 5, 4);
        cr_assert(streampool_get_figures(&figures));
        cr_expect_eq(figures.live, 1000);
        cr_expect_eq(figures.live_high, 4096);
        cr_expect_eq(figures.live_allocations, 1);
        cr_expect_eq(figures.allocations, 15);
        cr_expect_eq(figures.reused, 13);
        cr_expect_eq(figures.reserved_high, 64 << 20);
        cr_expect_eq(figures.findings, 1);
        streampool_reset_peaks();
        cr_expect(peaks_were_reset);
        cr_assert(streampool_get_figures(&figures));
        cr_expect_eq(figures.live_high, 1000);
}

Test(control, writes_no_further_than_the_caller_knows)
{
        struct streampool_figures figures = {.size = offsetof(struct streampool_figures, live),
                                             .live = 77};

        start();
        add(SP_KIND_DEVICE, 0x20000, 1000, NULL);
        cr_assert(streampool_get_figures(&figures));
        cr_expect_eq(figures.live_allocations, 1);
        cr_expect_eq(figures.live, 77);
        cr_expect_eq(figures.size, offsetof(struct streampool_figures, live));
}

Test(control, has_the_version_of_the_project)
{
        cr_expect_str_eq(streampool_version(), SP_PROJECT_VERSION);
}
