/* SPDX-License-Identifier: Apache-2.0 */

/* Unwind -- which calls of C and C++ is this thread in? */

#define _GNU_SOURCE

#include "track/unwind.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/parse.h"
#include "base/thread.h"
#include "driver/lookup.h"
#include "track/bounds.h"
#include "track/python.h"
#include "track/runtime.h"

#define OURS_MAX 16 /* frames of ours between the program and the unwinder */
#define OUT_MAX  16 /* frames of the runtime that are followed */
#define CHECKS   (2 * (SP_FRAMES_MAX + 1))
#define REACH    64 /* words that are searched for a frame pointer */
#define WAYS     4  /* out of the runtime, from one caller */

/* The number that the ABI gives to the register in which functions keep a frame pointer. */
#if defined(__x86_64__)
#define FRAME_POINTER 6
#else
#define FRAME_POINTER 29
#endif

/* Of the Itanium C++ ABI, which gives them these names on every machine. */
struct _Unwind_Context;
typedef int (*step_function)(struct _Unwind_Context *context, void *argument);
static int (*unwind_backtrace)(step_function step, void *argument);
static uintptr_t (*unwind_ip)(struct _Unwind_Context *context);
static uintptr_t (*unwind_cfa)(struct _Unwind_Context *context);
static uintptr_t (*unwind_register)(struct _Unwind_Context *context, int number);

enum { GO_ON = 0, END = 5 }; /* _URC_NO_REASON, _URC_END_OF_STACK */

/* A walk, and the words on the stack by which it is known again. */
struct walk {
        const void *caller;
        const void *here;
        unsigned int count;
        unsigned int checks, distances; /* the first of the words, and the last */
        uint32_t reach;                 /* the highest of the slots */
        uint32_t out;                   /* of a way out: the slot of its end; 0 if it has none */
        const void *frame[SP_FRAMES_MAX];
        uint32_t slot[CHECKS];  /* bytes above @here */
        uintptr_t word[CHECKS]; /* what lies there, or how far it points above @here */
};

/* Of one thread. */
struct memory {
        struct sp_seat seat;
        struct sp_bounds stack; /* if they are not known nothing is remembered */
        unsigned int turn;      /* which way out is forgotten next */
        struct walk walk[];
};

/* That a thread remembers; written by sp_unwind_start(). */
static unsigned int walks;

static __thread struct memory *memory __attribute__((tls_model("initial-exec")));

/* What is allocated after that, by destructors of pthread_key_create(), finds nobody to tell of an
 * end, so nothing is remembered. */
static __thread bool is_at_end __attribute__((tls_model("initial-exec")));

/* Atomic. */
static _Atomic(struct sp_seat *) memories;

static bool look_up(void *library, const char *name, void *function)
{
        void *found = sp_dlsym(library, name);

        memcpy(function, &found, sizeof(found));
        return found;
}

static bool find_unwinder(void *library)
{
        return look_up(library, "_Unwind_GetIP", &unwind_ip) &&
               look_up(library, "_Unwind_GetCFA", &unwind_cfa) &&
               look_up(library, "_Unwind_GetGR", &unwind_register) &&
               look_up(library, "_Unwind_Backtrace", &unwind_backtrace);
}

bool sp_unwind_start(unsigned int remembered)
{
        void *library;

        walks = remembered;
        if (find_unwinder(RTLD_DEFAULT))
                return true;
        library = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
        return library && find_unwinder(library);
}

/* what a thread remembers */

static void end_memory(void *ended)
{
        struct memory *own = ended;

        memory = NULL;
        is_at_end = true;
        sp_seat_leave(&own->seat);
}

static struct memory *settle(void)
{
        struct memory *own;
        int kept = errno;
        bool made;

        if (is_at_end)
                return NULL;
        own = (struct memory *)sp_seat_take(&memories, _Alignof(struct memory),
                                            sizeof(*own) + walks * sizeof(*own->walk), &made);
        if (!own)
                return NULL;
        own->stack = sp_bounds_find();
        errno = kept;
        memset(own->walk, 0, walks * sizeof(*own->walk));
        if (!sp_thread_at_end(end_memory, own)) {
                sp_seat_leave(&own->seat);
                return NULL;
        }
        memory = own;
        return own;
}

static bool has(const struct memory *own, const void *here)
{
        return (uintptr_t)here >= own->stack.bottom && (uintptr_t)here < own->stack.top;
}

static struct walk *place_for(struct memory *own, const void *caller, const void *here)
{
        uintptr_t mixed = (uintptr_t)caller ^ (uintptr_t)here >> 4;

        return &own->walk[(mixed ^ mixed >> 6) % walks];
}

/* Of frames that are not ours: between what a sanitizer lets their functions read. */
static __attribute__((no_sanitize("address"))) uintptr_t word_at(uintptr_t at)
{
        return *(const uintptr_t *)at; // NOLINT: an address on this thread's stack
}

/* Ways out have their places by the caller alone. */
static struct walk *ways_for(struct memory *own, const void *caller)
{
        return &own->walk[((uintptr_t)caller >> 2 ^ (uintptr_t)caller >> 6) * WAYS % walks];
}

/* Are all words still where they were? */
static bool is_again(const struct walk *walk, const void *caller, const void *here)
{
        const uintptr_t base = (uintptr_t)here;

        if (walk->caller != caller)
                return false;
        for (unsigned int i = 0; i < walk->checks; i++)
                if (word_at(base + walk->slot[i]) != walk->word[i])
                        return false;
        for (unsigned int i = CHECKS - walk->distances; i < CHECKS; i++)
                if (word_at(base + walk->slot[i]) - base != walk->word[i])
                        return false;
        return true;
}

/* walking */

struct progress {
        const void *caller;
        const void *here;
        const void **frame;
        unsigned int most;
        unsigned int ours;  /* frames in front of @caller */
        unsigned int count; /* frames behind it */
        bool is_found;
        struct sp_python_code python; /* where to stop */
        bool is_way_out;              /* or as soon as the runtime is left */
        struct walk *walk;            /* NULL once something is not where it can be looked at */
        uintptr_t below;              /* where the last frame begins */
        uintptr_t pointer;            /* its frame pointer */
};

static bool is_on_stack(const struct progress *progress, uintptr_t at)
{
        return at >= (uintptr_t)progress->here && at <= memory->stack.top - sizeof(void *) &&
               at % sizeof(void *) == 0;
}

static void remember(struct progress *progress, uintptr_t at, uintptr_t word, bool is_distance)
{
        struct walk *walk = progress->walk;
        uintptr_t offset = at - (uintptr_t)progress->here;
        unsigned int i;

        if (!walk)
                return;
        if (!is_on_stack(progress, at) || offset > UINT32_MAX ||
            walk->checks + walk->distances == CHECKS || word_at(at) != word) {
                progress->walk = NULL;
                return;
        }
        i = is_distance ? CHECKS - ++walk->distances : walk->checks++;
        walk->reach = offset > walk->reach ? (uint32_t)offset : walk->reach;
        walk->slot[i] = (uint32_t)offset;
        walk->word[i] = word - (is_distance ? (uintptr_t)progress->here : 0);
}

/* Where the function that was called from a frame has kept that frame's pointer: near its return
 * address. 0 if it is not found. */
static uintptr_t find_pointer(const struct progress *progress, uintptr_t below, uintptr_t pointer)
{
        uintptr_t at = below - 2 * sizeof(void *);

        if (word_at((uintptr_t)progress->here) == pointer)
                return (uintptr_t)progress->here;
        for (unsigned int i = 0; i < REACH && at >= progress->below; i++, at -= sizeof(void *)) {
                if (is_on_stack(progress, at) && word_at(at) == pointer)
                        return at;
        }
        return 0;
}

/*
 * A function whose frame is not always of one size, because it aligns it or takes memory in it
 * (alloca()), finds its end by the frame pointer, or by the word below the one to
 * which that points. Then the same word as last time, at the same place, may be left
 * over from a frame of another size, and its pointer has to be the same, too.
 */
static void remember_end(struct progress *progress, uintptr_t below)
{
        uintptr_t inner = progress->pointer - sizeof(void *);

        if (progress->walk && is_on_stack(progress, inner) && word_at(inner) == below)
                remember(progress, inner, below, true);
}

/* @address returns into a frame that begins above the place where it lies. */
static void remember_frame(struct progress *progress, struct _Unwind_Context *context,
                           const void *address)
{
        uintptr_t below = unwind_cfa(context);
        uintptr_t pointer = unwind_register(context, FRAME_POINTER);

        remember(progress, below - sizeof(address), (uintptr_t)address, false);
        remember_end(progress, below);
        if (progress->walk && pointer != progress->pointer && pointer >= below &&
            pointer < memory->stack.top)
                remember(progress, find_pointer(progress, below, pointer), pointer, true);
        progress->pointer = pointer;
        progress->below = below;
}

/* The next @address is where the runtime returns to, which is not always the same. */
static void remember_out(struct progress *progress, struct _Unwind_Context *context,
                         const void *address)
{
        uintptr_t below = unwind_cfa(context), at = below - sizeof(address);

        remember(progress, at, (uintptr_t)address, false);
        if (!progress->walk)
                return;
        progress->walk->checks--;
        progress->walk->out = (uint32_t)(at - (uintptr_t)progress->here);
        remember_end(progress, below);
}

static int step(struct _Unwind_Context *context, void *argument)
{
        struct progress *progress = argument;
        const void *address = (const void *)unwind_ip(context); // NOLINT

        if (!address)
                return END;
        if (!progress->is_found) {
                progress->is_found = address == progress->caller;
                if (progress->is_found)
                        remember_frame(progress, context, address);
                return progress->is_found || progress->ours++ < OURS_MAX ? GO_ON : END;
        }
        if (progress->count == progress->most ||
            (uintptr_t)address - progress->python.begin < progress->python.size)
                return END;
        progress->frame[progress->count++] = address;
        if (!progress->is_way_out || sp_runtime_passes(address)) {
                remember_frame(progress, context, address);
                return GO_ON;
        }
        remember_out(progress, context, address);
        return END;
}

/* Goes up, and keeps in @walk what it is to be known by, unless that is NULL. */
static void go(struct progress *progress, struct walk *walk)
{
        if (walk) {
                walk->caller = NULL;
                walk->checks = walk->distances = 0;
                walk->reach = walk->out = 0;
        }
        progress->walk = walk;
        progress->below = (uintptr_t)progress->here;
        progress->python = sp_python_code();
        unwind_backtrace(step, progress);
        if (progress->walk && progress->is_found)
                walk->caller = progress->caller;
}

/* Of its own, so that who finds what is remembered has nothing to prepare. */
static __attribute__((noinline)) unsigned int walk_up(const void *caller, const void *here,
                                                      const void **frame, unsigned int most,
                                                      struct walk *walk)
{
        struct progress progress = {.caller = caller, .here = here, .frame = frame, .most = most};

        go(&progress, walk);
        if (progress.walk) {
                walk->here = here;
                walk->count = progress.count;
                memcpy(walk->frame, frame, progress.count * sizeof(*frame));
        }
        return progress.count;
}

unsigned int sp_unwind(const void *caller, const void *here, const void **frame, unsigned int most)
{
        struct memory *own = memory ? memory : settle();
        struct walk *walk;

        if (!own || !own->stack.top)
                return walk_up(caller, here, frame, most, NULL);
        if (!has(own, here))
                return 0;
        walk = place_for(own, caller, here);
        if (walk->here != here || !is_again(walk, caller, here))
                return walk_up(caller, here, frame, most, walk);
        memcpy(frame, walk->frame, walk->count * sizeof(*frame));
        return walk->count;
}

/* What is remembered of a way out is true of any depth, and of whoever called the runtime. */
static const void *find_out(struct memory *own, const void *caller, const void *here)
{
        struct walk *walk = ways_for(own, caller);
        size_t left = own->stack.top - (uintptr_t)here;

        for (unsigned int i = 0; i < WAYS; i++, walk++) {
                const void *end;

                if (!walk->out || walk->reach >= left || !is_again(walk, caller, here))
                        continue;
                end = (const void *)word_at((uintptr_t)here + walk->out); // NOLINT
                if (!sp_runtime_passes(end))
                        return end;
        }
        return NULL;
}

/* Again, if who is found there turns out to be passed over, too. */
static __attribute__((noinline)) const void *walk_out(const void *caller, const void *here,
                                                      struct walk *walk)
{
        const void *frame[OUT_MAX], *out;

        do {
                struct progress progress = {.caller = caller,
                                            .here = here,
                                            .frame = frame,
                                            .most = OUT_MAX,
                                            .is_way_out = true};

                go(&progress, walk);
                if (!progress.count)
                        return caller;
                out = frame[progress.count - 1];
                if (sp_runtime_passes(out))
                        return caller;
        } while (sp_runtime_learn(out));
        return out;
}

const void *sp_unwind_out(const void *caller, const void *here)
{
        struct memory *own = memory ? memory : settle();
        const void *out;

        if (!own || !own->stack.top)
                return walk_out(caller, here, NULL);
        if (!has(own, here))
                return caller;
        out = find_out(own, caller, here);
        return out ? out : walk_out(caller, here, ways_for(own, caller) + own->turn++ % WAYS);
}
