/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_ROUTE_GIVE_BACK_H
#define SP_ROUTE_GIVE_BACK_H

/*
 * Give back -- the driver frees what is only written in the ledger
 *
 * The entry leaves the ledger, the driver is asked, and its answer, which is the
 * result, says what becomes of the entry.
 */

#include "route/order.h"
#include "track/ledger.h"

#define SP_GIVE_BACK(space, object, name, call)                                                    \
        __extension__({                                                                            \
                uint64_t given = (uint64_t)(uintptr_t)(object);                                    \
                struct sp_ledger_entry entry;                                                      \
                bool known = sp_ledger_take((space), given, &entry);                               \
                CUresult answer = (call);                                                          \
                /* It may have waited for anything. */                                             \
                if (sp_order_is_on)                                                                \
                        sp_order_blur();                                                           \
                sp_ledger_free_ended(known ? &entry : NULL, (space), given, (name), answer);       \
                answer;                                                                            \
        })

#endif
