/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STREAMPOOL_BUDGET_H
#define STREAMPOOL_BUDGET_H

/*
 * Budget -- how much somebody may have, of pools of one model or of many
 *
 * A budget is a limit and what is reserved of it. It belongs to the caller, is not a part of any
 * model, and may be shared by pools, models and threads: reserving is one compare-and-swap, and the
 * limit is never exceeded, not for a moment. A budget may lie in another one, of a device, say,
 * that has several; then both limits hold, and a reservation is made in both or in none.
 *
 * An account puts a pool under a budget. What it is charged for is outstanding memory (reap.h):
 * live, and freed but not yet complete, since that is what the device may be using (B39). So a
 * stream that has what it freed itself served again needs no more of the budget, and anybody else
 * has to wait for it, which the account does once: a reap.
 *
 * Units: bytes; of an account as taken from segments, so a request is rounded as its pool does.
 * Threads: functions of spm_budget_ and spm_reservation_ that take no account may be called by any
 * thread at any time, but of one reservation by one at a time. Those that take a model are under
 * the lock of that model, as in model.h. Ownership: budgets, accounts, reservations and requests
 * are the caller's memory; an account is closed before its budget ends, and a budget outlives those
 * that lie in it. Sources: rules B35 to B43 of tests/rules/README.md.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/action.h>
#include <streampool/block.h>
#include <streampool/order.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* budgets */

/* Fields are the budget's; they are read by spm_budget_look(). */
struct spm_budget {
        uint64_t limit;
        struct spm_budget *above;
        uint64_t reserved; /* atomic, like the next */
        uint64_t reserved_high;
        uint64_t refused;
};

/* Why a budget refused: `remaining` is limit - current. (B7, B37) */
struct spm_shortage {
        uint64_t requested;
        uint64_t current;
        uint64_t remaining;
        uint64_t limit;
};

/** spm_shortage_text() - as a sentence, cut off to fit. Return: @text. */
const char *spm_shortage_text(const struct spm_shortage *shortage, char *text, size_t size);

/** spm_budget_init() - nothing is reserved. @above: the budget that it lies in, or NULL */
void spm_budget_init(struct spm_budget *budget, uint64_t limit, struct spm_budget *above);

/** spm_budget_reserve() - @shortage: of the budget that refused; may be NULL. Return: SPM_OK,
 * SPM_E_OUT_OF_BUDGET: nothing is reserved anywhere (B35). */
enum spm_status spm_budget_reserve(struct spm_budget *budget, uint64_t bytes,
                                   struct spm_shortage *shortage);

/** spm_budget_release() - Return: SPM_OK; SPM_E_MISUSE (more than is reserved, here or above):
 * nothing has changed (B40). */
enum spm_status spm_budget_release(struct spm_budget *budget, uint64_t bytes);

struct spm_budget_figures {
        uint64_t limit;
        uint64_t reserved;
        uint64_t remaining; /* of this limit */
        uint64_t available; /* of this and all above */
        uint64_t reserved_high;
        uint64_t refused; /* reservations */
};

/** spm_budget_look() - as of now; `reserved` and `remaining` fit together (B43). */
void spm_budget_look(const struct spm_budget *budget, struct spm_budget_figures *figures);

/* reservations */

/* So much is set aside, and nobody else can have it: for what is allocated in several steps (B42).
 */
struct spm_reservation {
        struct spm_budget *budget;
        uint64_t bytes; /* left */
};

/** spm_reservation_begin() - Return: as of spm_budget_reserve(); then @reservation is empty. */
enum spm_status spm_reservation_begin(struct spm_budget *budget, uint64_t bytes,
                                      struct spm_reservation *reservation,
                                      struct spm_shortage *shortage);

/** spm_reservation_take() - a part of it becomes the caller's to release. Return: SPM_OK,
 * SPM_E_OUT_OF_BUDGET (less is left). */
enum spm_status spm_reservation_take(struct spm_reservation *reservation, uint64_t bytes);

/** spm_reservation_end() - what is left goes back; once more does no harm. */
void spm_reservation_end(struct spm_reservation *reservation);

/* accounts */

/* A pool under a budget. Fields below the line are the model's. */
struct spm_account {
        /* Waits on the host, as in spm_reap_pending(); NULL: never. */
        bool (*wait)(struct spm_scope what, void *user);
        void *user;
        /* -- */
        struct spm_budget *budget;
        spm_pool pool;
        uint64_t live; /* charged for these */
        uint64_t pending;
        uint64_t reaps;
};

/** spm_account_open() - @account is charged for what the pool has outstanding already. Return:
 * SPM_OK, SPM_E_UNKNOWN (pool), SPM_E_OUT_OF_BUDGET. */
enum spm_status spm_account_open(struct spm_model *model, struct spm_account *account,
                                 spm_pool pool, struct spm_budget *budget);

/** spm_account_close() - its charges go back to the budget, whatever the pool has. */
void spm_account_close(struct spm_account *account);

/** spm_account_settle() - what has become complete is charged no more. */
void spm_account_settle(struct spm_model *model, struct spm_account *account);

/* A request under a budget. Fields below the line are the model's, and zero before the first step.
 */
struct spm_account_request {
        struct spm_request request;          /* its pool is the account's; no magazine */
        struct spm_reservation *reservation; /* to take it out of, or NULL */
        /* -- */
        uint64_t held;
        bool is_reaped;
};

/**
 * spm_account_alloc() - one step of an allocation, as spm_alloc()
 * @shortage: why the budget refused; may be NULL
 *
 * A request above the limit is refused at once (B36). One above what remains is served if its
 * stream has the memory at hand that it freed; else all that is pending is waited for, once, and
 * then it has it or has not (B37). An allocation that fails leaves the budget as it was (B38), and
 * one that the budget refuses never asks the pool for anything (B49).
 *
 * Return: as of spm_alloc(), and SPM_E_OUT_OF_BUDGET.
 */
enum spm_status spm_account_alloc(struct spm_model *model, struct spm_account *account,
                                  struct spm_account_request *request,
                                  struct spm_allocation *allocation, struct spm_shortage *shortage,
                                  struct spm_actions *actions);

/** spm_account_give_up() - a request that was answered with SPM_AGAIN will not be made again. */
void spm_account_give_up(struct spm_account *account, struct spm_account_request *request);

/** spm_account_free() - spm_free(), after which the account is settled. Memory that is pending
 * stays charged, and so does all of it if the free is refused (B39, B40). */
enum spm_status spm_account_free(struct spm_model *model, struct spm_account *account,
                                 uint64_t address, uint64_t generation, enum spm_free_kind kind,
                                 spm_stream stream, struct spm_allocation *freed,
                                 struct spm_actions *actions);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
