/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Submit -- which streams have work?
 *
 * A mark is set after the stream was told, so whoever finds it may rely on that.
 * Nothing is locked: two threads that come with a new stream at the same time both
 * tell. Taking a mark away is right at any time, and so is losing one. Nobody may
 * believe one that was told before marks were forgotten: so it is noted where it is
 * being left, and whoever leaves it then looks whether they were; one of the two
 * sees the other.
 *
 * The other direction has a gap: a thread reads a mark, others forget it and find
 * that the stream has no work, and only then the thread submits. It says that it
 * is inside before it reads; a barrier makes every thread either have said so
 * for all to see, or read what is there afterwards.
 */

#define _GNU_SOURCE

#include "track/submit.h"

#include "base/barrier.h"
#include "base/thread.h"
#include "driver/driver.h"

/* Slots that are tried for a mark. */
#define REACH 8

/* Marks that are remembered by where they are. */
#define RECENT 8

/* In a slot, with the thread that is leaving a mark there: no key of a mark has this bit. They are
 * of objects, and for a legacy stream 1 more than that, or 1. */
#define LEAVING ((uintptr_t)2)

atomic_uintptr_t sp_submit_marks[SP_SUBMIT_MARKS];
bool (*sp_submit_tell)(CUstream handle);
atomic_uint sp_submit_telling;
_Atomic(uint64_t) sp_submit_left, sp_submit_seen;
static _Atomic(uint64_t) recent[RECENT]; /* a mark's number, and its slot */
_Atomic(CUcontext) sp_submit_context;
static atomic_bool is_parted; /* default streams have a mark in each context */

__thread struct sp_submitter *sp_submitter __attribute__((tls_model("initial-exec")));

/* Atomic: all. */
static _Atomic(struct sp_seat *) submitters;
static atomic_uint epoch = 1;
static atomic_bool is_blind; /* some thread is in no list */

/* threads */

static void end_submitter(void *ended)
{
        struct sp_submitter *self = ended;

        sp_submitter = NULL;
        atomic_store(&self->inside, 0);
        sp_seat_leave(&self->seat);
}

struct sp_submitter *sp_submitter_settle(void)
{
        /* Shared by all threads for which there is no memory: says nothing about any of them. */
        static struct sp_submitter unseen;
        bool made;
        struct sp_submitter *self = (struct sp_submitter *)sp_seat_take(
                &submitters, _Alignof(struct sp_submitter), sizeof(*self), &made);

        if (!self) {
                atomic_store(&is_blind, true);
                return &unseen;
        }
        self->told_epoch = 0;
        sp_submitter = self;
        /* May fail: then nobody else gets the record when the thread has ended. */
        (void)sp_thread_at_end(end_submitter, self);
        return self;
}

/* marks */

static atomic_uintptr_t *slot(uintptr_t key, unsigned int step)
{
        return &sp_submit_marks[(sp_submit_home(key) + step) % SP_SUBMIT_MARKS];
}

static bool is_marked(uintptr_t key)
{
        for (unsigned int i = 0; i < REACH; i++)
                if (atomic_load(slot(key, i)) == key)
                        return true;
        return false;
}

/* A few marks are found again without a look at all slots. One that is late is not put in the place
 * of a later one. */
static void note(const atomic_uintptr_t *mark)
{
        uint64_t number = atomic_fetch_add(&sp_submit_left, 1) + 1;
        uint64_t noted = number * SP_SUBMIT_MARKS + (uint64_t)(mark - sp_submit_marks);
        _Atomic(uint64_t) *place = &recent[number % RECENT];
        uint64_t before = atomic_load(place);

        while (before < noted && !atomic_compare_exchange_weak(place, &before, noted))
                ;
}

/* Return: where it is to be left; NULL: it is there. */
static atomic_uintptr_t *find_slot(uintptr_t key, uintptr_t leaving)
{
        for (unsigned int i = 0; i < REACH; i++) {
                uintptr_t found = 0;

                if (atomic_compare_exchange_strong(slot(key, i), &found, leaving))
                        return slot(key, i);
                if (found == key)
                        return NULL;
        }
        atomic_store(slot(key, 0), leaving);
        return slot(key, 0);
}

/* If marks were forgotten while it was told, it is to be told again. */
static void set_mark(uintptr_t key, unsigned int since)
{
        uintptr_t leaving = (uintptr_t)sp_submitter | LEAVING;
        atomic_uintptr_t *mark;

        /* A thread without a name leaves none. */
        if (!sp_submitter)
                return;
        mark = find_slot(key, leaving);
        if (!mark)
                return;
        note(mark);
        atomic_compare_exchange_strong(mark, &leaving, atomic_load(&epoch) == since ? key : 0);
}

static void drop_mark(uintptr_t key)
{
        for (unsigned int i = 0; i < REACH; i++) {
                uintptr_t found = key;

                atomic_compare_exchange_strong(slot(key, i), &found, 0);
        }
}

/* telling */

/* A launch is known by its mark; a copy only in the context that is the only one. */
static bool is_elsewhere(enum sp_submit_class class)
{
        CUcontext only = atomic_load(&sp_submit_context);
        CUcontext current;

        return only && class == SP_SUBMIT_COPY &&
               (!sp_driver.cuCtxGetCurrent || sp_driver.cuCtxGetCurrent(&current) != CUDA_SUCCESS ||
                current != only);
}

/*
 * What the mark of a stream says. The sum of a default stream and a context is no other one's
 * handle, as contexts are objects of the driver, and so aligned. 0: it cannot be told which stream
 * is meant.
 */
static uintptr_t key_of(CUstream handle)
{
        CUcontext current;

        if ((handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD) ||
            !atomic_load(&is_parted))
                return (uintptr_t)handle;
        if (sp_driver.cuCtxGetCurrent(&current) != CUDA_SUCCESS || !current)
                return 0;
        return (uintptr_t)handle + (uintptr_t)current;
}

static bool is_known(CUstream handle, uintptr_t key)
{
        const struct sp_submitter *self = sp_submitter;

        if (handle != CU_STREAM_PER_THREAD)
                return key && is_marked(key);
        return key && self && self->told_key == key && self->told_epoch == atomic_load(&epoch);
}

static void make_known(CUstream handle, uintptr_t key, unsigned int since)
{
        struct sp_submitter *self = sp_submitter;

        if (handle != CU_STREAM_PER_THREAD) {
                set_mark(key, since);
                return;
        }
        if (self) {
                self->told_key = key;
                self->told_epoch = since;
        }
        atomic_fetch_add(&sp_submit_left, 1);
}

void sp_submit_slow(CUstream handle, enum sp_submit_class class)
{
        unsigned int since;
        uintptr_t key;

        if (!is_elsewhere(class) && is_known(handle, key_of(handle)))
                return;
        atomic_fetch_add(&sp_submit_telling, 1);
        since = atomic_load(&epoch);
        /* After that: who parts contexts begins an epoch later. */
        key = key_of(handle);
        if ((!sp_submit_tell || sp_submit_tell(handle)) && key)
                make_known(handle, key, since);
        atomic_fetch_sub(&sp_submit_telling, 1);
}

/* forgetting */

static void begin_epoch(void)
{
        unsigned int next = atomic_fetch_add(&epoch, 1) + 1;

        /* 0 is no epoch. */
        if (next == 0)
                atomic_fetch_add(&epoch, 1);
}

/* Who finds a slot without a mark sees the epoch, too. */
static void take_all(void)
{
        for (unsigned int i = 0; i < SP_SUBMIT_MARKS; i++)
                atomic_store_explicit(&sp_submit_marks[i], 0, memory_order_release);
}

void sp_submit_forget(void)
{
        begin_epoch();
        take_all();
}

/* One that is not noted yet is found to be of an old epoch by the one who leaves it. */
void sp_submit_again_slow(void)
{
        uint64_t seen = atomic_load(&sp_submit_seen), left;

        begin_epoch();
        left = atomic_load(&sp_submit_left);
        atomic_store(&sp_submit_seen, left);
        if (left - seen > RECENT) {
                take_all();
                return;
        }
        while (seen++ != left) {
                uint64_t noted = atomic_load(&recent[seen % RECENT]);

                if (noted / SP_SUBMIT_MARKS > seen)
                        take_all();
                else if (noted / SP_SUBMIT_MARKS == seen)
                        atomic_store(&sp_submit_marks[noted % SP_SUBMIT_MARKS], 0);
        }
}

void sp_submit_forget_stream(CUstream handle)
{
        if (handle && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD)
                drop_mark((uintptr_t)handle);
}

void sp_submit_watch(CUcontext only)
{
        atomic_store(&sp_submit_context, only);
}

void sp_submit_part(void)
{
        sp_submit_watch(NULL);
        if (atomic_exchange(&is_parted, true))
                return;
        /* Those that a default stream has are of no context. */
        sp_submit_forget();
}

bool sp_submit_quiesce(void)
{
        sp_submit_forget();
        if (!sp_barrier() || atomic_load(&is_blind))
                return false;
        for (struct sp_seat *each = atomic_load(&submitters); each; each = each->next)
                if (atomic_load_explicit(&((struct sp_submitter *)each)->inside,
                                         memory_order_acquire))
                        return false;
        return true;
}
