/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Budget -- how much somebody may have
 *
 * Pools under a budget are in account.c, threads in tests/stress/budget.c.
 */

#include <criterion/criterion.h>
#include <streampool/model.h>

static struct spm_budget budget;
static struct spm_shortage shortage;

static uint64_t reserved(void)
{
        struct spm_budget_figures figures;

        spm_budget_look(&budget, &figures);
        return figures.reserved;
}

/* B35 */
Test(budget, the_limit_fits_and_one_more_does_not)
{
        spm_budget_init(&budget, 1000, NULL);
        cr_expect_eq(spm_budget_reserve(&budget, 1001, &shortage), SPM_E_OUT_OF_BUDGET);
        cr_expect_eq(spm_budget_reserve(&budget, 1000, NULL), SPM_OK);
        cr_expect_eq(spm_budget_reserve(&budget, 1, &shortage), SPM_E_OUT_OF_BUDGET);
        cr_expect_eq(shortage.requested, 1);
        cr_expect_eq(shortage.current, 1000);
        cr_expect_eq(shortage.remaining, 0);
        cr_expect_eq(shortage.limit, 1000);
        cr_expect_eq(spm_budget_reserve(&budget, UINT64_MAX, NULL), SPM_E_OUT_OF_BUDGET);
        cr_expect_eq(spm_budget_reserve(&budget, 0, NULL), SPM_OK);
        cr_expect_eq(reserved(), 1000);
}

Test(budget, a_limit_without_end_counts_too)
{
        spm_budget_init(&budget, UINT64_MAX, NULL);
        cr_expect_eq(spm_budget_reserve(&budget, UINT64_MAX, NULL), SPM_OK);
        cr_expect_eq(spm_budget_reserve(&budget, 1, NULL), SPM_E_OUT_OF_BUDGET);
}

/* B40 */
Test(budget, no_more_is_released_than_was_reserved)
{
        spm_budget_init(&budget, 1000, NULL);
        cr_assert_eq(spm_budget_reserve(&budget, 600, NULL), SPM_OK);
        cr_expect_eq(spm_budget_release(&budget, 601), SPM_E_MISUSE);
        cr_expect_eq(reserved(), 600);
        cr_expect_eq(spm_budget_release(&budget, 600), SPM_OK);
        cr_expect_eq(reserved(), 0);
}

Test(budget, several_lie_in_the_one_of_a_device)
{
        struct spm_budget device, one, two;
        struct spm_budget_figures figures;

        spm_budget_init(&device, 1000, NULL);
        spm_budget_init(&one, 800, &device);
        spm_budget_init(&two, 800, &device);
        cr_assert_eq(spm_budget_reserve(&one, 700, NULL), SPM_OK);
        cr_expect_eq(spm_budget_reserve(&two, 400, &shortage), SPM_E_OUT_OF_BUDGET);
        cr_expect_eq(shortage.limit, 1000, "it is the device's that refuses");
        cr_expect_eq(shortage.current, 700);
        spm_budget_look(&two, &figures);
        cr_expect_eq(figures.reserved, 0, "and nothing is left behind in the other");
        cr_expect_eq(figures.remaining, 800);
        cr_expect_eq(figures.available, 300);
        cr_expect_eq(spm_budget_reserve(&two, 300, NULL), SPM_OK);
        cr_expect_eq(spm_budget_reserve(&one, 101, &shortage), SPM_E_OUT_OF_BUDGET);
        cr_expect_eq(shortage.limit, 800);
        cr_expect_eq(spm_budget_release(&one, 700), SPM_OK);
        spm_budget_look(&device, &figures);
        cr_expect_eq(figures.reserved, 300);
        cr_expect_eq(figures.reserved_high, 1000);
        cr_expect_eq(figures.refused, 1);
}

/* B7 */
Test(budget, a_refusal_says_its_four_numbers)
{
        struct spm_shortage four = {4096, 1000, 24, 1024};
        char text[200];
        char little[12];

        cr_expect_str_eq(spm_shortage_text(&four, text, sizeof(text)),
                         "out of budget: requested 4096 bytes, reserved 1000 of 1024 bytes, "
                         "remaining 24");
        cr_expect_str_eq(spm_shortage_text(&four, little, sizeof(little)), "out of budg");
}

/* B42 */
Test(budget, a_reservation_is_spent_in_parts_and_the_rest_goes_back)
{
        struct spm_reservation reservation;

        spm_budget_init(&budget, 1000, NULL);
        cr_assert_eq(spm_reservation_begin(&budget, 900, &reservation, NULL), SPM_OK);
        cr_expect_eq(spm_budget_reserve(&budget, 101, NULL), SPM_E_OUT_OF_BUDGET);
        cr_expect_eq(spm_reservation_take(&reservation, 500), SPM_OK);
        cr_expect_eq(spm_reservation_take(&reservation, 401), SPM_E_OUT_OF_BUDGET);
        spm_reservation_end(&reservation);
        spm_reservation_end(&reservation);
        cr_expect_eq(reserved(), 500, "what was taken");
        cr_expect_eq(spm_reservation_begin(&budget, 501, &reservation, &shortage),
                     SPM_E_OUT_OF_BUDGET);
        spm_reservation_end(&reservation);
        cr_expect_eq(reserved(), 500);
}
