/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STREAMPOOL_MODEL_H
#define STREAMPOOL_MODEL_H

/*
 * Model -- who may have which memory, and when
 *
 * A stream-ordered memory pool as a pure state machine. It is told what a
 * program asks for and what the device has finished; it answers with addresses
 * and with a list of actions that somebody else carries out. It holds no lock,
 * reads no clock, starts no thread and knows no CUDA, so the same inputs always
 * give the same addresses.
 *
 *   input   spm_alloc(), spm_free(), spm_record_begin(), ...
 *   output  an address, and struct spm_actions: record, poll, wait, grow, ...
 *   report  spm_stamp_recorded(), spm_stamp_done(), spm_segment_add(), ...
 *
 * Words
 *   stream   an ordered queue of device work. Its n-th operation that the model
 *            knows of is the point (stream, n).
 *   stamp    an event that the caller records for the model. When it is done,
 *            everything that was submitted before it was recorded is done.
 *   segment  memory obtained by the caller, in one piece: a chunk of a range, or an
 *            allocation of its own.
 *   range    addresses that a pool has for itself; segments come and go in it, so that
 *            free memory can be moved to where it is needed.
 *   block    one allocation, or one free piece; a block may lie in several segments of
 *            a range.
 *   pending  freed, but work that may touch it can still be running.
 *   ready    freed, and everything that may touch it is complete.
 *
 * Threads: none. The caller serialises every call on one model; the actions
 * are carried out with no lock held, and then reported. The exception are
 * magazines, which exist so that a thread can do without that lock.
 *
 * Units: sizes and addresses are bytes. Handles are small integers, 0 is never
 * one, and a handle is not given out again while the model lives.
 *
 * Errors: every function lists what it returns. Misuse that only a programmer
 * can cause (a NULL model, a ticket ended twice) is asserted, not reported.
 * Return arguments are written on success only, unless a function says more.
 * A failed input changes nothing.
 *
 * Sources: a rule's letter and number (G1, F4, A6, H3, C5, L1, O1) is that of
 * the design notes; `cuda.h` is NVIDIA's driver API header.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t spm_context; /* a device context */
typedef uint32_t spm_stream;
typedef uint32_t spm_event;
typedef uint32_t spm_pool;
typedef uint32_t spm_segment;
typedef uint32_t spm_stamp;

struct spm_model;

enum spm_status {
        SPM_OK = 0,
        SPM_AGAIN,           /* carry out the actions, report them, call again */
        SPM_E_INVALID_VALUE, /* zero or overflowing size, unknown attribute, bad configuration */
        SPM_E_OUT_OF_MEMORY, /* past the cap, or nobody could provide a segment */
        SPM_E_DOUBLE_FREE,   /* the address was a block of ours and is free already */
        SPM_E_FOREIGN,       /* the address was never ours */
        SPM_E_INTERIOR,      /* the address lies inside a live block, not at its start */
        SPM_E_STALE,         /* the block at this address is a later one (generation differs) */
        SPM_E_INVALID_DEVICE,
        SPM_E_READ_ONLY,   /* the attribute cannot be set */
        SPM_E_UNKNOWN,     /* no such context, stream, event, pool, segment or stamp */
        SPM_E_HOST_MEMORY, /* the host's own allocator failed; nothing changed */
};

/** spm_status_name() - the name of a status, e.g. "SPM_E_DOUBLE_FREE"; never NULL. */
const char *spm_status_name(enum spm_status status);

/* actions */

enum spm_action_kind {
        /* Record @stamp on @stream (or, if @stream is 0, behind all work of @context).
         * Then spm_stamp_recorded(). */
        SPM_ACT_RECORD,
        /* Make @stream wait for @stamp on the device. If that fails: spm_alloc_undo(). */
        SPM_ACT_WAIT_STREAM,
        /* Ask whether @stamp is done, without waiting; if it is: spm_stamp_done(). */
        SPM_ACT_POLL,
        /* Ask whether @stream is idle, without waiting: spm_sync_begin(), the question,
         * spm_sync_end() with SPM_SYNC_POLL. */
        SPM_ACT_POLL_STREAM,
        /* Wait on the host for @stamp, then spm_stamp_done(). If @bounded, the stamp may cover
         * work submitted after the free it stands for: give up after a short while. */
        SPM_ACT_WAIT_HOST,
        /* Wait on the host until @context is idle: spm_sync_begin(), the wait, spm_sync_end(). */
        SPM_ACT_SYNC_CONTEXT,
        /* Obtain memory for @pool, then spm_segment_add() or spm_grow_failed(). If @address is not
         * 0: @size bytes just there, in the pool's range. Else, anywhere: at least @size bytes,
         * better @preferred bytes. */
        SPM_ACT_GROW,
        /* Give the memory of @segment (@address, @size, @cookie) back. The model has forgotten it.
         * If @moves, a GROW follows that can use the physical memory again. */
        SPM_ACT_RELEASE,
        /* @stamp is no longer needed; its event may be used again. An action of another thread may
         * still name it: then a question or a wait of the host is void, and a WAIT_STREAM has
         * failed. */
        SPM_ACT_DROP,
};

struct spm_action {
        enum spm_action_kind kind;
        bool bounded;
        bool moves;
        spm_context context;
        spm_stream stream;
        spm_stamp stamp;
        spm_pool pool;
        spm_segment segment;
        uint64_t address;
        size_t size;
        size_t preferred;
        void *cookie;
};

#define SPM_ACTIONS_MAX 24

/* Filled by the model from item[0]; the order is the order to carry them out in. */
struct spm_actions {
        unsigned int count;
        struct spm_action item[SPM_ACTIONS_MAX];
};

/* life of a model */

struct spm_config {
        /* Host memory. NULL means calloc() and free(). */
        void *(*alloc)(size_t count, size_t size, void *user);
        void (*free)(void *memory, void *user);
        void *user;
        /* Makes every thread of the process pass a full barrier, as membarrier(2) does with
         * MEMBARRIER_CMD_PRIVATE_EXPEDITED. NULL: owners of magazines have a barrier of their own
         * in each call, which costs as much as the rest of it. */
        void (*fence)(void *user);
        /* A freed synchronous block waits for a stamp of its context; a batch is stamped
         * when it holds this many blocks or bytes. 0 means the default. */
        unsigned int batch_blocks; /* default 64 */
        size_t batch_bytes;        /* default 32 MiB */
};

/**
 * spm_model_new() - an empty model
 * @config: NULL for all defaults; copied
 * @model:  return argument; owned by the caller, spm_model_free() ends it
 *
 * Return: SPM_OK, SPM_E_INVALID_VALUE (only one of alloc and free is set), SPM_E_HOST_MEMORY.
 */
enum spm_status spm_model_new(const struct spm_config *config, struct spm_model **model);

/** spm_model_free() - forget everything, magazines too; NULL is accepted. No action comes of it. */
void spm_model_free(struct spm_model *model);

/* contexts */

/** spm_context_add() - a context on @device (>= 0).
 * Return: SPM_OK, SPM_E_INVALID_DEVICE, SPM_E_HOST_MEMORY. */
enum spm_status spm_context_add(struct spm_model *model, int device, spm_context *context);

/** spm_context_hide() - the context may have blocking streams that spm_stream_add() was not told
 * of. Then every allocation on its legacy stream from pending memory is ordered before them on the
 * device, by a RECORD and a WAIT_STREAM (H6). Return: SPM_OK, SPM_E_UNKNOWN. */
enum spm_status spm_context_hide(struct spm_model *model, spm_context context);

/**
 * spm_context_remove() - the context is gone, and all its work with it (L2)
 * @actions: RELEASE for segments whose memory outlives a context, DROP for its stamps
 *
 * Its streams, the synchronous pools created in it and their blocks are forgotten, live ones too.
 * Asynchronous blocks stay; work of the context's streams counts as complete.
 *
 * Return: SPM_OK when all is done, SPM_AGAIN when there is more to release: carry out and call
 * again; SPM_E_UNKNOWN.
 */
enum spm_status spm_context_remove(struct spm_model *model, spm_context context,
                                   struct spm_actions *actions);

/* streams */

enum spm_stream_kind {
        SPM_STREAM_LEGACY, /* at most one a context; orders with every blocking stream */
        SPM_STREAM_BLOCKING,
        SPM_STREAM_NON_BLOCKING,
        SPM_STREAM_PER_THREAD, /* blocking; only its own thread can record on it or wait (F5) */
};

/** spm_stream_add() - Return: SPM_OK, SPM_E_UNKNOWN (context), SPM_E_INVALID_VALUE (bad kind, or
 * a second legacy stream), SPM_E_HOST_MEMORY. */
enum spm_status spm_stream_add(struct spm_model *model, spm_context context,
                               enum spm_stream_kind kind, spm_stream *stream);

/**
 * spm_stream_retire() - call before the driver destroys @stream (L1)
 *
 * May ask to RECORD on the stream for the last time. Afterwards no action names it; blocks freed
 * on it become ready by that stamp, or by one of the context.
 *
 * Return: SPM_OK, SPM_E_UNKNOWN.
 */
enum spm_status spm_stream_retire(struct spm_model *model, spm_stream stream,
                                  struct spm_actions *actions);

/* A capture is open on @stream: no action names the stream, and no stamp of its context is asked
 * for, until it ends (C5, C6). _begin is called before the driver's call and may ask to RECORD.
 * Return: SPM_OK, SPM_E_UNKNOWN. Begins and ends are counted per context; an end too many is
 * ignored. */
enum spm_status spm_capture_begin(struct spm_model *model, spm_stream stream,
                                  struct spm_actions *actions);
enum spm_status spm_capture_end(struct spm_model *model, spm_stream stream);

/* events and order */

/** spm_event_add() - an event, never recorded. Return: SPM_OK, SPM_E_HOST_MEMORY. */
enum spm_status spm_event_add(struct spm_model *model, spm_event *event);
enum spm_status spm_event_remove(struct spm_model *model, spm_event event);

/** spm_event_taint() - the event can be recorded where the model does not see it (H12): it says
 * nothing any more, for ever if @forever, else until its next record. Return: SPM_OK,
 * SPM_E_UNKNOWN. */
enum spm_status spm_event_taint(struct spm_model *model, spm_event event, bool forever);

enum spm_scope_kind { SPM_SCOPE_STREAM, SPM_SCOPE_EVENT, SPM_SCOPE_CONTEXT };

struct spm_scope {
        enum spm_scope_kind kind;
        uint32_t id; /* spm_stream, spm_event or spm_context */
};

/*
 * What was known when a driver call began. Every _begin that returns SPM_OK is matched by
 * exactly one _end, which releases the ticket. Fields are the model's.
 */
struct spm_ticket {
        struct spm_scope scope;
        uint32_t id;
        uint64_t version;
        void *snapshot;
};

/**
 * spm_record_begin() - an event is about to be recorded on a stream or in a whole context
 * @where:   SPM_SCOPE_STREAM or SPM_SCOPE_CONTEXT
 * @actions: RECORD on that stream for frees that are not stamped yet, to be carried out before
 *           the driver's record (H3)
 *
 * Between _begin and _end the event says nothing: another thread's query may still see the record
 * before. _end with @ok false leaves it so.
 *
 * Return: SPM_OK, SPM_E_UNKNOWN, SPM_E_HOST_MEMORY (the event is tainted until its next record).
 */
enum spm_status spm_record_begin(struct spm_model *model, spm_event event, struct spm_scope where,
                                 struct spm_ticket *ticket, struct spm_actions *actions);
void spm_record_end(struct spm_model *model, struct spm_ticket *ticket, bool ok);

/**
 * spm_wait_begin() - a stream, or a whole context, is about to wait for an event on the device
 * @waiter: SPM_SCOPE_STREAM or SPM_SCOPE_CONTEXT (streams created later wait too, H9)
 *
 * The order is learnt in _end, if @ok and if the event was not recorded again in between.
 *
 * Return: SPM_OK, SPM_E_UNKNOWN.
 */
enum spm_status spm_wait_begin(struct spm_model *model, struct spm_scope waiter, spm_event event,
                               struct spm_ticket *ticket);
void spm_wait_end(struct spm_model *model, struct spm_ticket *ticket, bool ok);

enum spm_sync {
        SPM_SYNC_WAIT,  /* the program waited, e.g. cuStreamSynchronize */
        SPM_SYNC_QUERY, /* the program asked and was told "done", e.g. cuEventQuery */
        SPM_SYNC_POLL,  /* the caller asked on the model's behalf */
};

/**
 * spm_sync_begin() - the host is about to wait for, or ask about, a stream, event or context
 *
 * What completes is what was submitted at _begin (H4, H5, H7); the legacy stream stands for all
 * blocking streams of its context. @actions of _end: RELEASE and DROP. With SPM_SYNC_WAIT, pools
 * give back what their threshold says (A13).
 *
 * Return: SPM_OK, SPM_E_UNKNOWN, SPM_E_HOST_MEMORY.
 */
enum spm_status spm_sync_begin(struct spm_model *model, struct spm_scope what,
                               struct spm_ticket *ticket);
void spm_sync_end(struct spm_model *model, struct spm_ticket *ticket, enum spm_sync how, bool ok,
                  struct spm_actions *actions);

/* stamps */

/** spm_stamp_recorded() - the outcome of SPM_ACT_RECORD; if @ok is false the stamp is forgotten (no
 * DROP follows, and actions that name it are void) and the blocks it stood for are unstamped again.
 * Return: SPM_OK, SPM_E_UNKNOWN. */
enum spm_status spm_stamp_recorded(struct spm_model *model, spm_stamp stamp, bool ok,
                                   struct spm_actions *actions);

/** spm_stamp_done() - the device has passed the stamp. Return: SPM_OK, SPM_E_UNKNOWN (also when
 * the stamp was dropped meanwhile; harmless). */
enum spm_status spm_stamp_done(struct spm_model *model, spm_stamp stamp,
                               struct spm_actions *actions);

/* pools */

enum spm_pool_kind {
        SPM_POOL_SYNC, /* cuMemAlloc: usable anywhere at once, so reused only when ready (F1, I8) */
        SPM_POOL_ASYNC, /* cuMemAllocAsync: usable in stream order (A1) */
        SPM_POOL_HOST,  /* pinned host memory: reused only when ready */
};

enum spm_provider {
        SPM_PROVIDER_CALLER, /* segments come by SPM_ACT_GROW */
        SPM_PROVIDER_MODEL,  /* the model makes up addresses: a CPU-only pool needs no driver (A6,
                                A25) */
};

/*
 * How much memory a pool may hold beyond the most that was in use at once, and what it does to
 * stay there: before it grows past that it moves idle segments to where they are needed, which
 * costs an unmapping and a mapping each.
 *
 *   mode       slack                segments             blocks from slabs
 *   balanced   1/64 + a segment     1/32 of the pool,    up to 32 KiB
 *                                   2 MiB to 32 MiB
 *   speed      1/12 + a segment     likewise             up to 32 KiB
 *   tight      none                 2 MiB                up to 4 KiB
 */
enum spm_growth { SPM_GROWTH_BALANCED, SPM_GROWTH_SPEED, SPM_GROWTH_TIGHT };

struct spm_pool_config {
        enum spm_pool_kind kind;
        enum spm_provider provider;
        int device;          /* >= 0 */
        spm_context context; /* owner of a SYNC or HOST pool; 0 for a pool that outlives contexts */
        bool is_default;     /* spm_pool_destroy() refuses it */
        bool release_needs_idle; /* segments are given back only right after a context
                                  * synchronisation, or when out of memory (F10) */
        size_t initial_size; /* reserved at creation (MODEL provider), else at the first growth */
        size_t max_size;     /* cap on reserved bytes; 0 for none */
        size_t release_threshold;
        size_t keep; /* free bytes kept at synchronisations whatever the threshold says */
        /* Pending bytes of a SYNC or HOST pool above which an allocation waits for the oldest batch
         * rather than grow (O3). 0 means the default: the larger of 64 MiB and an eighth of the
         * live peak. */
        size_t pending_limit;
        enum spm_growth growth;
        /* Addresses that the caller has reserved for the pool, multiples of the grain. 0: none,
         * each segment is by itself. A MODEL provider makes up a range of its own. */
        uint64_t range_base;
        uint64_t range_size;
        size_t grain;        /* segments are multiples of this; 0 means 2 MiB; a power of two */
        size_t segment_size; /* the most that is obtained at once for small blocks; 0: by @growth */
        /* Blocks up to this size share slabs; a power of two; 0: by @growth; at most @align: no
         * slabs. */
        size_t small_size;
        /* Memory that was idle for so long is given back by spm_tick(), in nanoseconds; 0: never.
         */
        uint64_t decay;
        size_t align;      /* of every block; 0 means 512; a power of two */
        size_t large_size; /* blocks larger than this are aligned to large_align; 0 for none */
        size_t large_align;
};

/**
 * spm_pool_create()
 *
 * Return: SPM_OK, SPM_E_INVALID_VALUE (initial_size > max_size, release_threshold > max_size when
 * max_size is not 0, an alignment that is no power of two), SPM_E_INVALID_DEVICE (device < 0),
 * SPM_E_UNKNOWN (context), SPM_E_HOST_MEMORY. (A2, A3, A4)
 */
enum spm_status spm_pool_create(struct spm_model *model, const struct spm_pool_config *config,
                                spm_pool *pool);

/**
 * spm_pool_destroy() - no further allocation; what is live stays until it is freed (E7)
 *
 * Return: SPM_OK, SPM_AGAIN (more to release), SPM_E_INVALID_VALUE (a default pool), SPM_E_UNKNOWN.
 */
enum spm_status spm_pool_destroy(struct spm_model *model, spm_pool pool,
                                 struct spm_actions *actions);

/** spm_pool_get_config() - as now in force; the threshold follows spm_pool_set_attribute(). */
enum spm_status spm_pool_get_config(const struct spm_model *model, spm_pool pool,
                                    struct spm_pool_config *config);

/* Numbers are those of CUmemPool_attribute (cuda.h). */
enum spm_pool_attribute {
        SPM_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES = 1,
        SPM_ATTR_REUSE_ALLOW_OPPORTUNISTIC = 2,
        SPM_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3,
        SPM_ATTR_RELEASE_THRESHOLD = 4,
        SPM_ATTR_RESERVED_MEM_CURRENT = 5,
        SPM_ATTR_RESERVED_MEM_HIGH = 6,
        SPM_ATTR_USED_MEM_CURRENT = 7,
        SPM_ATTR_USED_MEM_HIGH = 8,
};

/** spm_pool_set_attribute() - Return: SPM_OK, SPM_E_READ_ONLY (a CURRENT value, or a HIGH value
 * to anything but 0, which makes it the current one), SPM_E_INVALID_VALUE (no such attribute),
 * SPM_E_UNKNOWN. (A12) */
enum spm_status spm_pool_set_attribute(struct spm_model *model, spm_pool pool,
                                       enum spm_pool_attribute attribute, uint64_t value);
enum spm_status spm_pool_get_attribute(const struct spm_model *model, spm_pool pool,
                                       enum spm_pool_attribute attribute, uint64_t *value);

enum spm_access { SPM_ACCESS_NONE, SPM_ACCESS_READ, SPM_ACCESS_READ_WRITE };

/** spm_pool_set_access() - what @peer may do with the pool's memory. Return: SPM_OK,
 * SPM_E_INVALID_DEVICE (the pool's own device, or < 0), SPM_E_UNKNOWN, SPM_E_HOST_MEMORY. (A48) */
enum spm_status spm_pool_set_access(struct spm_model *model, spm_pool pool, int peer,
                                    enum spm_access access);
enum spm_status spm_pool_get_access(const struct spm_model *model, spm_pool pool, int peer,
                                    enum spm_access *access);

/**
 * spm_trim() - give back ready memory, keeping at least @keep reserved bytes (A37)
 * @released: return argument, bytes asked to be released by this call; may be NULL
 *
 * Live and pending blocks are never released. Only whole segments are.
 *
 * Return: SPM_OK, SPM_AGAIN (more to release: carry out, call again), SPM_E_UNKNOWN.
 */
enum spm_status spm_trim(struct spm_model *model, spm_pool pool, size_t keep, size_t *released,
                         struct spm_actions *actions);

/**
 * spm_tick() - time passes
 * @now: nanoseconds of any clock that only grows
 *
 * Pools with a decay give back idle memory: what exceeds the most that was in use during the last
 * decay time, little by little. Call it every tenth of the shortest decay or so.
 *
 * Return: SPM_OK, SPM_AGAIN (more to release: carry out, call again).
 */
enum spm_status spm_tick(struct spm_model *model, uint64_t now, struct spm_actions *actions);

/* segments */

/**
 * spm_segment_add() - the answer to SPM_ACT_GROW, or memory given on the caller's own account
 * @base:   not 0, a multiple of the pool's grain; inside the pool's range or outside of it
 * @size:   a multiple of the pool's grain
 * @cookie: handed back in SPM_ACT_RELEASE
 *
 * Return: SPM_OK, SPM_E_INVALID_VALUE (overlap with another segment, not a multiple),
 * SPM_E_OUT_OF_MEMORY (past max_size), SPM_E_UNKNOWN, SPM_E_HOST_MEMORY.
 */
enum spm_status spm_segment_add(struct spm_model *model, spm_pool pool, uint64_t base, size_t size,
                                void *cookie, spm_segment *segment);

/* allocations */

/*
 * One request climbs a ladder (O1): ready blocks, order the program made, polls, growth, waits.
 * It remembers where it stands between calls of spm_alloc(). Fields below the line are the model's,
 * and zero before the first call.
 */
struct spm_request {
        spm_pool pool;
        spm_stream stream; /* 0 for SYNC and HOST pools */
        size_t size;
        bool may_wait;                 /* host waits are allowed when memory is short */
        struct spm_magazine *magazine; /* to be filled on the way; NULL for none */
        /* -- */
        uint32_t stage;
        uint32_t tries;
        uint32_t batch; /* the oldest batch it has waited for */
};

struct spm_allocation {
        uint64_t address;    /* start of the block */
        size_t size;         /* as asked for */
        size_t reserved;     /* as taken from the segment */
        uint64_t generation; /* never given twice (B3) */
        uint64_t buffer_id;  /* never given twice, and none of the driver's own (Q5) */
        spm_pool pool;
        spm_stream stream;   /* it was allocated on, 0 for SYNC and HOST */
        spm_segment segment; /* the one it begins in */
        void *cookie;        /* of the segment */
        uint64_t segment_base;
        size_t segment_size;
        uint64_t user; /* see spm_set_user() */
        bool exported;
        bool reused; /* served from a freed block, not from fresh memory */
};

/**
 * spm_alloc() - one step of a request
 *
 * With SPM_OK, @actions may still hold RECORD and WAIT_STREAM: carry them out before the program
 * gets the address (G3, H6). If one fails: spm_alloc_undo().
 *
 * Return: SPM_OK; SPM_AGAIN: carry out, report, call again with the same request;
 * SPM_E_INVALID_VALUE (size 0, or overflow when rounded); SPM_E_OUT_OF_MEMORY; SPM_E_UNKNOWN
 * (pool, or stream of an ASYNC pool); SPM_E_HOST_MEMORY.
 */
enum spm_status spm_alloc(struct spm_model *model, struct spm_request *request,
                          struct spm_allocation *allocation, struct spm_actions *actions);

/** spm_grow_failed() - the answer to SPM_ACT_GROW when nothing was to be had. */
void spm_grow_failed(struct spm_model *model, struct spm_request *request);

/** spm_alloc_undo() - the program did not get this block after all. Nothing is counted, and the
 * block waits until everything its stream and context had submitted is complete. */
enum spm_status spm_alloc_undo(struct spm_model *model, uint64_t address,
                               struct spm_actions *actions);

enum spm_free_kind {
        SPM_FREE_SYNC,  /* cuMemFree: an S block waits for everything its context had submitted; an
                         * A block for what it waited for when it was allocated (A5, A6) */
        SPM_FREE_ASYNC, /* cuMemFreeAsync: in the order of @stream (A2, A4) */
};

/**
 * spm_free()
 * @address:    start of a live block
 * @generation: of the allocation, or 0 for "whichever lives there"
 * @stream:     for SPM_FREE_ASYNC; need not be the one it was allocated on (A34)
 * @freed:      return argument, what was freed; may be NULL
 * @actions:    RECORD when a batch is full
 *
 * Return: SPM_OK; SPM_E_DOUBLE_FREE, SPM_E_FOREIGN, SPM_E_INTERIOR, SPM_E_STALE, SPM_E_UNKNOWN
 * (stream): nothing has changed.
 */
enum spm_status spm_free(struct spm_model *model, uint64_t address, uint64_t generation,
                         enum spm_free_kind kind, spm_stream stream, struct spm_allocation *freed,
                         struct spm_actions *actions);

/** spm_find() - the live block that holds @address, also inside it. Return: SPM_OK,
 * SPM_E_DOUBLE_FREE (in one of our segments, but not live), SPM_E_FOREIGN. */
enum spm_status spm_find(const struct spm_model *model, uint64_t address,
                         struct spm_allocation *allocation);

/** spm_set_user() - 64 bits of the caller's own, kept with a live block. Return: SPM_OK,
 * SPM_E_FOREIGN. */
enum spm_status spm_set_user(struct spm_model *model, uint64_t address, uint64_t user);

/** spm_export() - the block's memory is known outside: it is never served again (Q3, I10).
 * Return: SPM_OK, SPM_E_FOREIGN. */
enum spm_status spm_export(struct spm_model *model, uint64_t address);

/** spm_is_ready() - has the stream it was allocated on passed the allocation, as far as the host
 * knows? (A14) False for an unknown address. */
bool spm_is_ready(const struct spm_model *model, uint64_t address);

/** spm_is_ready_on() - may work on @consumer that waits for @event use the block? Transitive
 * through events; true without an event on the allocating stream itself. (A16, A17) */
bool spm_is_ready_on(const struct spm_model *model, uint64_t address, spm_stream consumer,
                     spm_event event);

/* magazines */

/*
 * A magazine holds freed blocks of one pool for one stream and one thread. Its owner, one thread
 * at a time, allocates from it and frees into it without the caller's lock, while other threads
 * call the model under theirs. What the model does under pressure to get its blocks back, it can
 * do while the owner sleeps.
 *
 * A block that is in a magazine is free (a second free is SPM_E_DOUBLE_FREE), counts as pending,
 * and is served on its stream only, in stream order. All figures stay exact.
 *
 * Only ASYNC pools can have them, and no stream that is legacy.
 */
struct spm_magazine;

/** spm_magazine_new() - under the lock. Return: SPM_OK, SPM_E_UNKNOWN (pool or stream),
 * SPM_E_INVALID_VALUE (kind of the pool or stream), SPM_E_HOST_MEMORY. */
enum spm_status spm_magazine_new(struct spm_model *model, spm_pool pool, spm_stream stream,
                                 struct spm_magazine **magazine);

/** spm_magazine_end() - under the lock; its blocks go back to the pool. A magazine must end before
 * its stream is retired, its pool destroyed or its context removed, or is emptied by that and
 * serves nothing any more. */
void spm_magazine_end(struct spm_model *model, struct spm_magazine *magazine);

/** spm_magazine_alloc() - without the lock. Return: false if there is nothing: spm_alloc(), with
 * the magazine in its request. */
bool spm_magazine_alloc(struct spm_magazine *magazine, size_t size,
                        struct spm_allocation *allocation);

/**
 * spm_magazine_free() - without the lock; the arguments of spm_free()
 *
 * Return: false if the block is not one for this magazine, or the call is a mistake: spm_free()
 * says which.
 */
bool spm_magazine_free(struct spm_magazine *magazine, uint64_t address, uint64_t generation,
                       struct spm_allocation *freed);

/* figures */

struct spm_stats {
        /* A block counts as used from its allocation to its free call, by the size asked for
         * (U4); reserved is whole segments; used <= reserved, current <= high. */
        uint64_t reserved_current, reserved_high;
        uint64_t used_current, used_high;
        uint64_t live_blocks, live_blocks_high;
        uint64_t rounded_current; /* bytes of live blocks as taken from segments */
        uint64_t pending_bytes;   /* freed, not ready: equals the sum over streams and batches */
        uint64_t ready_bytes;     /* free for anyone */
        uint64_t sealed_bytes;    /* freed after spm_export(): served to nobody;
                                   * rounded + pending + ready + sealed == reserved */
        uint64_t largest_ready;
        uint64_t segments;
        /* Since creation; a hit is an allocation from memory that had been freed before. */
        uint64_t allocs, frees, hits, grows, releases;
        uint64_t moves;      /* releases to make room for a growth elsewhere in the range */
        uint64_t host_bytes; /* of the model's records, for all pools together */
        uint64_t undone;
};

enum spm_status spm_stats(const struct spm_model *model, spm_pool pool, struct spm_stats *stats);

/** spm_reset_peaks() - every high becomes the current value (A47). */
enum spm_status spm_reset_peaks(struct spm_model *model, spm_pool pool);

/** spm_pending_on() - bytes freed on @stream that are not ready. */
enum spm_status spm_pending_on(const struct spm_model *model, spm_stream stream, uint64_t *bytes);

/** spm_each_live() - call @visit for every live block of @pool (0: of all), in address order;
 * stop when it returns false. @visit must not call the model. */
void spm_each_live(const struct spm_model *model, spm_pool pool,
                   bool (*visit)(const struct spm_allocation *allocation, void *user), void *user);

/**
 * spm_check() - every invariant I1-I11, by name
 * @text: receives the name and the numbers of the first that is broken; may be NULL
 *
 * Return: true if all hold. Walks everything: for tests and debug builds.
 */
bool spm_check(const struct spm_model *model, char *text, size_t text_size);

/** spm_hash() - of all addresses, sizes and figures; equal inputs give equal hashes (A19). */
uint64_t spm_hash(const struct spm_model *model);

/** spm_dump() - the state as text, line by line; for a debugger. */
void spm_dump(const struct spm_model *model, void (*line)(const char *text, void *user),
              void *user);

#ifdef __cplusplus
}
#endif

#endif
