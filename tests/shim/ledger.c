/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Ledger -- what is held, what was freed, and what a refused free was
 *
 * Links the files of track/ledger_inner.h with base/.
 */

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/lock.h"
#include "ledger_acts.h"
#include "track/state.h"

/* entries */

Test(ledger, what_is_added_is_found_until_it_is_freed)
{
        struct sp_ledger_entry entry;

        add(SP_KIND_DEVICE, 0x1000, 100);
        cr_expect(sp_ledger_find(SP_SPACE_DEVICE, 0x1000, &entry));
        cr_expect_eq(entry.bytes, 100);
        cr_expect_eq(entry.site, &place[0]);
        cr_expect_eq(entry.sequence, 1);
        cr_expect_not(sp_ledger_find(SP_SPACE_HOST, 0x1000, &entry), "another space");
        cr_expect(free_it(SP_SPACE_DEVICE, 0x1000, "cuMemFree", OK, NULL));
        cr_expect_not(sp_ledger_find(SP_SPACE_DEVICE, 0x1000, &entry));
        cr_expect_eq(leaks(), 0);
        cr_expect_eq(findings(), 0);
}

Test(ledger, a_place_that_is_not_given_is_the_callers)
{
        struct sp_ledger_entry entry = {.address = 1, .kind = SP_KIND_PINNED, .device = -1};

        sp_caller = &place[3];
        sp_ledger_add(&entry);
        cr_assert(sp_ledger_find(SP_SPACE_HOST, 1, &entry));
        cr_expect_eq(entry.site, &place[3]);
}

Test(ledger, a_failed_free_puts_the_entry_back)
{
        add(SP_KIND_DEVICE, 0x1000, 100);
        cr_expect(free_it(SP_SPACE_DEVICE, 0x1000, "cuMemFree", ILLEGAL_ADDRESS, NULL));
        cr_expect_eq(leaks(), 1);
        cr_expect_eq(findings(), 0, "a context in error is no misuse");
        cr_expect_eq(totals().kind[SP_KIND_DEVICE].tally.bytes, 100);
        cr_expect_eq(totals().kind[SP_KIND_DEVICE].tally.freed, 0);
}

Test(ledger, a_free_after_the_drivers_end_is_a_free)
{
        add(SP_KIND_DEVICE, 0x1000, 100);
        free_it(SP_SPACE_DEVICE, 0x1000, "cuMemFree", DEINITIALIZED, NULL);
        cr_expect_eq(leaks(), 0);
}

Test(ledger, an_address_given_out_while_its_free_is_under_way_is_a_new_entry)
{
        struct sp_ledger_entry old;
        struct sp_ledger_entry entry;

        add(SP_KIND_DEVICE, 0x1000, 100);
        cr_assert(sp_ledger_take(SP_SPACE_DEVICE, 0x1000, &old));
        add(SP_KIND_DEVICE, 0x1000, 200);
        sp_ledger_freed(&old, "cuMemFree");
        cr_assert(sp_ledger_find(SP_SPACE_DEVICE, 0x1000, &entry));
        cr_expect_eq(entry.bytes, 200);
        cr_expect_eq(totals().kind[SP_KIND_DEVICE].tally.bytes, 200);
        cr_expect_eq(totals().kind[SP_KIND_DEVICE].lost, 0);
        sp_ledger_put_back(&old);
        cr_expect_eq(totals().kind[SP_KIND_DEVICE].tally.count, 1,
                     "the old one must not come back");
        cr_assert(sp_ledger_take(SP_SPACE_DEVICE, 0x1000, &entry));
        sp_ledger_freed(&old, "cuMemFree");
        sp_ledger_put_back(&entry);
        cr_expect_eq(leaks(), 1, "the new one's free has failed");
        free_it(SP_SPACE_DEVICE, 0x1000, "cuMemFree", OK, NULL);
        cr_expect_eq(leaks(), 0);
}

Test(ledger, a_stale_entry_at_a_new_address_is_lost)
{
        add(SP_KIND_DEVICE, 0x1000, 100);
        add(SP_KIND_ASYNC, 0x1000, 300);
        cr_expect_eq(totals().kind[SP_KIND_DEVICE].lost, 1);
        cr_expect_eq(totals().kind[SP_KIND_DEVICE].tally.bytes, 0);
        cr_expect_eq(totals().kind[SP_KIND_ASYNC].tally.bytes, 300);
        cr_expect_eq(leaks(), 1);
        cr_expect_eq(findings(), 0);
}

Test(ledger, figures_follow_and_peaks_stay)
{
        struct sp_ledger_totals now;

        add(SP_KIND_DEVICE, 0x1000, 100);
        add(SP_KIND_DEVICE, 0x2000, 50);
        add(SP_KIND_PINNED, 0x3000, 1000);
        free_it(SP_SPACE_DEVICE, 0x1000, "cuMemFree", OK, NULL);
        now = totals();
        cr_expect_eq(now.kind[SP_KIND_DEVICE].tally.count, 1);
        cr_expect_eq(now.kind[SP_KIND_DEVICE].tally.count_high, 2);
        cr_expect_eq(now.kind[SP_KIND_DEVICE].tally.bytes, 50);
        cr_expect_eq(now.kind[SP_KIND_DEVICE].tally.bytes_high, 150);
        cr_expect_eq(now.kind[SP_KIND_DEVICE].tally.made, 2);
        cr_expect_eq(now.kind[SP_KIND_DEVICE].tally.made_bytes, 150);
        cr_expect_eq(now.kind[SP_KIND_DEVICE].tally.freed, 1);
        cr_expect_eq(now.device[0].bytes, 50, "pinned memory is not the device's");
        cr_expect_eq(now.device[0].bytes_high, 150);
        sp_ledger_reset_peaks();
        now = totals();
        cr_expect_eq(now.kind[SP_KIND_DEVICE].tally.count_high, 1);
        cr_expect_eq(now.kind[SP_KIND_DEVICE].tally.bytes_high, 50);
        cr_expect_eq(now.device[0].bytes_high, 50);
}

Test(ledger, memory_opened_twice_is_closed_twice)
{
        add(SP_KIND_IMPORTED, 0x1000, 64);
        add(SP_KIND_IMPORTED, 0x1000, 64);
        cr_expect(free_it(SP_SPACE_DEVICE, 0x1000, "cuIpcCloseMemHandle", OK, NULL));
        cr_expect_eq(totals().kind[SP_KIND_IMPORTED].tally.count, 1);
        cr_expect(free_it(SP_SPACE_DEVICE, 0x1000, "cuIpcCloseMemHandle", OK, NULL));
        cr_expect_eq(totals().kind[SP_KIND_IMPORTED].tally.count, 0);
        cr_expect_not(free_it(SP_SPACE_DEVICE, 0x1000, "cuIpcCloseMemHandle", INVALID_VALUE, NULL));
        cr_expect_eq(totals().findings[SP_FINDING_DOUBLE_FREE], 1);
}

/* contexts */

Test(context, takes_what_dies_with_it_and_nothing_else)
{
        for (enum sp_kind kind = 0; kind < SP_KIND_COUNT; kind++)
                add(kind, 0x1000 * (kind + 1), 10);
        sp_ledger_context_gone(8);
        cr_expect_eq(leaks(), 9, "another context");
        sp_ledger_context_gone(7);
        cr_expect_eq(leaks(), 2);
        cr_expect_eq(totals().kind[SP_KIND_ASYNC].tally.count, 1);
        cr_expect_eq(totals().kind[SP_KIND_VMM].tally.count, 1);
        cr_expect_eq(totals().kind[SP_KIND_PINNED].released, 1);
}

Test(context, a_free_after_its_end_is_named_so)
{
        add(SP_KIND_DEVICE, 0x1000, 10);
        sp_ledger_context_gone(7);
        free_it(SP_SPACE_DEVICE, 0x1000, "cuMemFree", INVALID_VALUE, &place[1]);
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].kind, SP_FINDING_AFTER_CONTEXT);
}

Test(context, that_ends_with_the_process_takes_nothing)
{
        add(SP_KIND_DEVICE, 0x1000, 10);
        cr_assert(sp_life_begin());
        sp_life_settle(true);
        sp_life_leaving();
        sp_ledger_context_gone(7);
        cr_expect_eq(leaks(), 1);
}

Test(context, with_more_entries_than_the_history_holds_ends_whole)
{
        for (uint64_t i = 1; i <= 3 * SP_LEDGER_HISTORY; i++)
                add(SP_KIND_DEVICE, i * 512, 10);
        sp_ledger_context_gone(7);
        cr_expect_eq(leaks(), 0);
        cr_expect_eq(totals().kind[SP_KIND_DEVICE].released, 3 * SP_LEDGER_HISTORY);
        cr_expect_eq(sp_ledger.history, SP_LEDGER_HISTORY);
}

/* misuse */

Test(misuse, a_double_free_names_all_three_places)
{
        add(SP_KIND_DEVICE, 0x1000, 100);
        free_it(SP_SPACE_DEVICE, 0x1000, "cuMemFree", OK, &place[1]);
        free_it(SP_SPACE_DEVICE, 0x1000, "cuMemFreeAsync", INVALID_VALUE, &place[2]);
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].kind, SP_FINDING_DOUBLE_FREE);
        cr_expect_eq(found[0].block.site, &place[0]);
        cr_expect_eq(found[0].block.bytes, 100);
        cr_expect_eq(found[0].freed_at, &place[1]);
        cr_expect_str_eq(found[0].freed_by, "cuMemFree");
        cr_expect_eq(found[0].site, &place[2]);
        cr_expect_str_eq(found[0].function, "cuMemFreeAsync");
}

Test(misuse, a_double_free_is_found_as_long_as_the_history_goes_back)
{
        add(SP_KIND_DEVICE, 0x1000, 1);
        free_it(SP_SPACE_DEVICE, 0x1000, "cuMemFree", OK, NULL);
        for (uint64_t i = 0; i < SP_LEDGER_HISTORY - 1; i++) {
                add(SP_KIND_DEVICE, 0x100000 + i * 512, 1);
                free_it(SP_SPACE_DEVICE, 0x100000 + i * 512, "cuMemFree", OK, NULL);
        }
        free_it(SP_SPACE_DEVICE, 0x1000, "cuMemFree", INVALID_VALUE, NULL);
        cr_expect_eq(totals().findings[SP_FINDING_DOUBLE_FREE], 1);
        add(SP_KIND_DEVICE, 0x2000, 1);
        free_it(SP_SPACE_DEVICE, 0x2000, "cuMemFree", OK, NULL);
        free_it(SP_SPACE_DEVICE, 0x1000, "cuMemFree", INVALID_VALUE, NULL);
        cr_expect_eq(totals().findings[SP_FINDING_FOREIGN], 1, "beyond the history");
}

Test(misuse, a_freed_address_that_lives_again_is_not_doubly_freed)
{
        add(SP_KIND_DEVICE, 0x1000, 1);
        free_it(SP_SPACE_DEVICE, 0x1000, "cuMemFree", OK, NULL);
        add(SP_KIND_DEVICE, 0x1000, 1);
        cr_expect(free_it(SP_SPACE_DEVICE, 0x1000, "cuMemFree", OK, NULL));
        cr_expect_eq(findings(), 0);
        cr_expect_eq(sp_ledger.history, 1);
}

/* The host may lock memory where the device had some before, and the other way round. */
Test(misuse, is_about_what_lives_there_now)
{
        add(SP_KIND_DEVICE, 0x1000, 0x100);
        free_it(SP_SPACE_DEVICE, 0x1000, "free", OK, NULL);
        add(SP_KIND_PINNED, 0x1000, 0x100);
        free_it(SP_SPACE_DEVICE, 0x1000, "free", INVALID_VALUE, NULL);
        cr_assert_eq(findings(), 1);
        cr_expect_eq(found[0].kind, SP_FINDING_WRONG_KIND, "%s", sp_finding_name(found[0].kind));
        cr_expect_eq(found[0].block.kind, SP_KIND_PINNED);
        free_it(SP_SPACE_HOST, 0x1000, "free", OK, NULL);
        free_it(SP_SPACE_DEVICE, 0x1000, "free", INVALID_VALUE, NULL);
        cr_assert_eq(findings(), 2);
        cr_expect_eq(found[1].kind, SP_FINDING_DOUBLE_FREE, "%s", sp_finding_name(found[1].kind));
}

Test(misuse, is_told_apart)
{
        static const struct {
                enum sp_space space;
                uint64_t address;
                int result;
                enum sp_finding_kind kind;
                enum sp_kind block;
        } rows[] = {
                /* inside a device block, at its last byte, past it */
                {SP_SPACE_DEVICE, 0x1001, INVALID_VALUE, SP_FINDING_INTERIOR, SP_KIND_DEVICE},
                {SP_SPACE_DEVICE, 0x10ff, INVALID_VALUE, SP_FINDING_INTERIOR, SP_KIND_DEVICE},
                {SP_SPACE_DEVICE, 0x1100, INVALID_VALUE, SP_FINDING_FOREIGN, SP_KIND_COUNT},
                /* cuMemFree of pinned memory, at its start and inside */
                {SP_SPACE_DEVICE, 0x3000, INVALID_VALUE, SP_FINDING_WRONG_KIND, SP_KIND_PINNED},
                {SP_SPACE_DEVICE, 0x3008, INVALID_VALUE, SP_FINDING_WRONG_KIND, SP_KIND_PINNED},
                /* cuMemFreeHost of device memory */
                {SP_SPACE_HOST, 0x1000, INVALID_VALUE, SP_FINDING_WRONG_KIND, SP_KIND_DEVICE},
                /* cuMemFreeAsync of managed memory */
                {SP_SPACE_DEVICE, 0x4000, NOT_SUPPORTED, SP_FINDING_WRONG_KIND, SP_KIND_MANAGED},
                /* cuMemFree of an array, of a mapping, of a handle */
                {SP_SPACE_DEVICE, 0x5000, INVALID_VALUE, SP_FINDING_WRONG_KIND, SP_KIND_ARRAY},
                {SP_SPACE_DEVICE, 0x6000, INVALID_VALUE, SP_FINDING_WRONG_KIND, SP_KIND_MAPPED},
                {SP_SPACE_DEVICE, 0x7000, INVALID_VALUE, SP_FINDING_WRONG_KIND, SP_KIND_VMM},
                /* nothing of ours */
                {SP_SPACE_DEVICE, 0x9999, INVALID_VALUE, SP_FINDING_FOREIGN, SP_KIND_COUNT},
                {SP_SPACE_HANDLE, 0x1000001, INVALID_VALUE, SP_FINDING_FOREIGN, SP_KIND_COUNT},
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                memset(&sp_ledger.totals, 0, sizeof(sp_ledger.totals));
                sp_ledger.finding_count = 0;
                add(SP_KIND_DEVICE, 0x1000, 0x100);
                add(SP_KIND_PINNED, 0x3000, 0x100);
                add(SP_KIND_MANAGED, 0x4000, 0x100);
                add(SP_KIND_ARRAY, 0x5000, 0x100);
                sp_ledger_map(0x6000, 0x100, 0);
                add(SP_KIND_VMM, 0x7000, 0x100);
                free_it(rows[i].space, rows[i].address, "free", rows[i].result, NULL);
                cr_assert_eq(findings(), 1, "row %zu", i);
                cr_expect_eq(found[0].kind, rows[i].kind, "row %zu is %s", i,
                             sp_finding_name(found[0].kind));
                cr_expect_eq(found[0].has_block, rows[i].block != SP_KIND_COUNT, "row %zu", i);
                if (found[0].has_block)
                        cr_expect_eq(found[0].block.kind, rows[i].block, "row %zu", i);
        }
}

Test(misuse, null_and_success_are_none)
{
        free_it(SP_SPACE_DEVICE, 0, "cuMemFree", INVALID_VALUE, NULL);
        free_it(SP_SPACE_DEVICE, 0x1234, "cuMemFree", OK, NULL);
        cr_expect_eq(findings(), 0);
}

Test(misuse, the_same_from_the_same_place_is_one_finding_with_a_count)
{
        for (unsigned int i = 0; i < 1000; i++)
                free_it(SP_SPACE_DEVICE, 0x1000 + i, "cuMemFree", INVALID_VALUE, &place[1]);
        free_it(SP_SPACE_DEVICE, 0x9999, "cuMemFree", INVALID_VALUE, &place[2]);
        cr_assert_eq(findings(), 2);
        cr_expect_eq(found[0].times, 1000);
        cr_expect_eq(found[0].address, 0x1000);
        cr_expect_eq(totals().findings[SP_FINDING_FOREIGN], 1001);
}

Test(misuse, findings_beyond_the_list_are_counted)
{
        for (uintptr_t i = 0; i < SP_LEDGER_FINDINGS + 5; i++)
                free_it(SP_SPACE_DEVICE, 0x1000, "cuMemFree", INVALID_VALUE, (void *)(i + 1));
        cr_expect_eq(findings(), SP_LEDGER_FINDINGS);
        cr_expect_eq(totals().unlisted, 5);
        cr_expect_eq(totals().findings[SP_FINDING_FOREIGN], SP_LEDGER_FINDINGS + 5);
}

/* threads */

#define THREADS 4
#define ROUNDS  20000

static void *churn(void *argument)
{
        uint64_t base = (uintptr_t)argument * 0x1000000;

        for (uint64_t i = 0; i < ROUNDS; i++) {
                struct sp_ledger_entry entry = {
                        .address = base + i % 97 * 512,
                        .bytes = 512,
                        .kind = SP_KIND_DEVICE,
                };

                sp_ledger_add(&entry);
                if (sp_ledger_take(SP_SPACE_DEVICE, entry.address, &entry))
                        sp_ledger_freed(&entry, "cuMemFree");
        }
        return NULL;
}

Test(threads, leave_exact_figures)
{
        pthread_t threads[THREADS];

        for (uintptr_t i = 0; i < THREADS; i++)
                cr_assert_eq(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
        for (unsigned int i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
        cr_expect_eq(totals().kind[SP_KIND_DEVICE].tally.count, 0);
        cr_expect_eq(totals().kind[SP_KIND_DEVICE].tally.made, THREADS * ROUNDS);
        cr_expect_eq(totals().kind[SP_KIND_DEVICE].tally.freed, THREADS * ROUNDS);
        cr_expect_leq(totals().kind[SP_KIND_DEVICE].tally.count_high, THREADS);
}

static void *hold(void *argument)
{
        int *pipes = argument;
        char byte = 0;

        sp_model_enter();
        cr_assert_eq(write(pipes[1], &byte, 1), 1);
        cr_assert_eq(read(pipes[2], &byte, 1), 1);
        sp_model_leave();
        return NULL;
}

Test(threads, that_hold_the_ledger_do_not_hold_up_the_report, .timeout = 10)
{
        struct sp_ledger_totals now;
        pthread_t thread;
        int pipes[4];
        char byte = 0;

        cr_assert(pipe(&pipes[0]) == 0 && pipe(&pipes[2]) == 0);
        cr_assert_eq(pthread_create(&thread, NULL, hold, pipes), 0);
        cr_assert_eq(read(pipes[0], &byte, 1), 1);
        cr_expect_not(sp_ledger_totals(&now));
        cr_expect_not(sp_ledger_each_live(count_live, NULL));
        cr_expect_not(sp_ledger_each_finding(keep_finding, NULL));
        cr_assert_eq(write(pipes[3], &byte, 1), 1);
        pthread_join(thread, NULL);
        cr_expect(sp_ledger_totals(&now));
}
