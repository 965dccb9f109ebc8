/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lost -- entries of the ledger whose memory the driver has given out again
 *
 * First of addresses that no driver has given out, then on the simulated driver, which is asked to
 * free something behind the shim's back.
 */

#include <stdlib.h>

#include "ledger_acts.h"
#include "tests/shim/begin.h"

static uint64_t lost(enum sp_kind kind)
{
        return totals().kind[kind].lost;
}

/* @older and then @newer, each of 4 KiB. */
static void expect(enum sp_kind older_kind, uint64_t older, enum sp_kind newer_kind, uint64_t newer,
                   bool is_lost)
{
        size_t before = leaks();

        add(older_kind, older, 0x1000);
        add(newer_kind, newer, 0x1000);
        sp_ledger_find_lost();
        cr_expect_eq(lost(older_kind) != 0, is_lost, "%s and %s", sp_kind_name(older_kind),
                     sp_kind_name(newer_kind));
        cr_expect_eq(leaks() - before,
                     (size_t)sp_kind_leaks(older_kind) + sp_kind_leaks(newer_kind) - is_lost);
}

Test(lost, the_older_one_is_behind)
{
        expect(SP_KIND_DEVICE, 0x1800, SP_KIND_DEVICE, 0x1000, true);
        cr_expect_eq(lost(SP_KIND_DEVICE), 1);
        cr_expect_eq(live_bytes, 0x1000);
        cr_expect(free_it(SP_SPACE_DEVICE, 0x1000, "cuMemFree", OK, NULL), "the newer one lives");
        cr_expect_eq(totals().kind[SP_KIND_DEVICE].tally.bytes, 0);
        cr_expect_eq(findings(), 0, "nobody is blamed");
}

Test(lost, the_older_one_is_in_front)
{
        expect(SP_KIND_MANAGED, 0x1000, SP_KIND_ASYNC, 0x1fff, true);
        cr_expect(free_it(SP_SPACE_DEVICE, 0x1fff, "cuMemFreeAsync", OK, NULL));
}

Test(lost, device_and_host_share_their_addresses)
{
        expect(SP_KIND_DEVICE, 0x1000, SP_KIND_PINNED, 0x1800, true);
}

Test(lost, neighbours_live)
{
        expect(SP_KIND_DEVICE, 0x1000, SP_KIND_DEVICE, 0x2000, false);
        expect(SP_KIND_PITCH, 0x4000, SP_KIND_PITCH, 0x3000, false);
}

/* An address range, a handle, memory of somebody else or of the host. */
Test(lost, what_can_have_several_names_is_not_compared)
{
        static const enum sp_kind kinds[] = {SP_KIND_ARRAY,      SP_KIND_MIPMAP, SP_KIND_VMM,
                                             SP_KIND_REGISTERED, SP_KIND_SHARED, SP_KIND_IMPORTED};

        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
                expect(kinds[i], 0x10000 * (i + 1), SP_KIND_DEVICE, 0x10000 * (i + 1) + 0x800,
                       false);
        sp_ledger_map(0x100000, 0x1000, 0);
        add(SP_KIND_DEVICE, 0x100800, 0x1000);
        sp_ledger_find_lost();
        cr_expect_eq(lost(SP_KIND_MAPPED), 0);
}

Test(lost, one_that_lies_over_many_outlives_them)
{
        for (uint64_t i = 0; i < 100; i++)
                add(SP_KIND_DEVICE, 0x10000 + (i * 37 % 100) * 0x1000, 0x1000);
        add(SP_KIND_DEVICE, 0x10800, 98 * 0x1000);
        for (uint64_t i = 0; i < 3; i++)
                add(SP_KIND_DEVICE, 0x20000 + i * 0x1000, 0x800);
        sp_ledger_find_lost();
        cr_expect_eq(lost(SP_KIND_DEVICE), 100, "%llu, the large one among them",
                     (unsigned long long)lost(SP_KIND_DEVICE));
        cr_expect_eq(leaks(), 4, "the last one of the hundred and the three");
}

Test(lost, more_than_the_history_holds_are_all_seen)
{
        for (uint64_t i = 0; i < 2 * SP_LEDGER_HISTORY; i++)
                add(SP_KIND_DEVICE, 0x1000000 + i * 0x1000, 0x1000);
        add(SP_KIND_DEVICE, 0x1000000 - 1, 2 * (size_t)SP_LEDGER_HISTORY * 0x1000);
        sp_ledger_find_lost();
        cr_expect_eq(lost(SP_KIND_DEVICE), 2 * SP_LEDGER_HISTORY);
        cr_expect_eq(leaks(), 1);
        cr_expect_eq(sp_ledger.history, SP_LEDGER_HISTORY);
}

/* The driver refuses it: it was freed before, by nobody knows whom. */
Test(lost, who_frees_one_is_told)
{
        expect(SP_KIND_DEVICE, 0x1800, SP_KIND_DEVICE, 0x1000, true);
        cr_expect_not(free_it(SP_SPACE_DEVICE, 0x1800, "cuMemFree", INVALID_VALUE, &place[1]));
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].kind, SP_FINDING_DOUBLE_FREE);
        cr_expect_str_eq(found[0].freed_by, "a call that was not seen");
        cr_expect_null(found[0].freed_at);
        cr_expect(found[0].has_reuse, "and who has the memory now");
}

/* Two neighbours. What came before them lies in gaps too short for both, which ThreadSanitizer can
 * leave in the simulated driver's arena; it stays there, or the second of them would follow it. */
static void take_neighbours(CUdeviceptr halves[2], size_t bytes)
{
        cr_assert_eq(sp_on_cuMemAlloc_v2(&halves[1], bytes), CUDA_SUCCESS);
        do {
                halves[0] = halves[1];
                cr_assert_eq(sp_on_cuMemAlloc_v2(&halves[1], bytes), CUDA_SUCCESS);
        } while (halves[1] != halves[0] + bytes);
}

Test(lost, behind_the_back_of_the_shim)
{
        CUdeviceptr halves[2], whole;
        size_t others, other_bytes;

        setenv("STREAMPOOL_MODE", "observe", 1);
        begin_on(0);
        take_neighbours(halves, 4 << 20);
        others = leaks() - 2;
        other_bytes = live_bytes - (8 << 20);
        for (size_t i = 0; i < 2; i++)
                cr_assert_eq(cuMemFree_v2(halves[i]), CUDA_SUCCESS);
        cr_assert_eq(sp_on_cuMemAlloc_v2(&whole, 8 << 20), CUDA_SUCCESS);
        sp_ledger_find_lost();
        cr_expect_eq(lost(SP_KIND_DEVICE), 2, "%llx and %llx in %llx", halves[0], halves[1], whole);
        cr_expect_eq(leaks() - others, 1);
        cr_expect_eq(live_bytes - other_bytes, 8 << 20);
}
