/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ground -- a model that many threads share, and who has which byte of it
 */

#include "ground.h"

#include <inttypes.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BASE         ((uint64_t)1 << 40)
#define STRIDE       (2 * GROUND_RANGE) /* so that what leaves a range is not in another */
#define FAILURES_MAX 20
#define SECOND       1000000000u

struct ground ground;

uint32_t ground_random(uint64_t *state)
{
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        return (uint32_t)(*state >> 32);
}

void ground_fail(const char *format, ...)
{
        va_list list;

        va_start(list, format);
        fputs("stress: ", stderr);
        vfprintf(stderr, format, list);
        fputc('\n', stderr);
        va_end(list);
        if (atomic_fetch_add(&ground.failures, 1) == FAILURES_MAX)
                abort();
}

static void must(enum spm_status status, const char *what)
{
        if (status != SPM_OK)
                ground_fail("%s: %s", what, spm_status_name(status));
}

/* who has which byte */

struct site *ground_site(uint64_t address)
{
        uint64_t number = (address - BASE) / STRIDE;

        if (address < BASE || number >= GROUND_SITES || (address - BASE) % STRIDE >= GROUND_RANGE) {
                ground_fail("%" PRIx64 " is in no range", address);
                exit(1);
        }
        return &ground.sites[number];
}

static uint64_t offset_of(uint64_t address)
{
        return (address - BASE) % STRIDE;
}

static void change(uint64_t address, size_t size, uint32_t from, uint32_t to)
{
        struct site *site = ground_site(address);
        uint64_t offset = offset_of(address);
        uint64_t at;

        for (at = offset; at < offset + size; at += GROUND_UNIT) {
                uint32_t was = atomic_exchange_explicit(&site->tags[at / GROUND_UNIT], to,
                                                        memory_order_relaxed);

                if (was != from)
                        ground_fail("%" PRIx64 " is %u's, not %u's", address, was, from);
                if (!atomic_load_explicit(&site->backed[at / GROUND_GRAIN], memory_order_relaxed))
                        ground_fail("%" PRIx64 " of %u is not backed", address, from | to);
        }
}

void ground_take(uint64_t address, size_t size, uint32_t tag)
{
        change(address, size, 0, tag);
}

void ground_give(uint64_t address, size_t size, uint32_t tag)
{
        change(address, size, tag, 0);
}

/* the device */

static void back(uint64_t address, size_t size, bool is_backed)
{
        struct site *site = ground_site(address);
        uint64_t offset = offset_of(address);
        uint64_t at;

        for (at = offset; at < offset + size; at += GROUND_UNIT)
                if (atomic_load(&site->tags[at / GROUND_UNIT]))
                        ground_fail("a segment at %" PRIx64 " comes or goes under a block",
                                    address);
        for (at = offset; at < offset + size; at += GROUND_GRAIN)
                if (atomic_exchange(&site->backed[at / GROUND_GRAIN], is_backed) == is_backed)
                        ground_fail("%" PRIx64 " is backed twice, or never was", address);
        site->backed_bytes += is_backed ? size : -size;
}

static void grow(const struct spm_action *action, struct spm_request *request)
{
        struct site *site = action->address ? ground_site(action->address) : NULL;
        spm_segment segment;

        if (!site || site->backed_bytes + action->size > ground.capacity) {
                spm_grow_failed(ground.model, request);
                return;
        }
        back(action->address, action->size, true);
        must(spm_segment_add(ground.model, action->pool, action->address, action->size, NULL,
                             &segment),
             "a segment");
}

static void finish(spm_stamp stamp)
{
        struct spm_actions more;

        /* It may have been dropped meanwhile. */
        spm_stamp_done(ground.model, stamp, &more);
        ground_perform(&more, NULL);
}

static void observe(struct spm_scope scope, enum spm_sync how, bool is_done)
{
        struct spm_actions more;
        struct spm_ticket ticket;

        if (spm_sync_begin(ground.model, scope, &ticket) != SPM_OK)
                return;
        spm_sync_end(ground.model, &ticket, how, is_done, &more);
        ground_perform(&more, NULL);
}

static void perform(const struct spm_action *action, struct spm_request *request)
{
        bool is_done = ground_random(&ground.random) % 2;
        struct spm_actions more;

        if (action->kind == SPM_ACT_RECORD) {
                must(spm_stamp_recorded(ground.model, action->stamp, true, &more), "a stamp");
                ground_perform(&more, NULL);
        } else if (action->kind == SPM_ACT_GROW) {
                grow(action, request);
        } else if (action->kind == SPM_ACT_RELEASE) {
                back(action->address, action->size, false);
        } else if (action->kind == SPM_ACT_WAIT_HOST || (action->kind == SPM_ACT_POLL && is_done)) {
                finish(action->stamp);
        } else if (action->kind == SPM_ACT_POLL_STREAM) {
                observe((struct spm_scope){SPM_SCOPE_STREAM, action->stream}, SPM_SYNC_POLL,
                        is_done);
        } else if (action->kind == SPM_ACT_SYNC_CONTEXT) {
                observe((struct spm_scope){SPM_SCOPE_CONTEXT, action->context}, SPM_SYNC_POLL,
                        true);
        }
}

void ground_perform(const struct spm_actions *actions, struct spm_request *request)
{
        unsigned int i;

        for (i = 0; i < actions->count; i++)
                perform(&actions->item[i], request);
}

/* with the lock */

enum spm_status ground_alloc(struct spm_request *request, struct spm_allocation *allocation)
{
        struct spm_actions actions;
        enum spm_status status;

        do {
                status = spm_alloc(ground.model, request, allocation, &actions);
                ground_perform(&actions, request);
        } while (status == SPM_AGAIN);
        return status;
}

/* As a program does: the wait itself is made without the lock. */
void ground_synchronise(struct spm_scope scope, enum spm_sync how)
{
        struct spm_actions actions;
        struct spm_ticket ticket;

        if (spm_sync_begin(ground.model, scope, &ticket) != SPM_OK)
                return;
        ground_unlock();
        sched_yield();
        ground_lock();
        spm_sync_end(ground.model, &ticket, how, true, &actions);
        ground_perform(&actions, NULL);
}

void ground_record(unsigned int stream)
{
        struct spm_scope where = {SPM_SCOPE_STREAM, ground.streams[stream]};
        struct spm_actions actions;
        struct spm_ticket ticket;

        must(spm_record_begin(ground.model, ground.event, where, &ticket, &actions), "a record");
        ground_perform(&actions, NULL);
        spm_record_end(ground.model, &ticket, true);
}

void ground_trim(unsigned int pool)
{
        struct site *site = &ground.sites[ground.current[pool]];
        enum spm_status status;

        do {
                struct spm_actions actions;

                status = spm_trim(ground.model, site->pool, 0, NULL, &actions);
                ground_perform(&actions, NULL);
        } while (status == SPM_AGAIN);
        must(status, "a trim");
}

void ground_tick(void)
{
        enum spm_status status;

        ground.now += SECOND / 10;
        do {
                struct spm_actions actions;

                status = spm_tick(ground.model, ground.now, &actions);
                ground_perform(&actions, NULL);
        } while (status == SPM_AGAIN);
}

void ground_toggle_capture(unsigned int stream)
{
        struct spm_actions actions = {0};

        if (ground.capturing[stream])
                must(spm_capture_end(ground.model, ground.streams[stream]), "a capture's end");
        else
                must(spm_capture_begin(ground.model, ground.streams[stream], &actions),
                     "a capture");
        ground_perform(&actions, NULL);
        ground.capturing[stream] = !ground.capturing[stream];
}

static void add_stream(unsigned int stream)
{
        static const enum spm_stream_kind kinds[] = {SPM_STREAM_NON_BLOCKING, SPM_STREAM_BLOCKING,
                                                     SPM_STREAM_NON_BLOCKING,
                                                     SPM_STREAM_PER_THREAD};
        bool is_legacy = stream == GROUND_LEGACY;

        must(spm_stream_add(ground.model, is_legacy ? ground.beside : ground.context,
                            is_legacy ? SPM_STREAM_LEGACY : kinds[stream % 4],
                            &ground.streams[stream]),
             "a stream");
        ground.capturing[stream] = false;
}

void ground_replace_stream(unsigned int stream)
{
        struct spm_actions actions;

        must(spm_stream_retire(ground.model, ground.streams[stream], &actions), "a stream's end");
        ground_perform(&actions, NULL);
        add_stream(stream);
}

void ground_toggle_blocking(void)
{
        spm_stream ending = ground.blocking;
        struct spm_actions actions;

        ground.blocking = 0;
        if (!ending) {
                must(spm_stream_add(ground.model, ground.beside, SPM_STREAM_BLOCKING,
                                    &ground.blocking),
                     "a blocking stream");
                return;
        }
        must(spm_stream_retire(ground.model, ending, &actions), "a blocking stream's end");
        ground_perform(&actions, NULL);
}

/* A site whose pool is gone; -1 if there is none. */
static int find_site(void)
{
        struct spm_pool_config config;
        int i;

        for (i = 0; i < GROUND_SITES; i++) {
                struct site *site = &ground.sites[i];

                if (site->closed &&
                    spm_pool_get_config(ground.model, site->pool, &config) == SPM_E_UNKNOWN) {
                        if (site->backed_bytes)
                                ground_fail("a pool is gone, its memory is not");
                        site->closed = false;
                        site->pool = 0;
                }
                if (!site->pool)
                        return i;
        }
        return -1;
}

static void add_pool(unsigned int pool, unsigned int number)
{
        struct spm_pool_config config = {
                .kind = SPM_POOL_ASYNC,
                .range_base = BASE + number * STRIDE,
                .range_size = GROUND_RANGE,
                .grain = GROUND_GRAIN,
                .growth = pool ? SPM_GROWTH_TIGHT : SPM_GROWTH_BALANCED,
                .release_threshold = pool ? 0 : 8 * MIB,
                .decay = SECOND,
        };

        must(spm_pool_create(ground.model, &config, &ground.sites[number].pool), "a pool");
        ground.current[pool] = number;
}

void ground_replace_pool(unsigned int pool)
{
        struct site *site = &ground.sites[ground.current[pool]];
        int number = find_site();
        enum spm_status status;

        if (number < 0)
                return;
        do {
                struct spm_actions actions;

                status = spm_pool_destroy(ground.model, site->pool, &actions);
                ground_perform(&actions, NULL);
        } while (status == SPM_AGAIN);
        if (status != SPM_OK && status != SPM_E_UNKNOWN)
                must(status, "a pool's end");
        site->closed = true;
        add_pool(pool, (unsigned int)number);
}

void ground_look(spm_pool pool)
{
        struct spm_stats stats;

        if (spm_stats(ground.model, pool, &stats) != SPM_OK)
                return;
        if (stats.rounded_current + stats.pending_bytes + stats.ready_bytes + stats.sealed_bytes !=
            stats.reserved_current)
                ground_fail("not every byte is counted once");
        if (stats.used_current > stats.used_high)
                ground_fail("used %" PRIu64 ", at most %" PRIu64, stats.used_current,
                            stats.used_high);
        if (stats.live_blocks > stats.live_blocks_high)
                ground_fail("%" PRIu64 " live, at most %" PRIu64, stats.live_blocks,
                            stats.live_blocks_high);
}

/* life */

static void fence(void *user)
{
        (void)user;
        if (syscall(__NR_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
                abort();
}

bool ground_begin(bool fenced, uint64_t seed)
{
        struct spm_config config = {.fence = fenced ? fence : NULL};
        unsigned int i;

        if (fenced && syscall(__NR_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0))
                return false;
        pthread_mutex_init(&ground.lock, NULL);
        ground.random = seed;
        ground.capacity = 48 * MIB;
        must(spm_model_new(&config, &ground.model), "a model");
        must(spm_context_add(ground.model, 0, &ground.context), "a context");
        must(spm_context_add(ground.model, 0, &ground.beside), "a context beside");
        must(spm_event_add(ground.model, &ground.event), "an event");
        for (i = 0; i < GROUND_STREAMS; i++)
                add_stream(i);
        for (i = 0; i < GROUND_POOLS; i++)
                add_pool(i, i);
        return true;
}

void ground_end(void)
{
        spm_model_free(ground.model);
        pthread_mutex_destroy(&ground.lock);
}
