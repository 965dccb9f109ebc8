/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Operation -- what the simulated device does, and after what
 *
 * The device never lacks room: every operation that is ready starts at once.
 * What runs is kept in a list by planned end. In virtual time the list moves
 * only when a host thread must wait, or when a test says so; the clock jumps
 * from end to end. In real time a thread of the library sleeps until the next
 * end. Both go through finish(), so both see the same order of effects.
 *
 * Starting an operation may finish it (a marker takes no time), and finishing
 * one may start others; `ready` turns that recursion into a loop.
 */

#include "operation.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What moving memory lasts. */
#define COST_NS      1000
#define BYTES_PER_NS 8

#define PAUSE_NS     1000000
/* The host may still do what an operation waits for. After so long in vain it is a deadlock. */
#define PATIENCE_PAUSES 2000
/* Virtual time: so much fits into the device's queues before a launch has to wait for room. */
#define QUEUED_MAX 16384

/* Guarded by: sim_mutex. */
static struct {
        bool real_time;
        bool thread_started;
        uint64_t origin_ns; /* real time: what counts as 0 */
        uint64_t clock_ns;  /* virtual time */
        uint64_t numbers;
        size_t pending;
        struct sim_operation *running; /* by end_ns, then by number */
        struct sim_operation *polled;  /* all edges done, condition not */
        struct sim_operation *ready;   /* oldest first */
        struct sim_operation **ready_end;
        uint64_t poll_ns;
} engine = {
        .ready_end = &engine.ready,
        .poll_ns = 1000,
};

/* Something finished, started or was submitted. */
static pthread_cond_t changed;

static uint64_t monotonic_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void sleep_until(uint64_t absolute_ns)
{
        struct timespec end = {
                .tv_sec = (time_t)(absolute_ns / 1000000000u),
                .tv_nsec = (long)(absolute_ns % 1000000000u),
        };

        pthread_cond_timedwait(&changed, &sim_mutex, &end);
}

bool sim_time_is_virtual(void)
{
        return !engine.real_time;
}

uint64_t sim_clock(void)
{
        return engine.real_time ? monotonic_ns() - engine.origin_ns : engine.clock_ns;
}

/* ---- starting and finishing ---- */

static void insert_running(struct sim_operation *operation)
{
        struct sim_operation **place = &engine.running;

        while (*place && (*place)->end_ns <= operation->end_ns)
                place = &(*place)->next;
        operation->next = *place;
        *place = operation;
}

static void remove_running(struct sim_operation *operation)
{
        struct sim_operation **place = &engine.running;

        while (*place && *place != operation)
                place = &(*place)->next;
        if (*place)
                *place = operation->next;
}

static void make_ready(struct sim_operation *operation)
{
        operation->next = NULL;
        *engine.ready_end = operation;
        engine.ready_end = &operation->next;
}

/* Every range the effect dereferences must still be mapped: a real device would fault. */
static void check_mapped(const struct sim_operation *operation)
{
        for (unsigned int i = 0; i < operation->work.ranges; i++) {
                const struct sim_range *range = &operation->work.range[i];

                if (!sim_memory_is_mapped(range->address, range->bytes))
                        sim_abort("operation %llu (%s) touches %#llx + %zu, which is not mapped",
                                  (unsigned long long)operation->number, operation->work.name,
                                  (unsigned long long)range->address, range->bytes);
        }
}

void sim_engine_unmap(uint64_t address, size_t bytes)
{
        const struct sim_range gone = {.address = address, .bytes = bytes};

        for (const struct sim_operation *at = engine.running; at; at = at->next)
                for (unsigned int i = 0; i < at->work.ranges; i++)
                        if (sim_range_overlap(&at->work.range[i], &gone))
                                sim_abort("%#llx + %zu is unmapped while operation %llu (%s) runs",
                                          (unsigned long long)address, bytes,
                                          (unsigned long long)at->number, at->work.name);
}

static void take_effect(struct sim_operation *operation)
{
        if (!operation->work.effect || operation->work.kind == SIM_WORK_HOST)
                return;
        check_mapped(operation);
        operation->work.effect(&operation->work);
}

static void watchers_look(void)
{
        for (struct sim_operation *other = engine.running; other; other = other->next)
                if (other->work.kind == SIM_WORK_WATCH)
                        take_effect(other);
}

/* The last reference may go here. */
static void finish(struct sim_operation *operation)
{
        operation->state = SIM_OPERATION_DONE;
        if (engine.real_time || operation->work.kind == SIM_WORK_HOST)
                operation->end_ns = sim_clock();
        take_effect(operation);
        if (operation->work.effect)
                watchers_look();
        sim_oracle_finish(operation);
        for (size_t i = 0; i < operation->follower_count; i++)
                if (!--operation->followers[i]->missing)
                        make_ready(operation->followers[i]);
        for (size_t i = 0; i < operation->need_count; i++)
                sim_operation_put(operation->needs[i]);
        operation->need_count = 0;
        engine.pending--;
        pthread_cond_broadcast(&changed);
        sim_operation_put(operation);
}

static void start(struct sim_operation *operation)
{
        operation->state = SIM_OPERATION_RUNNING;
        operation->start_ns = sim_clock();
        operation->end_ns = operation->start_ns + operation->work.duration_ns;
        sim_oracle_start(operation);
        if (operation->work.kind == SIM_WORK_HOST) {
                sim_host_start(operation);
                return;
        }
        if (operation->work.kind == SIM_WORK_WATCH)
                take_effect(operation);
        if (!operation->work.duration_ns)
                finish(operation);
        else
                insert_running(operation);
}

static void start_ready(void)
{
        while (engine.ready) {
                struct sim_operation *operation = engine.ready;

                engine.ready = operation->next;
                if (!engine.ready)
                        engine.ready_end = &engine.ready;
                if (operation->work.holds && !operation->work.holds(&operation->work)) {
                        operation->next = engine.polled;
                        engine.polled = operation;
                } else {
                        start(operation);
                }
        }
}

/* Memory may have been written by an effect or by the host. Whether something got on. */
static bool look_at_polled(void)
{
        struct sim_operation **place = &engine.polled;
        bool moved = false;

        while (*place) {
                struct sim_operation *operation = *place;

                if (operation->work.holds(&operation->work)) {
                        *place = operation->next;
                        make_ready(operation);
                        moved = true;
                } else {
                        place = &operation->next;
                }
        }
        start_ready();
        return moved;
}

void sim_operation_finish(struct sim_operation *operation)
{
        finish(operation);
        start_ready();
}

/* ---- time ---- */

enum sim_progress sim_engine_step(uint64_t until)
{
        struct sim_operation *operation;

        if (look_at_polled())
                return SIM_MOVED;
        if (sim_host_running())
                return SIM_STALLED;
        operation = engine.running;
        if (!operation || operation->end_ns > until)
                return SIM_IDLE;
        if (!engine.real_time && operation->end_ns > engine.clock_ns)
                engine.clock_ns = operation->end_ns;
        remove_running(operation);
        sim_operation_finish(operation);
        return SIM_MOVED;
}

void sim_engine_move(uint64_t until)
{
        if (!engine.real_time && until > engine.clock_ns)
                engine.clock_ns = until;
}

void sim_engine_pause(void)
{
        sleep_until(monotonic_ns() + PAUSE_NS);
}

void sim_engine_poll(void)
{
        uint64_t until = sim_clock() + engine.poll_ns;

        if (engine.real_time)
                return;
        while (sim_engine_step(until) == SIM_MOVED)
                ;
        if (!sim_host_running())
                sim_engine_move(until);
}

/* Real time: finishes what is due, sleeps until something else is. */
static void *keep_time(void *unused)
{
        (void)unused;
        pthread_mutex_lock(&sim_mutex);
        for (;;) {
                uint64_t now = sim_clock();
                uint64_t next = now + PAUSE_NS;

                look_at_polled();
                if (engine.running && engine.running->end_ns <= now) {
                        struct sim_operation *operation = engine.running;

                        remove_running(operation);
                        sim_operation_finish(operation);
                        continue;
                }
                if (engine.running && (!engine.polled || engine.running->end_ns < next))
                        next = engine.running->end_ns;
                if (engine.running || engine.polled)
                        sleep_until(next + engine.origin_ns);
                else
                        pthread_cond_wait(&changed, &sim_mutex);
        }
        return NULL;
}

static void start_thread(void)
{
        pthread_t thread;

        if (pthread_create(&thread, NULL, keep_time, NULL))
                sim_abort("cannot start the clock's thread");
        pthread_detach(thread);
        engine.thread_started = true;
}

void sim_operation_submit(struct sim_operation *operation)
{
        engine.pending++;
        sim_oracle_claim(operation);
        if (!operation->missing) {
                make_ready(operation);
                start_ready();
        }
        if (engine.real_time && !engine.thread_started)
                start_thread();
        while (!engine.real_time && engine.pending > QUEUED_MAX &&
               sim_engine_step(UINT64_MAX) == SIM_MOVED)
                ;
        pthread_cond_broadcast(&changed);
}

void sim_wait_operation(struct sim_operation *operation)
{
        unsigned int pauses = 0;

        sim_operation_get(operation);
        while (!sim_operation_done(operation)) {
                enum sim_progress progress = SIM_STALLED;

                if (!engine.real_time)
                        progress = sim_engine_step(UINT64_MAX);
                /* A value that came at last may have been all that was missing, and took no time.
                 */
                if (progress == SIM_MOVED || sim_operation_done(operation))
                        continue;
                if (progress == SIM_IDLE && !engine.polled)
                        sim_abort("a wait for %s that nothing can end", operation->work.name);
                if (engine.polled && !engine.running && pauses++ == PATIENCE_PAUSES)
                        sim_abort("a wait for %s: the value %s waits for never came",
                                  operation->work.name, engine.polled->work.name);
                sim_engine_pause();
        }
        sim_operation_put(operation);
}

uint64_t sim_engine_number(void)
{
        return ++engine.numbers;
}

size_t sim_engine_pending(void)
{
        return engine.pending;
}

/* ---- settings ---- */

uint64_t sim_cost(size_t bytes)
{
        return COST_NS + bytes / BYTES_PER_NS;
}

void sim_poll_cost_set(uint64_t nanoseconds)
{
        engine.poll_ns = nanoseconds;
}

void sim_engine_start(void)
{
        const char *mode = getenv("SIM_TIME");
        pthread_condattr_t attributes;

        pthread_condattr_init(&attributes);
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        pthread_cond_init(&changed, &attributes);
        pthread_condattr_destroy(&attributes);
        engine.real_time = mode && !strcmp(mode, "threads");
        engine.origin_ns = monotonic_ns();
}

void sim_engine_child(void)
{
        pthread_mutex_init(&sim_mutex, NULL);
        engine.thread_started = false;
}
