/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Physical memory -- alive while it has a handle or a mapping
 *
 * Links the files of track/ledger_inner.h with base/.
 */

#include "ledger_acts.h"

Test(physical, lives_until_its_last_handle_and_its_last_mapping_are_gone)
{
        add(SP_KIND_VMM, 5, 1 << 20);
        sp_ledger_map(0x100000, 1 << 19, 5);
        sp_ledger_map(0x180000, 1 << 19, 5);
        free_it(SP_SPACE_HANDLE, 5, "cuMemRelease", OK, NULL);
        cr_expect_eq(leaks(), 1);
        cr_expect_eq(live_bytes, 1 << 20);
        sp_ledger_unmap(0x100000, 1 << 19);
        cr_expect_eq(leaks(), 1);
        sp_ledger_unmap(0x180000, 1 << 19);
        cr_expect_eq(leaks(), 0);
        cr_expect_eq(totals().kind[SP_KIND_VMM].tally.bytes, 0);
        cr_expect_eq(totals().kind[SP_KIND_VMM].tally.bytes_high, 1 << 20);
        cr_expect_eq(totals().device[0].bytes, 0);
}

Test(physical, a_handle_outlives_its_mappings)
{
        add(SP_KIND_VMM, 5, 4096);
        sp_ledger_map(0x100000, 4096, 5);
        sp_ledger_unmap(0x100000, 4096);
        cr_expect_eq(leaks(), 1);
        free_it(SP_SPACE_HANDLE, 5, "cuMemRelease", OK, NULL);
        cr_expect_eq(leaks(), 0);
}

Test(physical, one_unmap_ends_the_mappings_side_by_side)
{
        add(SP_KIND_VMM, 5, 4096);
        add(SP_KIND_VMM, 6, 4096);
        sp_ledger_map(0x100000, 4096, 5);
        sp_ledger_map(0x101000, 4096, 6);
        sp_ledger_map(0x102000, 4096, 6);
        sp_ledger_unmap(0x100000, 8192);
        cr_expect_eq(totals().kind[SP_KIND_MAPPED].tally.count, 1);
        free_it(SP_SPACE_HANDLE, 5, "cuMemRelease", OK, NULL);
        free_it(SP_SPACE_HANDLE, 6, "cuMemRelease", OK, NULL);
        cr_expect_eq(leaks(), 1, "6 is mapped still");
}

Test(physical, one_unmap_ends_the_mappings_on_both_sides_of_a_hole)
{
        add(SP_KIND_VMM, 5, 4096);
        sp_ledger_map(0x101000, 4096, 5);
        sp_ledger_map(0x103000, 4096, 5);
        sp_ledger_map(0x104000, 4096, 5);
        sp_ledger_unmap(0x100000, 0x4000);
        cr_expect_eq(totals().kind[SP_KIND_MAPPED].tally.count, 1);
        free_it(SP_SPACE_HANDLE, 5, "cuMemRelease", OK, NULL);
        cr_expect_eq(leaks(), 1);
        sp_ledger_unmap(0x104000, 4096);
        cr_expect_eq(leaks(), 0);
}

Test(physical, a_retained_handle_is_released_once_more)
{
        add(SP_KIND_VMM, 5, 4096);
        sp_ledger_retain(5, 0);
        free_it(SP_SPACE_HANDLE, 5, "cuMemRelease", OK, NULL);
        cr_expect_eq(leaks(), 1);
        free_it(SP_SPACE_HANDLE, 5, "cuMemRelease", OK, NULL);
        cr_expect_eq(leaks(), 0);
        cr_expect_eq(findings(), 0);
}

Test(physical, a_mapping_gives_a_handle_again)
{
        add(SP_KIND_VMM, 5, 4096);
        sp_ledger_map(0x100000, 4096, 5);
        free_it(SP_SPACE_HANDLE, 5, "cuMemRelease", OK, NULL);
        sp_ledger_retain(5, 0x100800);
        sp_ledger_unmap(0x100000, 4096);
        cr_expect_eq(leaks(), 1, "the handle is back");
        free_it(SP_SPACE_HANDLE, 5, "cuMemRelease", OK, NULL);
        cr_expect_eq(leaks(), 0);
}

Test(physical, a_second_release_is_a_double_free)
{
        add(SP_KIND_VMM, 5, 4096);
        sp_ledger_map(0x100000, 4096, 5);
        free_it(SP_SPACE_HANDLE, 5, "cuMemRelease", OK, &place[1]);
        free_it(SP_SPACE_HANDLE, 5, "cuMemRelease", INVALID_VALUE, &place[2]);
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].kind, SP_FINDING_DOUBLE_FREE);
        cr_expect_eq(found[0].freed_at, &place[1]);
}

Test(physical, a_handle_number_used_again_leaves_mapped_memory_alone)
{
        add(SP_KIND_VMM, 5, 4096);
        sp_ledger_map(0x100000, 4096, 5);
        free_it(SP_SPACE_HANDLE, 5, "cuMemRelease", OK, NULL);
        add(SP_KIND_VMM, 5, 8192);
        leaks();
        cr_expect_eq(live_bytes, 4096 + 8192);
        free_it(SP_SPACE_HANDLE, 5, "cuMemRelease", OK, NULL);
        leaks();
        cr_expect_eq(live_bytes, 4096);
        sp_ledger_unmap(0x100000, 4096);
        cr_expect_eq(leaks(), 0);
}

Test(physical, a_handle_number_used_again_before_its_release_is_over_does_too)
{
        struct sp_ledger_entry old;

        add(SP_KIND_VMM, 5, 4096);
        sp_ledger_map(0x100000, 4096, 5);
        cr_assert(sp_ledger_take(SP_SPACE_HANDLE, 5, &old));
        add(SP_KIND_VMM, 5, 8192);
        sp_ledger_freed(&old, "cuMemRelease");
        leaks();
        cr_expect_eq(live_bytes, 4096 + 8192);
        sp_ledger_unmap(0x100000, 4096);
        leaks();
        cr_expect_eq(live_bytes, 8192);
        free_it(SP_SPACE_HANDLE, 5, "cuMemRelease", OK, NULL);
        cr_expect_eq(leaks(), 0);
}
