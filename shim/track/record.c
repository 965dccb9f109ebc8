/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Record -- every call of the program's that matters to an allocator, one a line
 *
 * Events of all threads go into one array under one lock, which makes them an order. They become
 * words, and are written, when it is full. The write is made with the lock held: events that came
 * meanwhile would have to wait anyway.
 */

#define _GNU_SOURCE

#include "track/record.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/config.h"
#include "base/life.h"
#include "base/lock.h"
#include "base/log.h"
#include "track/handles.h"
#include "track/record_file.h"
#include "track/stack.h"
#include "track/state.h"

#define LINE_MAX_BYTES 128  /* six numbers of 20 digits at most, and blanks */
#define PATIENCE_MS    2000 /* with another thread that keeps the lock, at the end */
#define NOWHERE        UINT64_MAX
#define OWN            (UINT64_C(1) << 63) /* no handle, which is an address, has this bit */

struct event {
        uint64_t time; /* microseconds */
        uint64_t handle;
        uint64_t number;
        uint64_t stream;
        uint32_t thread;
        uint32_t result;
        char kind; /* 0: it was withdrawn */
};

/* When is there a line? */
enum when {
        NEVER,
        BEFORE,  /* the call; it is withdrawn if that fails */
        AFTER,   /* whatever came of it */
        SUCCESS, /* after it, if it has succeeded */
};

struct shape {
        const char *fields; /* behind t and tid */
        enum when when;
        bool is_captured; /* while a stream captures, it may be no more than a node of a graph */
};

/* h: the handle; n: the number; d: it is a direction; r: the result; s: the stream. */
static const struct shape shapes[128] = {
        ['a'] = {"hnr", AFTER, false},  ['f'] = {"h", BEFORE, false},
        ['A'] = {"hnrs", AFTER, true},  ['F'] = {"hs", BEFORE, false},
        ['s'] = {"s", SUCCESS, false},  ['c'] = {"", SUCCESS, false},
        ['e'] = {"h", SUCCESS, false},  ['Q'] = {"sr", AFTER, false},
        ['q'] = {"hr", AFTER, false},   ['r'] = {"hs", SUCCESS, true},
        ['w'] = {"sh", SUCCESS, true},  ['x'] = {"h", BEFORE, false},
        ['+'] = {"hn", SUCCESS, false}, ['-'] = {"h", BEFORE, false},
        ['k'] = {"sn", SUCCESS, true},  ['m'] = {"dn", SUCCESS, false},
        ['h'] = {"hn", SUCCESS, false}, ['H'] = {"h", BEFORE, false},
};

struct desk {
        struct event event[SP_RECORD_LINES];
        char words[SP_RECORD_LINES * LINE_MAX_BYTES];
};

bool sp_record_is_on;

/* Guarded by the lock: all but the start, which is written once. */
static struct sp_lock lock = SP_LOCK_INIT(SP_RANK_RECORD);
static struct desk *desk;
static struct sp_record_file file;
static struct sp_handles streams; /* that have a line */
static uint64_t start;            /* nanoseconds */
static unsigned int count;        /* events in the desk */
static uint64_t before;           /* events before these */
static uint32_t threads;          /* besides the main one */
static uint64_t lost;             /* lines that are not in the file */
static uint64_t standing;         /* lines of frees that have failed */
static uint64_t captured;         /* calls that were left out */
static bool is_over;

/* Per thread because it is its number, from 1; 0 is none yet. Initial-exec, so that reading it
 * never allocates. */
static __thread uint32_t own_number __attribute__((tls_model("initial-exec")));

static uint64_t now(void)
{
        struct timespec time;

        clock_gettime(CLOCK_MONOTONIC, &time);
        return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

void sp_record_start(void)
{
        static const char head[] = "# streampool recording 1\n";
        const char *pattern = sp_config()->record;

        if (!*pattern)
                return;
        desk = mmap(NULL, sizeof(*desk), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (desk == MAP_FAILED) {
                sp_log(SP_LOG_ERROR, "STREAMPOOL_RECORD: nothing is recorded: no host memory");
                return;
        }
        if (!sp_record_file_make(&file, pattern) ||
            !sp_record_file_add(&file, head, sizeof(head) - 1)) {
                munmap(desk, sizeof(*desk));
                return;
        }
        start = now();
        sp_record_is_on = true;
        /* Hooks of calls for memory look at nothing but whether a stack is to be taken, as they
         * have no time for more (entry/hooks.c). Where no frames are wanted, taking one changes no
         * place. */
        sp_stack_keep(0, UINTPTR_MAX);
        sp_log(SP_LOG_INFO, "calls are recorded in %s", file.path);
}

/* words: numbers by hand, as this is most of what a line costs */

static char *add_number(char *at, uint64_t number, unsigned int base)
{
        char digits[20]; /* of 64 bits in the smaller base */
        unsigned int length = 0;

        *at++ = ' ';
        do {
                digits[length++] = "0123456789abcdef"[number % base];
                number /= base;
        } while (number);
        while (length)
                *at++ = digits[--length];
        return at;
}

static char *add_field(char *at, char field, const struct event *event)
{
        switch (field) {
        case 'h':
                return add_number(at, event->handle, 16);
        case 's':
                return add_number(at, event->stream, 16);
        case 'n':
                return add_number(at, event->number, 10);
        case 'd':
                return stpcpy(at, event->handle == SP_RECORD_TO_HOST ? " DtoH" : " HtoD");
        default:
                return add_number(at, event->result, 10);
        }
}

static char *add_line(char *at, const struct event *event)
{
        *at++ = event->kind;
        if (event->kind != 'k') {
                at = add_number(at, event->time, 10);
                at = add_number(at, event->thread, 10);
        }
        for (const char *field = shapes[(unsigned char)event->kind].fields; *field; field++)
                at = add_field(at, *field, event);
        *at++ = '\n';
        return at;
}

static void flush_locked(void)
{
        unsigned int lines = 0;
        char *at = desk->words;

        /* The file is the parent's, and so are these events. */
        if (sp_life_is_child()) {
                count = 0;
                return;
        }
        for (unsigned int i = 0; i < count; i++) {
                if (!desk->event[i].kind)
                        continue;
                at = add_line(at, &desk->event[i]);
                lines++;
        }
        if (lines && !sp_record_file_add(&file, desk->words, (size_t)(at - desk->words)))
                lost += lines;
        before += count;
        count = 0;
}

/* events */

static uint64_t append(const struct event *event)
{
        struct event *last = count ? &desk->event[count - 1] : NULL;

        if (event->kind == 'k' && last && last->kind == 'k' && last->stream == event->stream) {
                last->number++;
                return NOWHERE;
        }
        if (count == SP_RECORD_LINES)
                flush_locked();
        desk->event[count] = *event;
        return before + count++;
}

/* A reader has to have heard of a stream before it is used. Return: false if it was not told. */
static bool tell_of_stream(const struct event *event)
{
        struct event made = {
                .kind = '+',
                .time = event->time,
                .thread = event->thread,
                .handle = event->stream,
                .number = event->stream & OWN ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING,
        };

        if (!event->stream || sp_handles_has(&streams, event->stream))
                return true;
        if (!sp_handles_add(&streams, event->stream))
                return false;
        append(&made);
        return true;
}

/* Return: false if there is to be no line: a stream that nobody has heard of does not end. */
static bool prepare(const struct event *event)
{
        switch (event->kind) {
        case '+':
                return sp_handles_add(&streams, event->handle);
        case '-':
                return sp_handles_remove(&streams, event->handle);
        default:
                return !strchr(shapes[(unsigned char)event->kind].fields, 's') ||
                       tell_of_stream(event);
        }
}

static uint32_t thread_locked(void)
{
        if (!own_number)
                own_number = syscall(SYS_gettid) == getpid() ? 1 : ++threads + 1;
        return own_number - 1;
}

static uint64_t stream_of(CUstream handle, uint32_t thread)
{
        if (handle == CU_STREAM_LEGACY)
                return 0;
        return handle == CU_STREAM_PER_THREAD ? OWN | thread : (uintptr_t)handle;
}

static uint64_t enter(const struct sp_record_call *call, CUresult result)
{
        struct event event = {
                .kind = call->kind,
                .handle = call->handle,
                .number = call->number,
                .result = (uint32_t)result,
        };
        uint64_t line = NOWHERE;

        if (call->out && result == CUDA_SUCCESS)
                memcpy(&event.handle, call->out, sizeof(event.handle));
        sp_lock_take(&lock);
        if (is_over) {
                sp_lock_drop(&lock);
                return NOWHERE;
        }
        event.time = (now() - start) / 1000;
        event.thread = thread_locked();
        event.stream = stream_of(call->stream, event.thread);
        if (shapes[(unsigned char)call->kind].is_captured && sp_is_capturing())
                captured++;
        else if (prepare(&event))
                line = append(&event);
        else if (event.kind != '-')
                lost++;
        sp_lock_drop(&lock);
        return line;
}

static void withdraw(const struct sp_record_call *call)
{
        if (call->line == NOWHERE)
                return;
        sp_lock_take(&lock);
        if (call->line < before) {
                standing++;
        } else {
                desk->event[call->line - before].kind = 0;
                /* The next line of a stream that is not known would be that it was made. */
                if (call->kind == '-')
                        (void)sp_handles_add(&streams, call->handle);
        }
        sp_lock_drop(&lock);
}

/* calls */

void sp_record_begin(struct sp_record_call *call)
{
        if (shapes[(unsigned char)call->kind].when == BEFORE)
                call->line = enter(call, CUDA_SUCCESS);
}

void sp_record_end(const struct sp_record_call *call, CUresult result)
{
        enum when when = shapes[(unsigned char)call->kind].when;

        if (when == BEFORE && result != CUDA_SUCCESS)
                withdraw(call);
        else if (when == AFTER || (when == SUCCESS && result == CUDA_SUCCESS))
                (void)enter(call, result);
}

void sp_record_work(CUstream stream, CUresult result)
{
        struct sp_record_call call = {.kind = 'k', .number = 1, .stream = stream};

        sp_record_end(&call, result);
}

/* the end, or nearly: whoever holds the lock may be a thread that no longer runs */

static bool enter_bounded(void)
{
        return sp_record_is_on && sp_lock_take_bounded(&lock, PATIENCE_MS);
}

void sp_record_flush(void)
{
        if (!enter_bounded())
                return;
        flush_locked();
        sp_lock_drop(&lock);
}

static void say(uint64_t times, enum sp_log_level level, const char *what)
{
        if (times)
                sp_log(level, "STREAMPOOL_RECORD: %s: %llu", what, (unsigned long long)times);
}

void sp_record_finish(void)
{
        if (!enter_bounded())
                return;
        flush_locked();
        is_over = true;
        sp_lock_drop(&lock);
        say(lost, SP_LOG_WARNING, "lines that are lost");
        say(standing, SP_LOG_WARNING, "lines of frees that have failed");
        say(captured, SP_LOG_INFO, "calls left out while a stream was capturing");
}
