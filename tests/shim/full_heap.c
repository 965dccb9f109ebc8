/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Full heap -- the ledger when the host has no memory left
 *
 * Links the files of track/ledger_inner.h with base/. The linker hands
 * calloc() and malloc() to wrappers here, which can fail.
 */

#include <stdlib.h>
#include <string.h>

#include "ledger_acts.h"

static unsigned int allocations_left = -1U;
static unsigned int refused;

void *__real_calloc(size_t count, size_t size);
void *__real_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_malloc(size_t size);

static bool may_allocate(void)
{
        if (allocations_left == -1U)
                return true;
        if (allocations_left == 0) {
                refused++;
                return false;
        }
        allocations_left--;
        return true;
}

void *__wrap_calloc(size_t count, size_t size)
{
        return may_allocate() ? __real_calloc(count, size) : NULL;
}

void *__wrap_malloc(size_t size)
{
        return may_allocate() ? __real_malloc(size) : NULL;
}

/* Everything the ledger does, with the n-th allocation and all after it failing. */
static void go_through_everything(void)
{
        for (uint64_t i = 1; i <= 700; i++)
                add(SP_KIND_DEVICE, i * 512, 10);
        add(SP_KIND_VMM, 5, 4096);
        sp_ledger_map(0x100000, 4096, 5);
        free_it(SP_SPACE_HANDLE, 5, "cuMemRelease", OK, NULL);
        sp_ledger_retain(5, 0x100000);
        free_it(SP_SPACE_HANDLE, 5, "cuMemRelease", OK, NULL);
        sp_ledger_unmap(0x100000, 4096);
        for (uint64_t i = 1; i <= 700; i++) {
                free_it(SP_SPACE_DEVICE, i * 512, "cuMemFree", OK, NULL);
                free_it(SP_SPACE_DEVICE, i * 512, "cuMemFree", INVALID_VALUE, NULL);
        }
}

Test(full_heap, costs_entries_and_nothing_else)
{
        static struct sp_ledger_node *volatile before[200][2]; /* a leak checker follows these */

        refused = 1;
        for (unsigned int n = 0; refused; n++) {
                cr_assert_lt(n, 200);
                before[n][0] = sp_ledger.nodes;
                before[n][1] = sp_ledger.spare;
                cr_assert(n || !before[n][0]);
                memset(&sp_ledger.totals, 0, sizeof(sp_ledger.totals));
                sp_ledger.spare = NULL;
                sp_ledger.nodes = NULL;
                sp_ledger.oldest = NULL;
                sp_ledger.newest = NULL;
                sp_ledger.history = 0;
                allocations_left = n;
                refused = 0;
                go_through_everything();
                allocations_left = -1U;
                cr_expect_eq(totals().unwritten > 0, refused > 0, "allocation %u", n);
                cr_expect_eq(totals().kind[SP_KIND_DEVICE].tally.count, 0, "allocation %u", n);
                cr_expect_eq(totals().kind[SP_KIND_VMM].tally.count, 0, "allocation %u", n);
                cr_expect_eq(totals().device[0].bytes, 0, "allocation %u", n);
        }
}

/* Numbers that fall into one bucket make the table want to grow, and refuse what is added, or
 * moved, when it cannot. */
Test(full_heap, may_lose_mapped_memory_but_not_what_is_mapped_there)
{
        const uint64_t count = 40;

        for (uint64_t i = 1; i <= count; i++) {
                struct sp_ledger_entry entry = {
                        .address = i,
                        .bytes = 4096,
                        .kind = SP_KIND_VMM,
                        .sequence = i << 40,
                };

                sp_ledger_add(&entry);
                sp_ledger_map(i << 20, 4096, i);
        }
        allocations_left = 0;
        for (uint64_t i = 1; i <= count; i++)
                free_it(SP_SPACE_HANDLE, i, "cuMemRelease", OK, NULL);
        cr_expect_gt(refused, 0, "nothing was tried");
        cr_expect_lt(totals().kind[SP_KIND_VMM].tally.count, count, "no node was lost");
        allocations_left = -1U;
        /* The nodes that were lost serve others now, and nobody may mistake them. */
        for (uint64_t i = 1; i <= count; i++)
                add(SP_KIND_VMM, i, 4096);
        for (uint64_t i = 1; i <= count; i++)
                sp_ledger_unmap(i << 20, 4096);
        for (uint64_t i = 1; i <= count; i++)
                free_it(SP_SPACE_HANDLE, i, "cuMemRelease", OK, NULL);
        cr_expect_eq(totals().kind[SP_KIND_VMM].tally.count, 0);
        cr_expect_eq(totals().kind[SP_KIND_VMM].tally.bytes, 0);
        cr_expect_eq(totals().kind[SP_KIND_MAPPED].tally.count, 0);
}
