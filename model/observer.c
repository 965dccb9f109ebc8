/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Observer -- one record of every action
 *
 * The ring has no lock. A writer takes the next number, and its row with it by
 * an odd version; one that finds the row taken, because it was overtaken by a
 * whole round, gives its record up. A reader copies a row and looks whether the
 * version is still what it was.
 */

#include <string.h>
#include <streampool/model.h>

#include "text.h"

/* observers */

const char *spm_observed_name(enum spm_observed action)
{
        static const char *const names[] = {
                [SPM_OBSERVED_ALLOC] = "alloc",   [SPM_OBSERVED_FREE] = "free",
                [SPM_OBSERVED_USE] = "use",       [SPM_OBSERVED_REAP] = "reap",
                [SPM_OBSERVED_BUDGET] = "budget", [SPM_OBSERVED_OTHER] = "other",
        };

        return (unsigned int)action <= SPM_OBSERVED_OTHER ? names[action] : "unknown action";
}

static void drop(struct spm_observer *observer)
{
        __atomic_fetch_add(&observer->dropped, 1, __ATOMIC_RELAXED);
}

void spm_observe(struct spm_observer *observer, struct spm_observation *row)
{
        uint64_t *counter;

        if (!observer)
                return;
        counter = observer->counter ? observer->counter : &observer->own_counter;
        row->order = __atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
        row->message[SPM_OBSERVATION_MESSAGE - 1] = '\0';
        if (observer->write && !observer->write(row, observer->user))
                drop(observer);
}

void spm_observer_flush(struct spm_observer *observer)
{
        if (observer && observer->flush && !observer->flush(observer->user))
                drop(observer);
}

uint64_t spm_observer_dropped(const struct spm_observer *observer)
{
        return __atomic_load_n(&observer->dropped, __ATOMIC_RELAXED);
}

/* text */

/* In quotes; line ends become blanks, so that a record is a line. */
static void put_quoted(struct spm_text *text, const char *message)
{
        spm_text_letter(text, '"');
        for (; *message; message++) {
                char letter = *message;

                if (letter == '"')
                        spm_text_letter(text, '"');
                if (letter == '\n' || letter == '\r')
                        letter = ' ';
                spm_text_letter(text, letter);
        }
        spm_text_letter(text, '"');
}

static void put_number(struct spm_text *text, uint64_t number)
{
        spm_text_number(text, number);
        spm_text_letter(text, ',');
}

static void put_name(struct spm_text *text, const char *name)
{
        spm_text_add(text, name);
        spm_text_letter(text, ',');
}

const char *spm_observation_text(const struct spm_observation *row, char *buffer, size_t size)
{
        struct spm_text text;

        spm_text_start(&text, buffer, size);
        put_number(&text, row->order);
        put_number(&text, row->wall_ns);
        put_number(&text, row->thread);
        put_name(&text, spm_observed_name(row->action));
        put_name(&text, spm_status_name(row->result));
        if (row->device < 0)
                put_name(&text, "-1");
        else
                put_number(&text, (uint64_t)row->device);
        put_number(&text, row->stream);
        put_number(&text, row->address);
        put_number(&text, row->bytes);
        put_number(&text, row->generation);
        put_number(&text, row->tag);
        put_quoted(&text, row->message);
        return buffer;
}

/* the ring */

#define WORDS (sizeof(struct spm_observation) / sizeof(uint64_t))

_Static_assert(sizeof(struct spm_observation) % sizeof(uint64_t) == 0, "a row is whole words");

/* Word by word, since another thread may be reading them: whoever sees one of these words sees the
 * version that says so. */
static void copy_in(struct spm_ring_row *at, const struct spm_observation *row)
{
        uint64_t words[WORDS];
        size_t i;

        memcpy(words, row, sizeof(words));
        for (i = 0; i < WORDS; i++)
                __atomic_store_n(&at->words[i], words[i], __ATOMIC_RELEASE);
}

static void copy_out(const struct spm_ring_row *at, struct spm_observation *row)
{
        uint64_t words[WORDS];
        size_t i;

        for (i = 0; i < WORDS; i++)
                words[i] = __atomic_load_n(&at->words[i], __ATOMIC_ACQUIRE);
        memcpy(row, words, sizeof(words));
}

/* The version of a row that holds record @number; one less while it is written. */
static uint64_t version_of(uint64_t number)
{
        return 2 * number + 2;
}

static bool write_row(const struct spm_observation *row, void *user)
{
        struct spm_ring *ring = user;
        uint64_t number = __atomic_fetch_add(&ring->written, 1, __ATOMIC_RELAXED);
        struct spm_ring_row *at = &ring->rows[number % ring->room];
        uint64_t version = __atomic_load_n(&at->version, __ATOMIC_RELAXED);

        if (version % 2 || version > version_of(number) ||
            !__atomic_compare_exchange_n(&at->version, &version, version_of(number) - 1, false,
                                         __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                return false;
        copy_in(at, row);
        __atomic_store_n(&at->version, version_of(number), __ATOMIC_RELEASE);
        return true;
}

struct spm_observer spm_ring_observer(struct spm_ring *ring, struct spm_ring_row *rows,
                                      uint64_t room)
{
        uint64_t i;

        for (i = 0; i < room; i++)
                rows[i].version = 0;
        *ring = (struct spm_ring){.rows = rows, .room = room};
        return (struct spm_observer){.write = write_row, .user = ring};
}

/* Return: false if the row is not, or no more, that record. */
static bool read_row(const struct spm_ring *ring, uint64_t number, struct spm_observation *row)
{
        const struct spm_ring_row *at = &ring->rows[number % ring->room];

        if (__atomic_load_n(&at->version, __ATOMIC_ACQUIRE) != version_of(number))
                return false;
        copy_out(at, row);
        return __atomic_load_n(&at->version, __ATOMIC_RELAXED) == version_of(number);
}

void spm_ring_each(const struct spm_ring *ring,
                   bool (*visit)(const struct spm_observation *row, void *user), void *user)
{
        uint64_t end = __atomic_load_n(&ring->written, __ATOMIC_RELAXED);
        uint64_t number = end > ring->room ? end - ring->room : 0;
        struct spm_observation row;

        for (; number < end; number++)
                if (read_row(ring, number, &row) && !visit(&row, user))
                        return;
}
