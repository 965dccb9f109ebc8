/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks -- all of them, in the one order they may be taken
 *
 * A futex rather than a pthread mutex for two reasons. A forked child must be
 * able to free locks whose holders do not exist in it, wherever those locks
 * lie; and the timed and "try" functions of pthreads are in a library that old
 * C libraries load only into programs that asked for it.
 *
 * The word of a lock is epoch * 4 + state. The epoch is that of the process and
 * grows in a forked child; a word of an earlier epoch counts as free. So one
 * addition frees every lock there is, and no list of locks exists.
 *
 *   FREE --take--> HELD --somebody waits--> WANTED --drop, wake one--> FREE
 *
 * Whoever had to wait takes the lock as WANTED, because it cannot know whether
 * others wait still; the price is one wake-up too many at times.
 */

#include "base/lock.h"

#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FREE, HELD, WANTED, STATES = 4 };

/* Atomic. Changes only in a child, while it has one thread. */
static atomic_uint epoch;

/* Per thread by nature: what this thread holds. */
static __thread uint8_t held __attribute__((tls_model("initial-exec")));
__thread unsigned int sp_lock_waits __attribute__((tls_model("initial-exec")));

static unsigned int now_word(unsigned int state)
{
        return atomic_load_explicit(&epoch, memory_order_relaxed) * STATES + state;
}

static bool word_is_free(unsigned int word)
{
        return word / STATES != now_word(FREE) / STATES || word % STATES == FREE;
}

static bool try_as(struct sp_lock *lock, unsigned int state)
{
        unsigned int word = atomic_load_explicit(&lock->word, memory_order_relaxed);

        while (word_is_free(word)) {
                if (atomic_compare_exchange_weak_explicit(&lock->word, &word, now_word(state),
                                                          memory_order_acquire,
                                                          memory_order_relaxed))
                        return true;
        }
        return false;
}

/* Waits until the lock may be free; @patience as for FUTEX_WAIT, NULL for ever. */
static void wait_for(struct sp_lock *lock, const struct timespec *patience)
{
        unsigned int word = now_word(HELD);

        if (atomic_compare_exchange_strong_explicit(&lock->word, &word, now_word(WANTED),
                                                    memory_order_relaxed, memory_order_relaxed) ||
            word == now_word(WANTED)) {
                int saved = errno;

                syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, now_word(WANTED), patience,
                        NULL, 0);
                errno = saved;
        }
}

static void note_taken(struct sp_lock *lock)
{
        lock->outer = held;
        held = lock->rank;
}

static int64_t now_ms(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void sp_lock_init(struct sp_lock *lock, enum sp_lock_rank rank)
{
        atomic_init(&lock->word, 0);
        lock->rank = (uint8_t)rank;
        lock->outer = SP_RANK_NONE;
}

/* Of an earlier epoch, or of somebody else's. */
static __attribute__((noinline, cold)) void take_slowly(struct sp_lock *lock)
{
        if (try_as(lock, HELD))
                return;
        sp_lock_waits++;
        while (!try_as(lock, WANTED))
                wait_for(lock, NULL);
}

void sp_lock_take(struct sp_lock *lock)
{
        unsigned int word = now_word(FREE);

        assert(lock->rank > held);
        if (!atomic_compare_exchange_strong_explicit(&lock->word, &word, word + HELD,
                                                     memory_order_acquire, memory_order_relaxed))
                take_slowly(lock);
        note_taken(lock);
}

bool sp_lock_take_bounded(struct sp_lock *lock, unsigned int milliseconds)
{
        int64_t end;

        assert(lock->rank > held);
        if (!try_as(lock, HELD)) {
                end = now_ms() + milliseconds;
                while (!try_as(lock, WANTED)) {
                        int64_t left = end - now_ms();
                        struct timespec patience = {.tv_sec = left / 1000,
                                                    .tv_nsec = left % 1000 * 1000000};

                        if (left <= 0)
                                return false;
                        wait_for(lock, &patience);
                }
        }
        note_taken(lock);
        return true;
}

void sp_lock_drop(struct sp_lock *lock)
{
        assert(held == lock->rank);
        held = lock->outer;
        if (atomic_exchange_explicit(&lock->word, now_word(FREE), memory_order_release) ==
            now_word(WANTED)) {
                int saved = errno;

                syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
                errno = saved;
        }
}

enum sp_lock_rank sp_lock_held(void)
{
        return (enum sp_lock_rank)held;
}

void sp_lock_all_reset(void)
{
        atomic_fetch_add_explicit(&epoch, 1, memory_order_relaxed);
        held = SP_RANK_NONE;
}
