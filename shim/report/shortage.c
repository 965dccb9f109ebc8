/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Shortage -- the program was refused device memory: who holds it?
 *
 * The ledger is walked once; who holds what is summed up in tables that live on
 * pages of their own, because the stack is the program's. Holders for which a
 * table has no room are in the sums of their kinds only.
 */

#define _GNU_SOURCE

#include "report/shortage.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/config.h"
#include "base/lock.h"
#include "base/log.h"
#include "report/figures.h"
#include "report/inner.h"

#define TOLD_MAX   8
#define PAUSE_NS   10000000000ULL
#define HOLDERS    1024
#define PATIENCE   200 /* milliseconds */
#define WORDS_MAX  8192
#define SHOWN_KIND (SP_KIND_PINNED) /* the first that is no device memory */
#define GONE       3                /* instead of a handle: no stream has this one */

/* On pages of its own. */
struct desk {
        int device;
        struct sp_shortage *shortage;
        struct sp_holder sites[HOLDERS], numbers[HOLDERS], streams[HOLDERS];
        struct sp_figures figures;
        char words[WORDS_MAX];
};

/* Atomic. */
static atomic_uint told;
static atomic_ullong due;

/* Guarded by: last_lock. */
static struct sp_shortage last;
static struct sp_lock last_lock = SP_LOCK_INIT(SP_RANK_REPORT);

bool sp_shortage_is_due(void)
{
        unsigned long long at = atomic_load(&due), now;
        struct timespec time;

        if (atomic_load(&told) >= TOLD_MAX)
                return false;
        clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
        now = (unsigned long long)time.tv_sec * 1000000000 + (unsigned long long)time.tv_nsec;
        if (now < at || !atomic_compare_exchange_strong(&due, &at, now + PAUSE_NS))
                return false;
        return atomic_fetch_add(&told, 1) < TOLD_MAX;
}

/* gathering */

/* Open addressing. */
static void add_holder(struct sp_holder *table, const struct sp_holder *one)
{
        size_t start = ((uintptr_t)one->site * 31 + one->stream * 17 + one->kind) % HOLDERS;

        for (size_t i = 0; i < HOLDERS; i++) {
                struct sp_holder *holder = &table[(start + i) % HOLDERS];

                if (holder->count && (holder->site != one->site || holder->kind != one->kind ||
                                      holder->stream != one->stream))
                        continue;
                holder->site = one->site;
                holder->stream = one->stream;
                holder->kind = one->kind;
                holder->count += one->count;
                holder->bytes += one->bytes;
                return;
        }
}

static void gather(const struct sp_ledger_entry *entry, void *user)
{
        struct desk *desk = user;
        struct sp_shortage *shortage = desk->shortage;
        struct sp_holder site = {
                .site = entry->site, .kind = entry->kind, .count = 1, .bytes = entry->bytes};
        struct sp_holder stream = {.stream = entry->stream, .count = 1, .bytes = entry->bytes};

        if (entry->kind >= SHOWN_KIND || (desk->device >= 0 && entry->device != desk->device))
                return;
        shortage->held_count++;
        shortage->held_bytes += entry->bytes;
        shortage->kinds[entry->kind].count++;
        shortage->kinds[entry->kind].bytes += entry->bytes;
        add_holder(desk->sites, &site);
        add_holder(entry->pooled && entry->stream ? desk->numbers : desk->streams, &stream);
}

/* What is known by the model's number of a stream is told by the stream's handle. */
static void name_streams(struct desk *desk)
{
        for (size_t i = 0; i < HOLDERS; i++) {
                struct sp_holder *holder = &desk->numbers[i];

                if (!holder->count)
                        continue;
                holder->stream = sp_route_stream_handle(holder->stream);
                if (!holder->stream)
                        holder->stream = GONE;
                add_holder(desk->streams, holder);
        }
}

/* The largest ones, largest first; they leave the table. */
static void take_largest(struct sp_holder *table, struct sp_holder *rows)
{
        for (size_t row = 0; row < SP_SHORTAGE_ROWS; row++) {
                struct sp_holder *largest = &table[0];

                for (size_t i = 1; i < HOLDERS; i++)
                        if (table[i].bytes > largest->bytes)
                                largest = &table[i];
                rows[row] = *largest;
                *largest = (struct sp_holder){0};
        }
}

static void sum_pools(struct desk *desk)
{
        struct sp_figures *figures = &desk->figures;

        sp_route_figures(figures);
        for (unsigned int i = 0; i < figures->pools; i++) {
                const struct sp_pool_figures *pool = &figures->pool[i];
                struct sp_shortage_pool *sum = pool->class == SP_CLASS_ASYNC
                                                       ? &desk->shortage->async
                                                       : &desk->shortage->sync;

                if (figures->observing || pool->class == SP_CLASS_HOST ||
                    (desk->device >= 0 && pool->device != desk->device))
                        continue;
                sum->used += pool->requested;
                sum->reserved += pool->reserved;
                sum->pending += pool->pending;
                sum->ready += pool->ready;
                if (sum->largest_ready < pool->largest_ready)
                        sum->largest_ready = pool->largest_ready;
        }
}

void sp_shortage_tell(struct sp_shortage *shortage)
{
        struct desk *desk = mmap(NULL, sizeof(*desk), PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        struct sp_text text;

        if (desk == MAP_FAILED)
                return;
        desk->device = shortage->device;
        desk->shortage = shortage;
        shortage->time = atomic_load(&told);
        shortage->complete = sp_ledger_each_live(gather, desk);
        name_streams(desk);
        take_largest(desk->sites, shortage->sites);
        take_largest(desk->streams, shortage->streams);
        sum_pools(desk);
        if (sp_config()->log >= SP_LOG_WARNING) {
                sp_text_init(&text, desk->words, sizeof(desk->words));
                sp_text_add(&text, "streampool: out of memory: ");
                sp_shortage_text(&text, shortage);
                (void)sp_text_write(&text, STDERR_FILENO);
        }
        munmap(desk, sizeof(*desk));
        sp_lock_take(&last_lock);
        last = *shortage;
        sp_lock_drop(&last_lock);
}

bool sp_shortage_last(struct sp_shortage *shortage)
{
        if (!atomic_load(&told) || !sp_lock_take_bounded(&last_lock, PATIENCE))
                return false;
        *shortage = last;
        sp_lock_drop(&last_lock);
        return shortage->time > 0;
}

/* words */

static void add_stream(struct sp_text *text, uint64_t stream)
{
        if (stream == 0)
                sp_text_add(text, "of no stream");
        else if (stream == 1)
                sp_text_add(text, "of the legacy stream");
        else if (stream == 2)
                sp_text_add(text, "of per-thread streams");
        else if (stream == GONE)
                sp_text_add(text, "of streams that are destroyed");
        else
                sp_text_add(text, "of stream 0x%llx", (unsigned long long)stream);
}

static void add_amount(struct sp_text *text, const struct sp_holder *holder)
{
        sp_text_add_bytes(text, holder->bytes);
        sp_text_add(text, " in %llu", (unsigned long long)holder->count);
}

static void add_label(struct sp_text *text, const char *label)
{
        sp_text_add(text, "  %s", label);
        sp_text_pad(text, 12);
}

static void add_holders(struct sp_text *text, const struct sp_shortage *shortage)
{
        const char *separator = "";

        add_label(text, "held");
        for (unsigned int i = 0; i < SHOWN_KIND; i++) {
                if (shortage->kinds[i].count == 0)
                        continue;
                sp_text_add(text, "%s%s ", separator, sp_kind_name((enum sp_kind)i));
                add_amount(text, &shortage->kinds[i]);
                separator = ", ";
        }
        sp_text_add(text, "%s\n", *separator ? "" : "nothing");
        for (unsigned int i = 0; i < SP_SHORTAGE_ROWS && shortage->sites[i].count; i++) {
                const struct sp_holder *holder = &shortage->sites[i];

                add_label(text, i ? "" : "from");
                add_amount(text, holder);
                sp_text_add(text, " %s by ", sp_kind_name(holder->kind));
                sp_place_text(text, holder->site);
                sp_text_add(text, "\n");
                sp_place_frames(text, holder->site, "                ");
        }
        for (unsigned int i = 0; i < SP_SHORTAGE_ROWS && shortage->streams[i].count; i++) {
                add_label(text, i ? "" : "streams");
                add_amount(text, &shortage->streams[i]);
                sp_text_add(text, " ");
                add_stream(text, shortage->streams[i].stream);
                sp_text_add(text, "\n");
        }
}

static void add_pool(struct sp_text *text, const char *name, const struct sp_shortage_pool *pool)
{
        if (!pool->reserved)
                return;
        add_label(text, "pool");
        sp_text_add(text, "%s: ", name);
        sp_text_add_bytes(text, pool->used);
        sp_text_add(text, " used of ");
        sp_text_add_bytes(text, pool->reserved);
        sp_text_add(text, " reserved, ");
        sp_text_add_bytes(text, pool->pending);
        sp_text_add(text, " freed and not finished, ");
        sp_text_add_bytes(text, pool->ready);
        sp_text_add(text, " free, ");
        sp_text_add_bytes(text, pool->largest_ready);
        sp_text_add(text, " of it in one piece\n");
}

static void add_device(struct sp_text *text, const struct sp_shortage *shortage)
{
        if (shortage->total_bytes) {
                add_label(text, "driver");
                sp_text_add_bytes(text, shortage->free_bytes);
                sp_text_add(text, " free of ");
                sp_text_add_bytes(text, shortage->total_bytes);
                sp_text_add(text, "\n");
        }
        if (shortage->limit == UINT64_MAX)
                return;
        add_label(text, "limit");
        sp_text_add_bytes(text, shortage->counted);
        sp_text_add(text, " counted of ");
        sp_text_add_bytes(text, shortage->limit);
        sp_text_add(text, "\n");
}

void sp_shortage_text(struct sp_text *text, const struct sp_shortage *shortage)
{
        sp_text_add_bytes(text, shortage->bytes);
        sp_text_add(text, " of %s memory", sp_kind_name(shortage->kind));
        if (shortage->device >= 0)
                sp_text_add(text, " on device %d", shortage->device);
        sp_text_add(text, ", refused by %s, asked for by ",
                    shortage->by_limit ? "STREAMPOOL_LIMIT" : "the driver");
        sp_place_text(text, shortage->site);
        sp_text_add(text, "\n");
        sp_place_frames(text, shortage->site, "      ");
        if (!shortage->complete)
                sp_text_add(text, "  Another thread kept the books: what follows is not all.\n");
        add_holders(text, shortage);
        add_pool(text, "cuMemAlloc", &shortage->sync);
        add_pool(text, "cuMemAllocAsync", &shortage->async);
        add_device(text, shortage);
}
