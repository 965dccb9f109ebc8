/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Make report -- write the report of a process that did a little of everything
 *
 *   make_report rich|clean|empty
 *
 * Goes where STREAMPOOL_REPORT says. For check_report.py, and to look at.
 */

#include <string.h>

#include "base/config.h"
#include "base/life.h"
#include "report/counters.h"
#include "report/figures.h"
#include "report/report.h"
#include "report/shortage.h"
#include "track/fault.h"
#include "track/ledger.h"

enum { INVALID_VALUE = 1 };

static bool is_rich;
static bool is_empty;

static const void *here(size_t n)
{
        return (const char *)&sp_report_write + n;
}

static void add(enum sp_kind kind, uint64_t address, size_t bytes, const void *site)
{
        struct sp_ledger_entry entry = {
                .address = address,
                .bytes = bytes,
                .kind = kind,
                .pooled = kind == SP_KIND_DEVICE,
                .context = 3,
                .site = site,
        };

        sp_ledger_add(&entry);
}

static void free_it(enum sp_space space, uint64_t address, const char *function, int result)
{
        struct sp_ledger_entry entry;
        bool known = sp_ledger_take(space, address, &entry);

        sp_ledger_free_ended(known ? &entry : NULL, space, address, function, result);
}

static void make_fail(void)
{
        struct sp_fault_call call = {SP_KIND_PITCH, 4096, "app"};
        struct sp_fault fault;

        sp_fault_start("nth=2,error=999;kind=array;p=1,seed=9,site=\"app\"");
        for (unsigned int i = 0; i < 3; i++)
                (void)sp_fault_strikes(&sp_faults, &call, &fault);
}

/* The later ones of memory that nothing is known of. */
static void plant_uses(void)
{
        struct sp_finding finding = {
                .kind = SP_FINDING_OUT_OF_BOUNDS,
                .address = 0x7c0000000010,
                .function = "cuMemcpyHtoD",
                .site = here(150),
                .times = 1,
                .has_block = true,
                .block = {.address = 0x7c0000000000, .bytes = 4096, .kind = SP_KIND_MANAGED},
                .touched = 4096,
                .outside = 4096,
                .beyond = 16,
                .is_write = true,
        };

        sp_ledger_add_finding(&finding);
        finding.kind = SP_FINDING_USE_AFTER_FREE;
        finding.has_block = false;
        sp_ledger_add_finding(&finding);
        finding.kind = SP_FINDING_OVERLAP;
        finding.source = 0x7c0000000000;
        finding.shared = finding.address;
        sp_ledger_add_finding(&finding);
}

/* Of C++ and of C, in a kernel with a name and in one without. */
static void plant_arguments(void)
{
        struct sp_finding finding = {
                .kind = SP_FINDING_ARGUMENT_AFTER_FREE,
                .address = 0x7f0000000010,
                .function = "cuLaunchKernel",
                .site = here(160),
                .times = 1,
                .has_block = true,
                .block = {.address = 0x7f0000000000, .bytes = 1 << 20, .kind = SP_KIND_DEVICE},
                .freed_by = "cuMemFree",
                .freed_at = here(8),
                .argument = 2,
                .kernel = "_Z4fillIfEvPT_m",
        };

        sp_ledger_add_finding(&finding);
        finding.kernel = NULL;
        sp_ledger_add_finding(&finding);
}

/* The later one of the first is of the host, and an argument is the earlier one of the second. */
static void plant_order(void)
{
        struct sp_finding finding = {
                .kind = SP_FINDING_SYNC_FREE,
                .address = 0x7f1000000000,
                .function = "cuMemFree",
                .site = here(160),
                .times = 1,
                .has_block = true,
                .block = {.address = 0x7f1000000000, .bytes = 4096, .kind = SP_KIND_ASYNC},
                .earlier = SP_EARLIER_READ,
                .earlier_stream = 0x55d000001000,
                .earlier_by = "cuMemcpyDtoHAsync",
                .earlier_at = here(161),
        };

        sp_ledger_add_finding(&finding);
        finding.kind = SP_FINDING_FREE_BEFORE_USE;
        finding.stream = 1;
        finding.earlier = SP_EARLIER_ARGUMENT;
        sp_ledger_add_finding(&finding);
        finding.kind = SP_FINDING_RACE;
        finding.earlier = SP_EARLIER_WRITE;
        finding.touched = 128;
        sp_ledger_add_finding(&finding);
}

static void plant(void)
{
        struct sp_shortage shortage = {
                .kind = SP_KIND_ARRAY,
                .bytes = 1 << 30,
                .device = 0,
                .site = here(100),
                .limit = UINT64_MAX,
        };

        for (uint64_t i = 0; i < 20; i++)
                add(SP_KIND_DEVICE, 0x7f0000100000 + (i << 21), (i + 1) << 16, here(16));
        for (uint64_t i = 0; i < 12; i++)
                add(SP_KIND_ASYNC, 0x7f1000000000 + (i << 22), 3 << 20, here(32 + i));
        add(SP_KIND_PINNED, 0x7e0000000000, 1 << 24, here(64));
        add(SP_KIND_IMPORTED, 0x7d0000000000, 0, here(65));
        add(SP_KIND_MANAGED, 0x7c0000000000, 4096, NULL);
        if (sp_shortage_is_due())
                sp_shortage_tell(&shortage);
        /* Its second life; the first one ended before. */
        sp_caller = here(127);
        add(SP_KIND_DEVICE, 0x7f0000000000, 1 << 19, here(126));
        free_it(SP_SPACE_DEVICE, 0x7f0000000000, "cuMemFreeAsync", 0);
        sp_caller = here(128);
        free_it(SP_SPACE_DEVICE, 0x7f0000000000, "cuMemFree", INVALID_VALUE);
        free_it(SP_SPACE_DEVICE, 0x7f0000000000, "cuMemFree", INVALID_VALUE);
        sp_ledger_overrun(&(struct sp_ledger_entry){.address = 0x7f0000400000,
                                                    .bytes = 4000,
                                                    .kind = SP_KIND_DEVICE,
                                                    .device = 0,
                                                    .site = here(16)},
                          "cuMemFree", here(20), 4000, 8);
        sp_caller = here(129);
        free_it(SP_SPACE_DEVICE, 0x7f0000100100, "cuMemFree", INVALID_VALUE);
        free_it(SP_SPACE_DEVICE, 0x7e0000000000, "cuMemFree", INVALID_VALUE);
        for (uint64_t i = 0; i < 9; i++) {
                sp_caller = here(140 + i);
                free_it(SP_SPACE_DEVICE, 0x1234, "cuMemFreeAsync", INVALID_VALUE);
        }
        plant_uses();
        plant_arguments();
        plant_order();
        sp_ledger_context_gone(4);
        make_fail();
}

bool sp_route_survey(const struct sp_pool_figures *figures, struct spm_survey *survey)
{
        *survey = (struct spm_survey){.free_pieces = 1, .average_free = 32 << 20};
        spm_sizes_add(&survey->live, 4096);
        return figures->class == SP_CLASS_SYNC;
}

uint64_t sp_route_stream_handle(uint64_t number)
{
        return number;
}

/* Of the second pool two lists were asked: one has a cap, and was full; the other has no page. */
static void lay_out(struct sp_figures *figures)
{
        figures->layouts = 2;
        figures->layout[0] = (struct sp_layout_figures){SP_LAYOUT_ALL, SP_LAYOUT_OF_ENVIRONMENT,
                                                        "sliced:page=32M,cap=64M;direct"};
        figures->layout[1] = (struct sp_layout_figures){1, SP_LAYOUT_OF_PROGRAM, ""};
        figures->shelf[0] = (struct sp_shelf_figures){
                .pool = 1,
                .stats = {.kind = SPM_SHELF_SLICED,
                          .live_blocks = 3,
                          .requested = 16 << 20,
                          .padding = 300,
                          .reserved = 64 << 20,
                          .page = 32 << 20,
                          .pages = 2,
                          .pages_most = 2,
                          .pages_peak = 2,
                          .largest_alloc = 9 << 20,
                          .spills = 1000},
        };
        figures->shelf[1] = (struct sp_shelf_figures){
                .pool = 1,
                .index = 1,
                .stats = {.kind = SPM_SHELF_DIRECT,
                          .pages_most = UINT64_MAX,
                          .pages_peak = 4,
                          .pages_unmapped = 4,
                          .largest_alloc = 7 << 20},
        };
        figures->shelves = 2;
}

void sp_route_figures(struct sp_figures *figures)
{
        figures->driver_path = "/usr/lib/libcuda.so.1";
        figures->driver_version = 13000;
        if (is_empty)
                return;
        figures->backing = "mapped chunks";
        figures->pools = is_rich ? 3 : 1;
        for (unsigned int i = 0; i < figures->pools; i++)
                figures->pool[i] = (struct sp_pool_figures){
                        .device = i == 2,
                        .class = i == 1 ? SP_CLASS_ASYNC : SP_CLASS_SYNC,
                        .requested_high = 30 << 20,
                        .reserved = 32 << 20,
                        .reserved_high = 64 << 20,
                        .ready = 32 << 20,
                        .largest_ready = 32 << 20,
                        .allocs = 2400,
                        .frees = 2400,
                        .hits = 2310,
                        .grows = 2,
                        .releases = 1,
                        .moves = 1,
                };
        if (is_rich)
                lay_out(figures);
}

int main(int count, char **arguments)
{
        is_rich = count == 2 && strcmp(arguments[1], "rich") == 0;
        is_empty = count == 2 && strcmp(arguments[1], "empty") == 0;
        sp_config_load();
        if (!sp_life_begin())
                return 2;
        sp_life_settle(true);
        sp_caller = here(8);
        if (!is_empty) {
                add(SP_KIND_DEVICE, 0x7f0000000000, 1 << 20, here(0));
                free_it(SP_SPACE_DEVICE, 0x7f0000000000, "cuMemFree", 0);
                sp_count_add(stamps_recorded, 37);
                sp_count_add(reliefs, 5);
        }
        if (is_rich)
                plant();
        sp_report_write();
        return sp_report_has_findings() ? 1 : 0;
}
