/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device -- work that is done late, and the memory that it touches
 */

#include "device.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define UNITS        (DEVICE_RANGES * DEVICE_RANGE / DEVICE_UNIT)
#define STREAMS      DEVICE_STREAMS
#define STAMPS       8192
#define FAILURES_MAX 20

_Atomic(unsigned int) device_failures;
_Atomic(uint64_t) device_early;

static _Atomic(uint64_t) submitted[STREAMS], done[STREAMS];
static _Atomic(uint64_t) behind[STREAMS][STREAMS]; /* the first waits for so much of the second */
static _Atomic(uint64_t) stamps[STAMPS][STREAMS];
static _Atomic(spm_stamp) stamp_names[STAMPS];
static _Atomic(uint32_t) owners[UNITS];
static _Atomic(uint64_t) lives[UNITS]; /* the generation of the latest */
static _Atomic(uint64_t) touched[UNITS][STREAMS];

void device_fail(const char *format, ...)
{
        va_list list;

        va_start(list, format);
        fputs("complete: ", stderr);
        vfprintf(stderr, format, list);
        fputc('\n', stderr);
        va_end(list);
        if (atomic_fetch_add(&device_failures, 1) == FAILURES_MAX)
                abort();
}

/* work */

uint64_t device_submit(unsigned int stream)
{
        return atomic_fetch_add(&submitted[stream], 1) + 1;
}

struct device_view device_look(void)
{
        struct device_view view;
        unsigned int i;

        for (i = 0; i < STREAMS; i++)
                view.work[i] = atomic_load(&submitted[i]);
        return view;
}

struct device_view device_look_at(unsigned int stream)
{
        struct device_view view;
        unsigned int i;

        for (i = 0; i < STREAMS; i++)
                view.work[i] = atomic_load(i == stream ? &submitted[i] : &behind[stream][i]);
        return view;
}

static void raise_to(_Atomic(uint64_t) *figure, uint64_t value)
{
        uint64_t now = atomic_load(figure);

        while (now < value && !atomic_compare_exchange_weak(figure, &now, value))
                ;
}

void device_finish(const struct device_view *view)
{
        unsigned int i;

        for (i = 0; i < STREAMS; i++)
                raise_to(&done[i], view->work[i]);
}

bool device_is_done(const struct device_view *view)
{
        unsigned int i;

        for (i = 0; i < STREAMS; i++)
                if (atomic_load(&done[i]) < view->work[i])
                        return false;
        return true;
}

void device_wait(unsigned int stream, const struct device_view *view)
{
        unsigned int i;

        for (i = 0; i < STREAMS; i++)
                raise_to(&behind[stream][i], view->work[i]);
}

/* stamps */

void device_record(spm_stamp stamp, const struct device_view *view)
{
        unsigned int i;

        for (i = 0; i < STREAMS; i++)
                atomic_store(&stamps[stamp % STAMPS][i], view->work[i]);
        atomic_store(&stamp_names[stamp % STAMPS], stamp);
}

bool device_find(spm_stamp stamp, struct device_view *view)
{
        unsigned int i;

        for (i = 0; i < STREAMS; i++)
                view->work[i] = atomic_load(&stamps[stamp % STAMPS][i]);
        return stamp && atomic_load(&stamp_names[stamp % STAMPS]) == stamp;
}

/* memory */

static size_t first_unit(const struct spm_allocation *block)
{
        return (block->address - DEVICE_BASE) / DEVICE_UNIT;
}

static size_t end_unit(const struct spm_allocation *block)
{
        return first_unit(block) + block->reserved / DEVICE_UNIT;
}

void device_hand(const struct spm_allocation *block, uint32_t from, uint32_t to)
{
        size_t at;

        for (at = first_unit(block); at < end_unit(block); at++) {
                uint32_t was = atomic_exchange(&owners[at], to);

                if (was != from)
                        device_fail("%" PRIx64 " is %u's, not %u's", block->address, was, from);
                if (!from && atomic_exchange(&lives[at], block->generation) >= block->generation)
                        device_fail("%" PRIx64 " has had a later generation", block->address);
        }
}

void device_use(const struct spm_allocation *block, unsigned int stream)
{
        unsigned int other;
        size_t at;

        for (at = first_unit(block); at < end_unit(block); at++)
                for (other = 0; other < STREAMS; other++) {
                        uint64_t last = atomic_load(&touched[at][other]);

                        if (last <= atomic_load(&done[other]))
                                continue;
                        atomic_fetch_add(&device_early, 1);
                        if (other != stream && last > atomic_load(&behind[stream][other]))
                                device_fail("%" PRIx64 ": stream %u beside earlier work of %u",
                                            block->address, stream, other);
                }
}

void device_leave(const struct spm_allocation *block, const struct device_view *uses)
{
        unsigned int i;
        size_t at;

        for (at = first_unit(block); at < end_unit(block); at++)
                for (i = 0; i < STREAMS; i++)
                        raise_to(&touched[at][i], uses->work[i]);
}
