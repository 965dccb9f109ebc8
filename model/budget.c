/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Budget -- how much somebody may have
 *
 * The fields are plain in the public header, so that C++ can read it, and
 * atomic here. No order is needed between them: each answer is about one
 * budget at one moment.
 */

#include <streampool/model.h>

#include "text.h"

static uint64_t look(const uint64_t *figure)
{
        return __atomic_load_n(figure, __ATOMIC_RELAXED);
}

static bool swap(uint64_t *figure, uint64_t *before, uint64_t after)
{
        return __atomic_compare_exchange_n(figure, before, after, true, __ATOMIC_RELAXED,
                                           __ATOMIC_RELAXED);
}

static void raise_high(uint64_t *high, uint64_t now)
{
        uint64_t before = look(high);

        while (before < now && !swap(high, &before, now))
                ;
}

/* budgets */

void spm_budget_init(struct spm_budget *budget, uint64_t limit, struct spm_budget *above)
{
        *budget = (struct spm_budget){.limit = limit, .above = above};
}

/* Of this one alone. Return: false if it does not fit in; @current is what it has then. */
static bool take(struct spm_budget *budget, uint64_t bytes, uint64_t *current)
{
        *current = look(&budget->reserved);
        do {
                if (bytes > budget->limit - *current)
                        return false;
        } while (!swap(&budget->reserved, current, *current + bytes));
        raise_high(&budget->reserved_high, *current + bytes);
        return true;
}

static bool give(struct spm_budget *budget, uint64_t bytes)
{
        uint64_t current = look(&budget->reserved);

        do {
                if (bytes > current)
                        return false;
        } while (!swap(&budget->reserved, &current, current - bytes));
        return true;
}

enum spm_status spm_budget_reserve(struct spm_budget *budget, uint64_t bytes,
                                   struct spm_shortage *shortage)
{
        struct spm_budget *at;
        uint64_t current;

        for (at = budget; at && take(at, bytes, &current); at = at->above)
                ;
        if (!at)
                return SPM_OK;
        __atomic_fetch_add(&at->refused, 1, __ATOMIC_RELAXED);
        if (shortage)
                *shortage = (struct spm_shortage){bytes, current, at->limit - current, at->limit};
        for (; budget != at; budget = budget->above)
                give(budget, bytes);
        return SPM_E_OUT_OF_BUDGET;
}

enum spm_status spm_budget_release(struct spm_budget *budget, uint64_t bytes)
{
        struct spm_budget *at;
        uint64_t current;

        for (at = budget; at && give(at, bytes); at = at->above)
                ;
        if (!at)
                return SPM_OK;
        /* What was just given is there still, unless somebody was faster: then it is his. */
        for (; budget != at; budget = budget->above)
                take(budget, bytes, &current);
        return SPM_E_MISUSE;
}

void spm_budget_look(const struct spm_budget *budget, struct spm_budget_figures *figures)
{
        const struct spm_budget *at;

        figures->limit = budget->limit;
        figures->reserved = look(&budget->reserved);
        figures->remaining = figures->limit - figures->reserved;
        figures->available = figures->remaining;
        figures->reserved_high = look(&budget->reserved_high);
        figures->refused = look(&budget->refused);
        for (at = budget->above; at; at = at->above) {
                uint64_t remaining = at->limit - look(&at->reserved);

                if (remaining < figures->available)
                        figures->available = remaining;
        }
}

const char *spm_shortage_text(const struct spm_shortage *shortage, char *buffer, size_t size)
{
        struct spm_text text;

        spm_text_start(&text, buffer, size);
        spm_text_count(&text, "out of budget: requested", shortage->requested);
        spm_text_count(&text, "bytes, reserved", shortage->current);
        spm_text_count(&text, "of", shortage->limit);
        spm_text_count(&text, "bytes, remaining", shortage->remaining);
        return buffer;
}

/* reservations */

enum spm_status spm_reservation_begin(struct spm_budget *budget, uint64_t bytes,
                                      struct spm_reservation *reservation,
                                      struct spm_shortage *shortage)
{
        enum spm_status status = spm_budget_reserve(budget, bytes, shortage);

        *reservation = (struct spm_reservation){budget, status ? 0 : bytes};
        return status;
}

enum spm_status spm_reservation_take(struct spm_reservation *reservation, uint64_t bytes)
{
        if (bytes > reservation->bytes)
                return SPM_E_OUT_OF_BUDGET;
        reservation->bytes -= bytes;
        return SPM_OK;
}

void spm_reservation_end(struct spm_reservation *reservation)
{
        if (reservation->bytes)
                spm_budget_release(reservation->budget, reservation->bytes);
        reservation->bytes = 0;
}
