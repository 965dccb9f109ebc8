/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_OPERATION_H
#define SIM_OPERATION_H

/*
 * Operation -- what the simulated device does, and after what
 *
 * Work says what is done: how long it lasts, which bytes it touches, its effect.
 * A graph node holds work; an operation is work that was enqueued. Operations
 * are numbered in the order of the calls that made them, and every edge leads
 * from a lower number to a higher one, so there are no cycles.
 */

#include "sim.h"

#pragma GCC visibility push(hidden)

#define SIM_RANGES 3
#define SIM_WORDS  12

enum sim_access {
        SIM_READ = 1,
        SIM_WRITE = 2,
};

struct sim_range {
        uint64_t address;
        size_t bytes;
        unsigned int access; /* of enum sim_access */
};

static inline bool sim_range_overlap(const struct sim_range *one, const struct sim_range *other)
{
        return one->address < other->address + other->bytes &&
               other->address < one->address + one->bytes;
}

enum sim_work_kind {
        SIM_WORK_PLAIN,  /* runs for its duration */
        SIM_WORK_HOST,   /* a host function, on its own thread; as long as that takes */
        SIM_WORK_POLLED, /* ready when `holds` says so as well */
        SIM_WORK_WATCH,  /* `effect` also at its start and after every other effect */
};

/* Copied by value. `staged` is memory of its own: shared by copies, counted. */
struct sim_work {
        const char *name;
        enum sim_work_kind kind;
        uint64_t duration_ns;
        void (*effect)(const struct sim_work *work);
        bool (*holds)(const struct sim_work *work);
        uint64_t word[SIM_WORDS]; /* arguments, as the effect reads them */
        struct sim_range range[SIM_RANGES];
        unsigned int ranges;
        struct sim_staged *staged;
};

/* Host bytes copied when the call was made: pageable memory may change afterwards. */
struct sim_staged {
        unsigned int references;
        unsigned char bytes[];
};

enum sim_operation_state {
        SIM_OPERATION_WAITING,
        SIM_OPERATION_RUNNING,
        SIM_OPERATION_DONE,
};

struct sim_claim; /* oracle.c: whose bytes it touches */

struct sim_operation {
        unsigned int references; /* one of the engine's own until it is done */
        uint64_t number;
        uint64_t stream; /* id; 0: of a whole context */
        enum sim_operation_state state;
        uint64_t enqueued_ns;
        uint64_t start_ns; /* valid from RUNNING on */
        uint64_t end_ns;   /* planned while RUNNING, final when DONE */

        struct sim_operation **needs; /* not done when it was enqueued; referenced until done */
        size_t need_count;
        size_t missing; /* of them, still not done */
        struct sim_operation **followers;
        size_t follower_count;

        struct sim_work work;
        struct sim_claim *claims;
        uint64_t searched;          /* the last search that came by (order.c) */
        struct sim_operation *next; /* in one of the engine's lists */
};

/* ---- operation.c ---- */

/* Not yet started; referenced by the caller. Then edges, then sim_operation_submit(). */
struct sim_operation *sim_operation_new(const struct sim_work *work, uint64_t stream);
void sim_operation_need(struct sim_operation *operation, struct sim_operation *earlier);
struct sim_operation *sim_operation_get(struct sim_operation *operation);

struct sim_staged *sim_staged_new(const void *bytes, size_t count);
void sim_work_copied(const struct sim_work *work); /* another owner of what it stages */
void sim_work_drop(struct sim_work *work);

/* ---- engine.c ---- */

void sim_operation_submit(struct sim_operation *operation);

enum sim_progress {
        SIM_MOVED,   /* an operation finished, or need not wait any longer */
        SIM_STALLED, /* a host function runs; the clock stands */
        SIM_IDLE,    /* nothing runs */
};

uint64_t sim_clock(void);
bool sim_time_is_virtual(void);
/* Virtual time: the earliest end, unless it is later than `until`. */
enum sim_progress sim_engine_step(uint64_t until);
void sim_engine_move(uint64_t until); /* virtual: the clock itself */
void sim_engine_pause(void);          /* drops the lock until something finishes, or 1 ms passed */
void sim_engine_poll(void);           /* a query said "not ready": time passes */
uint64_t sim_engine_number(void);     /* of the next operation */
size_t sim_engine_pending(void);
uint64_t sim_cost(size_t bytes); /* duration of moving so much */
void sim_poll_cost_set(uint64_t nanoseconds);

/* ---- order.c ---- */

/* Puts work on a stream, after everything it must follow. Not for capturing streams. */
struct sim_operation *sim_enqueue(struct sim_stream *stream, const struct sim_work *work);
/* Every edge that the stream's next operation will have, or an operation behind all of a context.
 */
void sim_order_stream(struct sim_stream *stream, struct sim_operation *next);
struct sim_operation *sim_join_context(struct sim_context *context, const char *name);
/* The given operation, submitted, is the stream's newest from now on. */
void sim_order_tail(struct sim_stream *stream, struct sim_operation *operation);
void sim_order_orphan(struct sim_stream *stream);     /* it is destroyed; its work goes on */
void sim_order_remember(struct sim_context *context); /* it is open */
void sim_order_forget(struct sim_context *context);   /* its work is done */
/* The context and its green contexts, one after the other; start with null. */
struct sim_context *sim_order_contexts(struct sim_context *primary, struct sim_context *previous);

/* ---- host.c ---- */

/* Calls the function on the driver's own thread; finishes the operation afterwards. */
void sim_host_start(struct sim_operation *operation);
void sim_operation_finish(struct sim_operation *operation); /* engine.c */
size_t sim_host_running(void);

/* ---- stream.c, event.c ---- */

struct sim_event *sim_event_new(struct sim_context *context, unsigned int flags);
void sim_events_close(struct sim_context *context);
/* The event stands for that operation, recorded on that stream (id; 0: of a whole context). */
void sim_event_set(struct sim_event *event, struct sim_operation *snapshot, uint64_t stream);
/* Records the event on a stream that is not capturing. */
void sim_event_mark(struct sim_event *event, struct sim_stream *stream);

/* ---- submit.c ---- */

/* The whole life of an asynchronous call: a node of the stream's capture, or enqueued. */
CUresult sim_submit(struct sim_stream *stream, const struct sim_work *work);
/* Enqueues, then waits for it. A capturing stream cannot wait: 900. */
CUresult sim_submit_and_wait(struct sim_stream *stream, const struct sim_work *work);
/* Adds a range if the simulated driver knows the memory; pageable host memory is nobody's. */
void sim_work_touch(struct sim_work *work, uint64_t address, size_t bytes, unsigned int access);

/* ---- capture.c ---- */

/* 906, and dead captures: the legacy stream is used while a blocking stream captures. */
CUresult sim_capture_implicit(struct sim_stream *stream);
/* The stream is capturing. */
CUresult sim_capture_work(struct sim_stream *stream, const struct sim_work *work);
CUresult sim_capture_record(struct sim_stream *stream, struct sim_event *event, bool external);
/* The stream is capturing, or the event was recorded inside a capture. */
CUresult sim_capture_wait(struct sim_stream *stream, struct sim_event *event, bool external);
/* For a query or a wait of a stream, and of an event. */
CUresult sim_capture_observe(struct sim_stream *stream);
CUresult sim_capture_event(const struct sim_event *event);
void sim_capture_kill(struct sim_capture *capture);
void sim_capture_stream_gone(struct sim_stream *stream);

/* ---- oracle.c ---- */

void sim_oracle_claim(struct sim_operation *operation); /* when it is enqueued */
void sim_oracle_start(struct sim_operation *operation); /* judges */
void sim_oracle_finish(struct sim_operation *operation);

#pragma GCC visibility pop

#endif
