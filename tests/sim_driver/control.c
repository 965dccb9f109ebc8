/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Control -- what a test may ask of, and do to, the simulated driver
 *
 * Time, and the list of exports. What else control.h offers lives beside what it
 * is about. In real time these calls wait for the clock instead of moving it.
 */

#include "control.h"
#include "exports.h"
#include "operation.h"

#include <string.h>

bool sim_is_simulated(const char *symbol)
{
        for (int i = 0; i < sim_export_count; i++)
                if (!strcmp(sim_exports[i].symbol, symbol))
                        return sim_exports[i].address != sim_exports[i].stub;
        return false;
}

uint64_t sim_now_ns(void)
{
        uint64_t now;

        pthread_mutex_lock(&sim_mutex);
        now = sim_clock();
        pthread_mutex_unlock(&sim_mutex);
        return now;
}

/* Virtual: one step, after the host function that runs. Real: until the count went down. */
static bool step(uint64_t until)
{
        size_t before = sim_engine_pending();
        enum sim_progress progress;

        if (!sim_time_is_virtual()) {
                while (sim_engine_pending() && sim_engine_pending() >= before &&
                       sim_clock() < until)
                        sim_engine_pause();
                return before;
        }
        while ((progress = sim_engine_step(until)) == SIM_STALLED)
                sim_engine_pause();
        return progress == SIM_MOVED;
}

bool sim_step(void)
{
        bool moved;

        pthread_mutex_lock(&sim_mutex);
        moved = step(UINT64_MAX);
        pthread_mutex_unlock(&sim_mutex);
        return moved;
}

void sim_advance(uint64_t nanoseconds)
{
        uint64_t until;

        pthread_mutex_lock(&sim_mutex);
        until = sim_clock() + nanoseconds;
        if (sim_time_is_virtual())
                while (step(until))
                        ;
        while (!sim_time_is_virtual() && sim_clock() < until)
                sim_engine_pause();
        sim_engine_move(until);
        pthread_mutex_unlock(&sim_mutex);
}

void sim_run_all(void)
{
        pthread_mutex_lock(&sim_mutex);
        while (step(UINT64_MAX))
                ;
        pthread_mutex_unlock(&sim_mutex);
}

size_t sim_pending(void)
{
        size_t count;

        pthread_mutex_lock(&sim_mutex);
        count = sim_engine_pending();
        pthread_mutex_unlock(&sim_mutex);
        return count;
}

void sim_poll_cost(uint64_t nanoseconds)
{
        pthread_mutex_lock(&sim_mutex);
        sim_poll_cost_set(nanoseconds);
        pthread_mutex_unlock(&sim_mutex);
}

size_t sim_memory_high(int device)
{
        size_t high;

        pthread_mutex_lock(&sim_mutex);
        high = sim_device(device)->high_bytes;
        pthread_mutex_unlock(&sim_mutex);
        return high;
}

void sim_memory_high_reset(int device)
{
        pthread_mutex_lock(&sim_mutex);
        sim_device(device)->high_bytes = sim_device(device)->used_bytes;
        pthread_mutex_unlock(&sim_mutex);
}
