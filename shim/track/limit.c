/* SPDX-License-Identifier: Apache-2.0 */

/* Limit -- how much of a device the process holds, and how much it may hold */

#include "track/limit.h"

#include <stdatomic.h>

#include "base/parse.h"

#define STEP   ((size_t)512)
#define SMALL  ((size_t)1 << 20)
#define PAGE   ((size_t)2 << 20)
#define LOCKED ((size_t)4 << 10) /* a page of the host's */

/* Atomic: counted. Written once, before the shim is on: the others; 0 is none. Devices above the
 * last one share its figures, as they do in the ledger. */
static struct figures {
        atomic_ullong counted;
        uint64_t cap, soft;
} devices[SP_LIMITS], host;

static bool has_caps; /* of devices */

/* NULL for none. */
static struct figures *figures_of(int device)
{
        if (device == SP_LIMIT_HOST)
                return &host;
        if (device < 0)
                return NULL;
        return &devices[device < SP_LIMITS ? device : SP_LIMITS - 1];
}

void sp_limit_set(int device, uint64_t cap, uint64_t soft)
{
        figures_of(device)->cap = cap;
        figures_of(device)->soft = soft;
        has_caps = has_caps || (cap && device >= 0);
}

bool sp_limit_is_set(void)
{
        return has_caps;
}

uint64_t sp_limit_cap(int device)
{
        const struct figures *figures = figures_of(device);

        return figures && figures->cap ? figures->cap : SP_LIMIT_NONE;
}

uint64_t sp_limit_counted(int device)
{
        struct figures *figures = figures_of(device);

        return figures ? atomic_load(&figures->counted) : 0;
}

uint64_t sp_limit_excess(int device, size_t more)
{
        const struct figures *figures = figures_of(device);
        uint64_t soft = figures ? figures->soft : 0;
        uint64_t counted = sp_limit_counted(device) + more;

        return soft && counted > soft ? counted - soft : 0;
}

bool sp_limit_is_exact(enum sp_kind kind, size_t bytes)
{
        return kind != SP_KIND_ASYNC && bytes > SMALL;
}

size_t sp_limit_rounded(enum sp_kind kind, size_t bytes)
{
        size_t step = sp_limit_is_exact(kind, bytes) && kind != SP_KIND_VMM ? PAGE : STEP;

        if (kind == SP_KIND_PINNED || kind == SP_KIND_REGISTERED)
                step = LOCKED;
        return bytes > SIZE_MAX - step ? SIZE_MAX : (bytes + step - 1) / step * step;
}

bool sp_limit_take(int device, size_t bytes)
{
        uint64_t cap = sp_limit_cap(device);
        unsigned long long counted;
        struct figures *figures = figures_of(device);

        if (!figures)
                return true;
        counted = atomic_load(&figures->counted);
        do {
                if (cap != SP_LIMIT_NONE && (bytes > cap || counted > cap - bytes))
                        return false;
        } while (!atomic_compare_exchange_weak(&figures->counted, &counted, counted + bytes));
        return true;
}

void sp_limit_add(int device, size_t bytes)
{
        struct figures *figures = figures_of(device);

        if (figures)
                atomic_fetch_add(&figures->counted, bytes);
}

void sp_limit_give(int device, size_t bytes)
{
        struct figures *figures = figures_of(device);

        if (figures)
                atomic_fetch_sub(&figures->counted, bytes);
}
