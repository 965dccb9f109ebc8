/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Report, found -- what a person reads of memory that was used, or freed, where it must not be
 *
 * Links the report with the ledger and base/, and has no pools.
 */

#define _GNU_SOURCE

#include "report/report.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "report/inner.h"
#include "track/ledger_inner.h"
#include "track/state.h"
#include "track/submit.h"

enum { INVALID_VALUE = 1 };

static char seen[1 << 16];

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

static void read_report(void)
{
        static struct sp_report report;
        struct sp_text text;

        memset(&report, 0, sizeof(report));
        sp_report_gather(&report);
        sp_text_init(&text, seen, sizeof(seen));
        sp_report_text(&report, false, &text);
        cr_assert_not(text.cut);
}

static bool says(const char *text, const char *words)
{
        return strstr(text, words) != NULL;
}

Test(found, tells_what_a_copy_touched)
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

        sp_ledger_add_finding(&finding);
        finding.kind = SP_FINDING_USE_AFTER_FREE;
        finding.has_block = false;
        finding.touched = 1;
        finding.is_write = true;
        sp_ledger_add_finding(&finding);
        read_report();
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

Test(found, tells_where_a_copy_reads_what_it_writes)
{
        struct sp_finding finding = {
                .kind = SP_FINDING_OVERLAP,
                .address = 0x20010,
                .function = "cuMemcpyDtoD",
                .times = 1,
                .touched = 4000,
                .is_write = true,
                .source = 0x20000,
                .shared = 0x20012,
        };

        sp_ledger_add_finding(&finding);
        read_report();
        cr_expect(says(seen, "\nCopied over itself: 1 time\n"), "%s", seen);
        cr_expect(says(seen, "\n  cuMemcpyDtoD(0x20010): writes 4000 bytes "), "%s", seen);
        cr_expect(says(seen, "    read from 0x20000 on, and 0x20012 is in both\n"), "%s", seen);
        cr_expect_not(says(seen, "in no block"), "%s", seen);
}

Test(found, tells_who_else_has_had_an_address)
{
        struct sp_finding finding = {
                .kind = SP_FINDING_DOUBLE_FREE,
                .address = 0x20000,
                .result = INVALID_VALUE,
                .function = "cuMemFree",
                .times = 1,
                .has_block = true,
                .block = {.address = 0x20000, .bytes = 4096, .kind = SP_KIND_DEVICE},
                .freed_by = "cuMemFreeAsync",
                .has_reuse = true,
                .reuse = {.address = 0x10000, .bytes = 1 << 20, .kind = SP_KIND_MANAGED},
        };

        sp_ledger_add_finding(&finding);
        finding.site = &finding;
        finding.reuse.address = 0x20000;
        finding.reuse.freed_by = "cuMemFree";
        sp_ledger_add_finding(&finding);
        read_report();
        cr_expect(says(seen, "    freed before by cuMemFreeAsync "), "%s", seen);
        cr_expect(says(seen, "    already reused: 65536 bytes into 1 MiB of managed memory, "
                             "allocated "),
                  "%s", seen);
        cr_expect(says(seen, "    in the place of 1 MiB of managed memory, allocated "));
        cr_expect(says(seen, "    and freed by cuMemFree "), "%s", seen);
}

/* Last of all: it may be none. */
Test(found, tells_what_a_kernel_was_given)
{
        struct sp_finding finding = {
                .kind = SP_FINDING_ARGUMENT_AFTER_FREE,
                .address = 0x20010,
                .function = "cuLaunchKernel",
                .times = 1,
                .has_block = true,
                .block = {.address = 0x20000, .bytes = 4096, .kind = SP_KIND_DEVICE},
                .freed_by = "cuMemFree",
                .argument = 3,
                .kernel = "_Z4fillPfm",
        };

        sp_ledger_add_finding(&finding);
        finding.kernel = NULL;
        sp_ledger_add_finding(&finding);
        sp_ledger_free_ended(NULL, SP_SPACE_DEVICE, 0x999, "cuMemFree", INVALID_VALUE);
        read_report();
        cr_expect(says(seen, "\n  cuLaunchKernel(0x20010): argument 3 of kernel "
                             "_Z4fillPfm, not proven access "),
                  "%s", seen);
        cr_expect(says(seen, ": argument 3 of a kernel, not proven access "), "%s", seen);
        cr_expect_lt(strstr(seen, "Freed, but never allocated: 1 time\n"),
                     strstr(seen, "Given to a kernel after it was freed: 2 times\n"));
}

Test(found, tells_what_is_not_behind_what)
{
        struct sp_finding finding = {.kind = SP_FINDING_RACE,
                                     .function = "cuMemcpyDtoHAsync",
                                     .times = 1,
                                     .has_block = true,
                                     .touched = 64,
                                     .stream = 0x5500,
                                     .earlier = SP_EARLIER_WRITE,
                                     .earlier_by = "cuMemsetD8",
                                     .earlier_stream = (uintptr_t)CU_STREAM_LEGACY};

        sp_ledger_add_finding(&finding);
        finding.kind = SP_FINDING_SYNC_FREE;
        finding.stream = 0;
        finding.earlier = SP_EARLIER_ARGUMENT;
        sp_ledger_add_finding(&finding);
        read_report();
        cr_expect(says(seen, "(0x0): reads 64 bytes, on stream 0x5500 "), "%s", seen);
        cr_expect(says(seen, "    not behind cuMemsetD8, which writes, on the legacy stream "));
        cr_expect(says(seen, "(0x0): at once "), "%s", seen);
        cr_expect(says(seen, "is given it as an argument, on the legacy stream (if the argument"));
}

/* In whose memory the driver has served a later one: it was freed where nobody saw it. */
Test(found, what_is_lost_has_not_leaked)
{
        struct sp_ledger_entry entry = {.address = 0x20800, .bytes = 4096, .kind = SP_KIND_DEVICE};

        sp_ledger_add(&entry);
        entry.address = 0x20000;
        sp_ledger_add(&entry);
        read_report();
        cr_expect(says(seen, "Never freed: 4 KiB in 1 allocation\n"), "%s", seen);
        cr_expect(says(seen, "\n    1 freed in a way that was not seen\n"), "%s", seen);
}
