/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stack -- the calls that led to a place in the program's code
 *
 * Stacks, their frames and their words lie in one stretch of memory that is
 * taken at the start and only ever filled, so that whether a place is a stack is
 * a comparison. Who looks for a stack takes no lock: an entry of the table is written
 * once, when all behind it is there. Who adds one takes ours.
 *
 * Words of Python are copied when a stack is new: later the code may be gone, and
 * its address another function's. The address alone therefore does not say
 * that two frames are the same (struct sp_python_frame).
 */

#define _GNU_SOURCE

#include "track/stack.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "base/lock.h"
#include "base/log.h"
#include "report/counters.h"
#include "track/ranges.h"
#include "track/runtime.h"
#include "track/unwind.h"

#define ROOM     ((size_t)64 << 20)
#define STACKS   (1 << 16) /* places in the table; a power of two */
#define TEXTS    (1 << 12)
#define LINES    (1 << 14)
#define REACH    64 /* places that are tried */
#define WALKS    64
#define TEXT_MAX 1024

_Atomic(uintptr_t) sp_stack_from, sp_stack_size;

/* Written by sp_stack_start(). */
static struct sp_frames wanted;

/* Atomic: written once. Guarded by lock: used. */
static _Atomic(char *) room;
static size_t used;
static struct sp_lock lock = SP_LOCK_INIT(SP_RANK_STACK);

/* Atomic: written with the lock held. */
static _Atomic(const struct sp_stack *) *stacks;

/* Guarded by: lock. */
static const struct sp_stack_line **lines;
static const char **texts;

/* What was found, before it is known whether it is new. */
struct found {
        const void *caller;
        const char *range;
        unsigned int natives, pythons;
        const void *native[SP_FRAMES_MAX];
        struct sp_python_frame python[SP_PYTHON_MAX];
};

/* memory */

static void *map(size_t bytes)
{
        void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        return memory == MAP_FAILED ? NULL : memory;
}

void sp_stack_keep(uintptr_t from, uintptr_t size)
{
        sp_lock_take(&lock);
        if (atomic_load(&sp_stack_size) != UINTPTR_MAX) {
                atomic_store(&sp_stack_from, from);
                atomic_store(&sp_stack_size, size);
        }
        sp_lock_drop(&lock);
}

/* Once; whoever comes later finds it there. */
static bool make_room(void)
{
        sp_lock_take(&lock);
        if (!room) {
                stacks = map(STACKS * sizeof(*stacks));
                lines = map(LINES * sizeof(*lines));
                texts = map(TEXTS * sizeof(*texts));
                room = stacks && lines && texts ? map(ROOM) : NULL;
        }
        sp_lock_drop(&lock);
        if (room)
                sp_stack_keep(0, UINTPTR_MAX);
        return room != NULL;
}

bool sp_stack_start(const struct sp_frames *frames)
{
        wanted = *frames;
        if (wanted.native && !sp_unwind_start(WALKS)) {
                sp_log(SP_LOG_WARNING, "STREAMPOOL_STACK: there is no unwinder (libgcc_s.so.1) for "
                                       "frames of C and C++");
                wanted.native = false;
        }
        if (wanted.python || wanted.native)
                sp_python_start();
        if (!wanted.native)
                sp_runtime_start();
        return (!wanted.native && !wanted.python) || make_room();
}

bool sp_stack_has_ranges(void)
{
        return make_room();
}

const struct sp_stack *sp_stack_of(const void *place)
{
        const char *begins = atomic_load_explicit(&room, memory_order_relaxed);

        return begins && (uintptr_t)place - (uintptr_t)begins < ROOM ? place : NULL;
}

static void *take_locked(size_t bytes)
{
        void *memory = room + used;

        bytes = (bytes + 15) & ~(size_t)15;
        if (bytes > ROOM - used)
                return NULL;
        used += bytes;
        return memory;
}

static uint32_t hash_bytes(uint32_t hash, const void *bytes, size_t size)
{
        const unsigned char *at = bytes;

        while (size--)
                hash = (hash ^ *at++) * 16777619;
        return hash;
}

static uint32_t mix(uint32_t hash, uint64_t word)
{
        uint64_t mixed = (hash ^ word) * 0x9e3779b97f4a7c15;

        return (uint32_t)(mixed >> 32);
}

/* words of Python */

static const char *copy_locked(const char *text, size_t length)
{
        char *copy;

        length = length < TEXT_MAX ? length : TEXT_MAX;
        copy = take_locked(length + 1);
        if (!copy)
                return NULL;
        memcpy(copy, text, length);
        copy[length] = '\0';
        return copy;
}

static bool is_text(const char *text, const char *other, size_t length)
{
        length = length < TEXT_MAX ? length : TEXT_MAX;
        return strncmp(text, other, length) == 0 && !text[length];
}

const char *sp_stack_text(const char *text)
{
        size_t length = strlen(text);
        uint32_t hash = hash_bytes(0, text, length);
        const char *kept = NULL;

        sp_lock_take(&lock);
        for (unsigned int i = 0; i < REACH && !kept; i++) {
                const char **place = &texts[(hash + i) % TEXTS];

                if (!*place)
                        *place = copy_locked(text, length);
                if (!*place || is_text(*place, text, length))
                        kept = *place;
                if (!*place)
                        break;
        }
        sp_lock_drop(&lock);
        return kept;
}

static bool is_line(const struct sp_stack_line *line, const struct sp_python_words *words)
{
        return line->line == words->line &&
               is_text(line->function, words->function, words->function_length) &&
               is_text(line->file, words->file, words->file_length);
}

static const struct sp_stack_line *add_line_locked(const struct sp_python_words *words)
{
        struct sp_stack_line *line = take_locked(sizeof(*line));

        if (!line)
                return NULL;
        line->line = words->line;
        line->file = copy_locked(words->file, words->file_length);
        line->function = copy_locked(words->function, words->function_length);
        return line->file && line->function ? line : NULL;
}

/* NULL if there is no room. */
static const struct sp_stack_line *line_locked(const struct sp_python_frame *frame)
{
        struct sp_python_words words = {.file = "?", .function = "?"};
        uint32_t hash;

        words.file_length = words.function_length = 1;
        (void)sp_python_words(frame, &words);
        hash = hash_bytes(words.line * 31, words.file, words.file_length);
        hash = hash_bytes(hash, words.function, words.function_length);
        for (unsigned int i = 0; i < REACH; i++) {
                const struct sp_stack_line **place = &lines[(hash + i) % LINES];

                if (!*place)
                        *place = add_line_locked(&words);
                if (!*place || is_line(*place, &words))
                        return *place;
        }
        return add_line_locked(&words);
}

/* stacks */

static uint32_t hash_of(const struct found *found)
{
        uint32_t hash = mix(mix(found->natives, (uintptr_t)found->caller), (uintptr_t)found->range);

        for (unsigned int i = 0; i < found->natives; i++)
                hash = mix(hash, (uintptr_t)found->native[i]);
        for (unsigned int i = 0; i < found->pythons; i++)
                hash = mix(mix(hash, (uintptr_t)found->python[i].code),
                           (uint32_t)found->python[i].at);
        return hash;
}

static bool is_stack(const struct sp_stack *stack, const struct found *found, uint32_t hash)
{
        return stack->hash == hash && stack->caller == found->caller &&
               stack->range == found->range && stack->natives == found->natives &&
               stack->pythons == found->pythons &&
               !memcmp(stack->native, found->native, found->natives * sizeof(*found->native)) &&
               !memcmp(stack->python, found->python, found->pythons * sizeof(*found->python));
}

static const struct sp_stack *add_locked(const struct found *found, uint32_t hash)
{
        struct sp_stack *stack = take_locked(sizeof(*stack));
        const void **native = take_locked(found->natives * sizeof(*native));
        struct sp_python_frame *python = take_locked(found->pythons * sizeof(*python));
        const struct sp_stack_line **line = take_locked(found->pythons * sizeof(*line));

        if (!stack || !native || !python || !line)
                return NULL;
        memcpy(native, found->native, found->natives * sizeof(*native));
        memcpy(python, found->python, found->pythons * sizeof(*python));
        for (unsigned int i = 0; i < found->pythons; i++) {
                line[i] = line_locked(&found->python[i]);
                if (!line[i])
                        return NULL;
        }
        *stack = (struct sp_stack){
                .caller = found->caller,
                .range = found->range,
                .hash = hash,
                .natives = (uint16_t)found->natives,
                .pythons = (uint16_t)found->pythons,
                .native = native,
                .python = python,
                .line = line,
        };
        return stack;
}

/* The table's place for it: there already, or free; NULL if there is none. */
static _Atomic(const struct sp_stack *) *find(const struct found *found, uint32_t hash)
{
        for (unsigned int i = 0; i < REACH; i++) {
                _Atomic(const struct sp_stack *) *place = &stacks[(hash + i) % STACKS];
                const struct sp_stack *stack = atomic_load_explicit(place, memory_order_acquire);

                if (!stack || is_stack(stack, found, hash))
                        return place;
        }
        return NULL;
}

static const struct sp_stack *keep(const struct found *found)
{
        uint32_t hash = hash_of(found);
        _Atomic(const struct sp_stack *) *place = find(found, hash);
        const struct sp_stack *stack =
                place ? atomic_load_explicit(place, memory_order_acquire) : NULL;

        if (stack || !place)
                return stack;
        sp_lock_take(&lock);
        place = find(found, hash);
        stack = place ? atomic_load_explicit(place, memory_order_relaxed) : NULL;
        if (place && !stack) {
                stack = add_locked(found, hash);
                atomic_store_explicit(place, stack, memory_order_release);
        }
        sp_lock_drop(&lock);
        return stack;
}

const void *sp_stack_take(const void *caller)
{
        struct found found;
        const struct sp_stack *stack;

        if (!wanted.native && sp_runtime_has(caller))
                caller = sp_unwind_out(caller, __builtin_frame_address(0));
        found.caller = caller;
        found.range = sp_ranges_innermost();
        found.natives = found.pythons = 0;
        if (wanted.native)
                found.natives =
                        sp_unwind(caller, __builtin_frame_address(0), found.native, wanted.count);
        if (wanted.python)
                found.pythons = sp_python_take(found.python, wanted.count);
        if (!found.natives && !found.pythons && !found.range)
                return caller;
        stack = keep(&found);
        if (stack)
                return stack;
        sp_count(stacks_unkept);
        return caller;
}
