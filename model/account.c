/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Account -- a pool under a budget (budget.h)
 *
 * What an allocation will cost is known only when it was made: less than its
 * size, if it has memory that is pending and therefore charged already. So as
 * much as it may cost is reserved first, and what was not needed goes back
 * afterwards. Where so much is not to be had the pool is asked which block it
 * would serve, before it is asked for one.
 *
 * The pool may count more as pending than was ever freed, since ready memory
 * can join what a stream has freed (limbo.c). So the account has figures of its
 * own, and the pool's are bounds to them.
 */

#include <assert.h>

#include "fit.h"
#include "front.h"

static struct spm_outstanding look(const struct spm_model *model, spm_pool id)
{
        struct spm_outstanding figures = {0};

        spm_outstanding(model, id, &figures);
        return figures;
}

static void release(struct spm_account *account, uint64_t bytes)
{
        enum spm_status status = spm_budget_release(account->budget, bytes);

        assert(status == SPM_OK);
        (void)status;
}

/* life */

enum spm_status spm_account_open(struct spm_model *model, struct spm_account *account, spm_pool id,
                                 struct spm_budget *budget)
{
        struct spm_outstanding now = look(model, id);

        if (!spm_pool_find(model, id))
                return SPM_E_UNKNOWN;
        if (spm_budget_reserve(budget, now.outstanding_bytes, NULL))
                return SPM_E_OUT_OF_BUDGET;
        account->budget = budget;
        account->pool = id;
        account->live = now.live_bytes;
        account->pending = now.pending_bytes;
        account->reaps = 0;
        return SPM_OK;
}

void spm_account_close(struct spm_account *account)
{
        release(account, account->live + account->pending);
        account->live = 0;
        account->pending = 0;
}

void spm_account_settle(struct spm_model *model, struct spm_account *account)
{
        struct spm_outstanding now = look(model, account->pool);
        uint64_t before = account->live + account->pending;

        if (account->live > now.live_bytes) {
                account->pending += account->live - now.live_bytes;
                account->live = now.live_bytes;
        }
        if (account->pending > now.pending_bytes)
                account->pending = now.pending_bytes;
        if (account->live + account->pending < before)
                release(account, before - account->live - account->pending);
}

/* allocations */

/* What the pool will look for. Return: false if it will refuse that. */
static bool find_want(const struct spm_model *model, const struct spm_request *request,
                      struct spm_want *want)
{
        struct spm_pool_state *pool = spm_pool_find(model, request->pool);
        size_t size = request->size + request->extra;

        *want = (struct spm_want){.pool = pool, .requested = request->size};
        if (!pool || pool->closed || !request->size || size < request->size)
                return false;
        want->size = spm_pool_reserve_size(pool, size, &want->align);
        if (!want->size)
                return false;
        want->klass = spm_slab_class(pool, want->size, &want->size);
        want->heap = spm_pool_heap(pool, want->size);
        want->stream = pool->config.kind == SPM_POOL_ASYNC
                               ? spm_subject_usable(model, request->stream)
                               : spm_work_early(pool->work);
        return true;
}

/* Of the block it would have, how much is charged already: memory that is pending (B39). Where it
 * would be on a shelf is not asked. */
static uint64_t charged_already(struct spm_model *model, const struct spm_account *account,
                                const struct spm_want *want)
{
        struct spm_fit fit;

        if (!want->stream || want->pool->layout || !spm_fit_bare(model, want, &fit) ||
            !spm_block_is(fit.block, SPM_BLOCK_PENDING))
                return 0;
        return want->size < account->pending ? want->size : account->pending;
}

static void explain(const struct spm_budget *budget, uint64_t bytes, struct spm_shortage *shortage)
{
        struct spm_budget_figures figures;

        if (!shortage)
                return;
        spm_budget_look(budget, &figures);
        *shortage =
                (struct spm_shortage){bytes, figures.reserved, figures.remaining, figures.limit};
}

static bool is_above_limit(const struct spm_account *account, uint64_t bytes,
                           struct spm_shortage *shortage)
{
        struct spm_budget *at = account->budget;

        while (at && bytes <= at->limit)
                at = at->above;
        if (!at)
                return false;
        __atomic_fetch_add(&at->refused, 1, __ATOMIC_RELAXED);
        explain(at, bytes, shortage);
        return true;
}

/* Waits for what is pending, once; then the request is made again. Return: SPM_AGAIN. */
static enum spm_status reap(struct spm_model *model, struct spm_account *account,
                            struct spm_actions *actions)
{
        struct spm_reaped reaped = {0};

        account->reaps++;
        spm_reap_pending(model, account->pool, account->wait, account->user, &reaped, actions);
        spm_account_settle(model, account);
        return SPM_AGAIN;
}

/* What the request may use of the budget is held. Return: SPM_OK, SPM_AGAIN after a reap,
 * SPM_E_OUT_OF_BUDGET. */
static enum spm_status hold(struct spm_model *model, struct spm_account *account,
                            struct spm_account_request *request, struct spm_shortage *shortage,
                            struct spm_actions *actions)
{
        struct spm_want want;
        uint64_t cost;

        /* What is wrong with it is for the pool to say. */
        if (request->held || !find_want(model, &request->request, &want))
                return SPM_OK;
        if (request->reservation) {
                if (spm_reservation_take(request->reservation, want.size)) {
                        explain(account->budget, want.size, shortage);
                        return SPM_E_OUT_OF_BUDGET;
                }
                request->held = want.size;
                return SPM_OK;
        }
        if (is_above_limit(account, want.size, shortage))
                return SPM_E_OUT_OF_BUDGET;
        spm_account_settle(model, account);
        if (spm_budget_reserve(account->budget, want.size, shortage) == SPM_OK) {
                request->held = want.size;
                return SPM_OK;
        }
        cost = want.size - charged_already(model, account, &want);
        if (cost < want.size && spm_budget_reserve(account->budget, cost, NULL) == SPM_OK) {
                request->held = cost;
                return SPM_OK;
        }
        if (request->is_reaped || !account->wait)
                return SPM_E_OUT_OF_BUDGET;
        request->is_reaped = true;
        return reap(model, account, actions);
}

void spm_account_give_up(struct spm_account *account, struct spm_account_request *request)
{
        if (request->reservation)
                request->reservation->bytes += request->held;
        else
                release(account, request->held);
        request->held = 0;
}

/* The block was served, and so much of it was pending: what was held and not needed goes back.
 * Return: false if it has cost more than that, and more than remains. */
static bool charge(struct spm_account *account, struct spm_account_request *request, uint64_t size,
                   uint64_t taken)
{
        uint64_t cost;

        if (taken > account->pending)
                taken = account->pending;
        if (taken > size)
                taken = size;
        cost = size - taken;
        if (cost > request->held) {
                if (spm_budget_reserve(account->budget, cost - request->held, NULL))
                        return false;
                request->held = cost;
        }
        request->held -= cost;
        account->pending -= taken;
        account->live += size;
        spm_account_give_up(account, request);
        return true;
}

enum spm_status spm_account_alloc(struct spm_model *model, struct spm_account *account,
                                  struct spm_account_request *request,
                                  struct spm_allocation *allocation, struct spm_shortage *shortage,
                                  struct spm_actions *actions)
{
        enum spm_status status;
        uint64_t before;
        uint64_t after;

        assert(!request->request.magazine);
        actions->count = 0;
        request->request.pool = account->pool;
        status = hold(model, account, request, shortage, actions);
        if (status)
                return status;
        before = look(model, account->pool).pending_bytes;
        status = spm_alloc(model, &request->request, allocation, actions);
        if (status == SPM_AGAIN)
                return status;
        if (status) {
                spm_account_give_up(account, request);
                return status;
        }
        after = look(model, account->pool).pending_bytes;
        if (charge(account, request, allocation->reserved, before > after ? before - after : 0))
                return SPM_OK;
        /* Short of memory, a pool may serve a whole page for less than one. */
        spm_account_give_up(account, request);
        explain(account->budget, allocation->reserved, shortage);
        spm_alloc_undo(model, allocation->address, actions);
        return SPM_E_OUT_OF_BUDGET;
}

enum spm_status spm_account_free(struct spm_model *model, struct spm_account *account,
                                 uint64_t address, uint64_t generation, enum spm_free_kind kind,
                                 spm_stream stream, struct spm_allocation *freed,
                                 struct spm_actions *actions)
{
        enum spm_status status = spm_free(model, address, generation, kind, stream, freed, actions);

        if (status == SPM_OK)
                spm_account_settle(model, account);
        return status;
}
