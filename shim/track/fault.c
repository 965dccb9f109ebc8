/* SPDX-License-Identifier: Apache-2.0 */

/* Fault -- allocations that are made to fail, to see what the program makes of it */

#include "track/fault.h"

#include <time.h>
#include <unistd.h>

#include "base/log.h"

#define COMPLAINT_MAX 480 /* what a line of the log has room for */

struct sp_faults sp_faults;

/* Another one in every process of a job that starts at once. */
static unsigned int seed_of_now(unsigned int index)
{
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        return (unsigned int)now.tv_nsec * 2654435761U ^ (unsigned int)now.tv_sec ^
               (unsigned int)getpid() << 16 ^ index;
}

/* Told as a whole rule, to be copied into the next run. */
static void choose_seeds(struct sp_faults *faults)
{
        for (unsigned int i = 0; i < faults->count; i++) {
                struct sp_fault_rule *rule = &faults->rule[i];

                if (!sp_fault_says(rule, SP_FAULT_P) || sp_fault_says(rule, SP_FAULT_SEED))
                        continue;
                rule->seed = seed_of_now(i);
                sp_log(SP_LOG_WARNING, "STREAMPOOL_FAULT, rule %u: in this run it is %s,seed=%u",
                       i + 1, rule->words, rule->seed);
        }
}

void sp_fault_start(const char *text)
{
        char bytes[COMPLAINT_MAX];
        struct sp_text complaint;

        sp_text_init(&complaint, bytes, sizeof(bytes));
        if (sp_fault_read(text, sp_faults.rule, &sp_faults.count, &complaint))
                choose_seeds(&sp_faults);
        else
                sp_log(SP_LOG_ERROR, "STREAMPOOL_FAULT is wrong, and nothing is made to fail: %s",
                       bytes);
}

bool sp_fault_asks_for_site(const struct sp_faults *faults)
{
        for (unsigned int i = 0; i < faults->count; i++) {
                if (sp_fault_says(&faults->rule[i], SP_FAULT_SITE))
                        return true;
        }
        return false;
}

/* One of the failures that the rule has: false if there is none left. */
static bool take_one(struct sp_faults *faults, unsigned int index)
{
        const struct sp_fault_rule *rule = &faults->rule[index];
        unsigned long long failed = atomic_load(&faults->failed[index]);

        do {
                if (sp_fault_says(rule, SP_FAULT_TIMES) && failed >= rule->times)
                        return false;
        } while (!atomic_compare_exchange_weak(&faults->failed[index], &failed, failed + 1));
        return true;
}

bool sp_fault_strikes(struct sp_faults *faults, const struct sp_fault_call *call,
                      struct sp_fault *fault)
{
        bool struck = false;

        for (unsigned int i = 0; i < faults->count; i++) {
                const struct sp_fault_rule *rule = &faults->rule[i];
                uint64_t ordinal;

                if (!sp_fault_matches(rule, call))
                        continue;
                ordinal = atomic_fetch_add(&faults->matched[i], 1) + 1;
                if (struck || !sp_fault_wants(rule, ordinal) || !take_one(faults, i))
                        continue;
                struck = true;
                *fault = (struct sp_fault){.error = rule->error, .by = i, .ordinal = ordinal};
        }
        if (struck)
                fault->number = atomic_fetch_add(&faults->injected, 1) + 1;
        return struck;
}
