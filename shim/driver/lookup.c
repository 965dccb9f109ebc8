/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Look-up -- which of our functions stands for this function of the driver?
 *
 * A hash table from the real address to ours, filled once when the driver is
 * found and only read from then on. Where two exports of the driver share one
 * address they are one function, and either of our wrappers will do.
 */

#include "driver/lookup.h"

#include <stdint.h>

#include "driver/driver.h"

#define SLOTS 1024

_Static_assert(SP_ENTRY_COUNT < SLOTS / 2, "the table is at most half full");

struct slot {
        void *real;
        void *wrapper;
};

/* Written once, by sp_lookup_fill(), before sp_driver_is_loaded(). */
static struct slot slots[SLOTS];

/*
 * Loaded twice under two names, the first copy in the search order wins. This
 * variable is exported, so all copies see the first one's; `own_mark` is the
 * same variable under a name that cannot be anybody else's.
 */
SP_EXPORT extern char sp_first_copy;
char sp_first_copy;
extern char own_mark __attribute__((alias("sp_first_copy"), visibility("hidden")));

bool sp_lookup_is_second(void)
{
        char *first = &sp_first_copy;

        /* Or the compiler concludes from the alias what only the loader can know. */
        __asm__("" : "+r"(first));
        return first != &own_mark;
}

/* the table */

static struct slot *slot_of(const void *address)
{
        uintptr_t hash = (uintptr_t)address;
        struct slot *slot;

        hash = (hash >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
        for (;; hash++) {
                slot = &slots[hash % SLOTS];
                if (!slot->real || slot->real == address)
                        return slot;
        }
}

static void add(void *real, void *wrapper)
{
        struct slot *slot = real ? slot_of(real) : NULL;

        if (slot && !slot->real)
                *slot = (struct slot){.real = real, .wrapper = wrapper};
}

void sp_lookup_fill(void)
{
#define SP_EACH_HOOK(api, symbol, since, suffix, params, raw_args, args)                           \
        add((void *)sp_driver.symbol##suffix, (void *)symbol##suffix);
#define SP_EACH_RETRY(api, symbol, since, suffix, params, raw_args)                                \
        add((void *)sp_driver.symbol##suffix, (void *)symbol##suffix);
#define SP_EACH_SUBMIT(api, symbol, since, suffix, kind, params, raw_args, stream)                 \
        add((void *)sp_driver.symbol##suffix, (void *)symbol##suffix);
#include "driver/entry_points.def"
}

void *sp_lookup_wrapper(void *address)
{
        const struct slot *slot;

        if (!address || !sp_driver_is_loaded() || sp_lookup_is_second())
                return address;
        slot = slot_of(address);
        return slot->real ? slot->wrapper : address;
}
