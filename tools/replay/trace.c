/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trace -- what a real program asked a pool for
 *
 * A line at a time, against what the lines before it have made: who replays a trace need not ask
 * whether a block lives, or a stream is there.
 */

#include "trace.h"

#include <stdlib.h>
#include <string.h>

#include "measure.h"

/* Of a block, and of all that live: no device has as much. */
#define SIZE_MOST ((uint64_t)1 << 40)
#define LINE_MOST 128

/* By number: is it there now? */
struct marks {
        bool *is_there;
        uint32_t count;
};

struct reader {
        struct trace *trace;
        struct marks blocks, pinned, streams, events;
        uint64_t live;   /* bytes */
        const char *why; /* what is wrong with the line */
};

static uint32_t add_mark(struct marks *marks)
{
        uint32_t number = marks->count++;

        /* Doubles whenever the count is a power of two. */
        if (!(number & (number - 1)))
                marks->is_there = must_realloc(marks->is_there, 2 * (size_t)number + 1);
        marks->is_there[number] = true;
        return number;
}

static bool is_there(const struct marks *marks, uint64_t number)
{
        return number < marks->count && marks->is_there[number];
}

static bool wrong(struct reader *reader, const char *why)
{
        reader->why = why;
        return false;
}

/* events */

static void add_event(struct reader *reader, struct trace_event event)
{
        struct trace *trace = reader->trace;

        if (!(trace->events & (trace->events - 1)))
                trace->event =
                        must_realloc(trace->event, (2 * trace->events + 1) * sizeof(*trace->event));
        trace->event[trace->events++] = event;
}

static bool add(struct reader *reader, enum trace_kind kind, uint64_t a, uint32_t b)
{
        add_event(reader, (struct trace_event){.kind = kind, .a = (uint32_t)a, .b = b});
        return true;
}

static bool add_order(struct reader *reader, enum peer_order order, uint64_t a, uint64_t b)
{
        add_event(reader, (struct trace_event){
                                  .kind = TRACE_ORDER,
                                  .order = order,
                                  .a = (uint32_t)a,
                                  .b = (uint32_t)b,
                          });
        return true;
}

/* blocks */

static bool has_stream(struct reader *reader, uint64_t stream)
{
        return stream == PEER_ANYWHERE || is_there(&reader->streams, stream) ||
               wrong(reader, "no such stream");
}

/* @count: of the blocks so far, whose sizes are at @sizes. */
static bool add_size(struct reader *reader, uint64_t **sizes, uint32_t *count, uint64_t size)
{
        uint32_t block = *count;

        if (!size || size > SIZE_MOST)
                return wrong(reader, "no size of a block");
        if (!(block & (block - 1)))
                *sizes = must_realloc(*sizes, (2 * (size_t)block + 1) * sizeof(uint64_t));
        (*sizes)[block] = size;
        ++*count;
        return true;
}

static bool add_alloc(struct reader *reader, uint64_t size, uint32_t stream)
{
        struct trace *trace = reader->trace;

        if (!has_stream(reader, stream) || !add_size(reader, &trace->size, &trace->blocks, size))
                return false;
        reader->live += size;
        if (reader->live > SIZE_MOST)
                return wrong(reader, "more lives than a device has");
        return add(reader, TRACE_ALLOC, add_mark(&reader->blocks), stream);
}

/* @age: of the block; 1 is the latest. */
static bool end_block(struct reader *reader, enum trace_kind kind, struct marks *marks,
                      uint64_t age, uint32_t stream)
{
        uint64_t block = marks->count - age;

        if (!has_stream(reader, stream))
                return false;
        if (!age || age > marks->count || !is_there(marks, block))
                return wrong(reader, "no such block, or not any more");
        marks->is_there[block] = false;
        if (kind == TRACE_FREE)
                reader->live -= reader->trace->size[block];
        return add(reader, kind, block, stream);
}

static bool add_free(struct reader *reader, uint64_t age)
{
        return age ? end_block(reader, TRACE_FREE, &reader->blocks, age, PEER_ANYWHERE)
                   : add(reader, TRACE_FREE_NULL, 0, 0);
}

static bool add_pin(struct reader *reader, uint64_t size)
{
        struct trace *trace = reader->trace;

        return add_size(reader, &trace->pinned_size, &trace->pinned, size) &&
               add(reader, TRACE_PIN, add_mark(&reader->pinned), 0);
}

/* order */

static bool add_stream(struct reader *reader, uint64_t flags)
{
        reader->trace->streams = add_mark(&reader->streams);
        return add_order(reader, PEER_STREAM_MADE, reader->trace->streams, flags);
}

static bool end_stream(struct reader *reader, uint64_t stream)
{
        if (!stream)
                return wrong(reader, "the legacy stream does not end");
        if (!has_stream(reader, stream))
                return false;
        reader->streams.is_there[stream] = false;
        return add_order(reader, PEER_STREAM_GONE, stream, 0);
}

static bool on_stream(struct reader *reader, enum peer_order order, uint64_t stream, uint64_t more)
{
        return has_stream(reader, stream) && add_order(reader, order, stream, more);
}

static bool add_query(struct reader *reader, uint64_t stream)
{
        if (!on_stream(reader, PEER_SYNC_STREAM, stream, 0))
                return false;
        reader->trace->event[reader->trace->events - 1].kind = TRACE_QUERY;
        return true;
}

/* The first record of an event makes it. */
static bool add_record(struct reader *reader, uint64_t event, uint64_t stream)
{
        if (!has_stream(reader, stream))
                return false;
        if (event == reader->events.count)
                add_mark(&reader->events);
        if (!is_there(&reader->events, event))
                return wrong(reader, "not the next event, nor one that is there");
        return add_order(reader, PEER_RECORD, event, stream);
}

static bool on_event(struct reader *reader, enum peer_order order, uint64_t event, uint64_t more)
{
        if (!is_there(&reader->events, event))
                return wrong(reader, "no such event, or not any more");
        if (order == PEER_EVENT_GONE)
                reader->events.is_there[event] = false;
        return add_order(reader, order, event, more);
}

/* lines */

/* The numbers behind the letter, @most of them. Return: how many; -1 if there is anything else. */
static int read_numbers(const char *at, uint64_t *number, int most)
{
        int count = 0;

        for (;; count++) {
                char *end;

                at += strspn(at, " ");
                if (*at == '\n' || *at == '\r' || !*at)
                        return count;
                if (count == most || *at < '0' || *at > '9')
                        return -1;
                number[count] = strtoull(at, &end, 10);
                at = end;
        }
}

/* How many numbers a line has, by its letter; -1: no such letter. */
static int numbers_of(char letter)
{
        static const char letters[][16] = {"c", "aft+-xsqe!hH", "AFkrw"};
        int i;

        for (i = 0; i < 3; i++)
                if (letter && strchr(letters[i], letter))
                        return i;
        return -1;
}

static bool parse(struct reader *reader, char letter, uint64_t x, uint64_t y)
{
        switch (letter) {
        case 'a':
                return add_alloc(reader, x, PEER_ANYWHERE);
        case 'A':
                return add_alloc(reader, x, (uint32_t)y);
        case 'f':
                return add_free(reader, x);
        case 'F':
                return end_block(reader, TRACE_FREE, &reader->blocks, x, (uint32_t)y);
        case 'k':
                return on_stream(reader, PEER_LAUNCH, x, y);
        case '+':
                return add_stream(reader, x);
        case '-':
                return end_stream(reader, x);
        case 'r':
                return add_record(reader, x, y);
        case 'w':
                return has_stream(reader, x) && on_event(reader, PEER_WAIT, y, x);
        case 'x':
                return on_event(reader, PEER_EVENT_GONE, x, 0);
        case 's':
                return on_stream(reader, PEER_SYNC_STREAM, x, 0);
        case 'q':
                return add_query(reader, x);
        case 'e':
                return on_event(reader, PEER_SYNC_EVENT, x, 0);
        case 'c':
                return add_order(reader, PEER_SYNC_ALL, 0, 0);
        case 't':
                return add(reader, TRACE_THREAD, x, 0);
        case '!':
                return add(reader, TRACE_REFUSED, x, 0);
        case 'h':
                return add_pin(reader, x);
        case 'H':
                return end_block(reader, TRACE_UNPIN, &reader->pinned, x, PEER_ANYWHERE);
        default:
                return wrong(reader, "no event begins like this");
        }
}

static bool parse_line(struct reader *reader, const char *line)
{
        uint64_t number[2] = {0, 0};
        int wanted = numbers_of(line[0]);

        if (wanted < 0)
                return wrong(reader, "no event begins like this");
        if (read_numbers(line + 1, number, 2) != wanted)
                return wrong(reader, "not the numbers that such an event has");
        /* What is no size is a count or the number of something. */
        if (number[1] >= UINT32_MAX || (number[0] >= UINT32_MAX && !strchr("aAh", line[0])))
                return wrong(reader, "a number is too large");
        return parse(reader, line[0], number[0], number[1]);
}

/* the whole */

static bool is_call(const struct trace_event *event)
{
        return event->kind <= TRACE_QUERY &&
               (event->kind != TRACE_ORDER || event->order != PEER_LAUNCH);
}

/* The live peak, and how many calls a pool has to answer. */
static void sum_up(struct trace *trace)
{
        uint64_t live = 0;
        size_t i;

        for (i = 0; i < trace->events; i++) {
                const struct trace_event *event = &trace->event[i];

                if (event->kind == TRACE_ALLOC)
                        live += trace->size[event->a];
                else if (event->kind == TRACE_FREE)
                        live -= trace->size[event->a];
                trace->calls += is_call(event);
                if (live > trace->live_peak)
                        trace->live_peak = live;
        }
}

bool trace_read(struct trace *trace, FILE *file, const char *name)
{
        struct reader reader = {.trace = trace};
        unsigned int number = 0;
        char line[LINE_MOST];
        bool is_good = true;

        *trace = (struct trace){0};
        add_mark(&reader.streams); /* the legacy stream is always there */
        while (is_good && fgets(line, sizeof(line), file)) {
                number++;
                is_good = parse_line(&reader, line);
        }
        if (is_good && !trace->events)
                is_good = wrong(&reader, "there is no event in it");
        if (is_good)
                sum_up(trace);
        else
                fprintf(stderr, "%s:%u: %s\n", name, number, reader.why);
        if (!is_good)
                trace_fini(trace);
        free(reader.blocks.is_there);
        free(reader.pinned.is_there);
        free(reader.streams.is_there);
        free(reader.events.is_there);
        return is_good;
}

bool trace_load(struct trace *trace, const char *path)
{
        FILE *file = fopen(path, "r");
        bool is_good;

        if (!file) {
                perror(path);
                return false;
        }
        is_good = trace_read(trace, file, path);
        fclose(file);
        return is_good;
}

void trace_fini(struct trace *trace)
{
        free(trace->event);
        free(trace->size);
        free(trace->pinned_size);
        *trace = (struct trace){0};
}
