/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_H
#define SIM_H

/*
 * Simulated driver -- what its files share
 *
 * One lock guards everything in this library. Every exported function takes it
 * through SIM_ENTER and drops it on return; every sim_ function below expects
 * it held unless it says otherwise. A function that waits (named sim_wait_...)
 * drops the lock while it sleeps, so a caller looks its objects up again
 * afterwards or knows that nobody else may destroy them.
 *
 * The simulated device is a graph of operations (engine.c). An operation is
 * ready when all operations it depends on are done; it then runs for its
 * duration and takes effect at its end. Streams, events, the legacy barrier and
 * context-wide waits exist only as edges of that graph, drawn when the call is
 * made (order.c).
 *
 * Device memory is host memory at the same address: a CUdeviceptr may be cast
 * to a pointer as long as the allocation that holds it is live.
 */

#define __CUDA_API_VERSION_INTERNAL /* every symbol by its own name, old ones too */
#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Only the functions of cuda.h and control.h leave the library. */
#pragma GCC visibility push(hidden)

#define SIM_DEVICES_MAX 8

enum sim_magic {
        SIM_FREE_HANDLE = 0, /* a destroyed object; its memory waits to be the next one */
        SIM_CONTEXT = 0x51c0,
        SIM_STREAM,
        SIM_EVENT,
        SIM_GRAPH,
        SIM_GRAPH_EXEC,
        SIM_MODULE,
        SIM_POOL,
};

/* The first member of every object behind a handle; handles are never returned to malloc. */
struct sim_handle {
        enum sim_magic magic;
        struct sim_handle *next; /* in the list of destroyed ones, newest first */
};

struct sim_operation;
struct sim_capture;
struct sim_orphan;
struct sim_stream;
struct sim_event;
struct sim_pool; /* pool.c */

enum sim_context_state {
        SIM_CONTEXT_ALIVE,
        SIM_CONTEXT_RESET, /* primary: calls answer 709 until it is retained again */
        SIM_CONTEXT_GONE,
};

struct sim_device {
        int ordinal;
        size_t total_bytes;
        size_t used_bytes;           /* physical memory in use, as cuMemGetInfo sees it */
        size_t reserve_bytes;        /* neither in use nor to be had */
        size_t high_bytes;           /* the most of it, see control.h */
        struct sim_context *primary; /* same object for ever; its id changes at a reset */
        unsigned int primary_references;
        unsigned int primary_flags;
        struct sim_pool *default_pool;
        struct sim_pool *current_pool;
};

struct sim_context {
        struct sim_handle handle;
        uint64_t id; /* never repeats */
        struct sim_device *device;
        enum sim_context_state state;
        unsigned int flags;
        bool primary;
        /* Not null: a green context of that primary; then a CUgreenCtx is this address, too. */
        struct sim_context *green_parent;
        uint64_t peers;  /* bit n: access to device n was enabled */
        CUresult sticky; /* not 0: what every call answers (sim_poison) */

        /* Owned by stream.c. */
        struct sim_stream *legacy;
        struct sim_stream *streams; /* all live ones but the legacy stream */
        struct sim_orphan *orphans; /* last operations of destroyed streams */
        struct sim_event *events;
        struct sim_operation *fence; /* the newest cuCtxWaitEvent, or null */
        unsigned int captures;       /* open ones */
};

enum sim_stream_kind {
        SIM_STREAM_LEGACY,
        SIM_STREAM_PER_THREAD,
        SIM_STREAM_CREATED,
};

struct sim_stream {
        struct sim_handle handle;
        uint64_t id; /* never repeats */
        enum sim_stream_kind kind;
        struct sim_context *context;
        unsigned int flags;
        int priority;
        bool blocking;              /* takes part in the legacy barrier */
        uint64_t thread;            /* of a per-thread stream: sim_thread() */
        struct sim_operation *tail; /* the newest operation, referenced; null: never used */
        struct sim_capture *capture;
        struct sim_stream *next;
};

struct sim_event {
        struct sim_handle handle;
        struct sim_context *context;
        unsigned int flags;
        struct sim_operation *snapshot; /* what it waits for, referenced; null: never recorded */
        uint64_t stream;                /* id of the stream it was recorded on, 0: context wide */
        uint64_t capture;               /* recorded inside the capture of this id; 0: outside */
        int mark;                       /* and stands for this point of it */
        struct sim_event *next;
};

/* ---- entering and leaving (init.c, fault.c) ---- */

enum sim_need {
        SIM_NEED_INIT,    /* cuInit has run; 3 otherwise */
        SIM_NEED_NOTHING, /* cuInit, cuDriverGetVersion, cuGetProcAddress, cuGetErrorName... */
};

struct sim_call {
        const char *symbol;
        bool locked;
};

/*
 * Counts and logs the call; answers 3 in a fork child or before cuInit, 4 after
 * the driver's atexit, 800 inside a host function, or the injected fault;
 * otherwise takes the lock, notes the call in *call and returns 0. The lock is
 * dropped by sim_leave(), which the compiler calls when the function returns.
 */
CUresult sim_enter(struct sim_call *call, const char *symbol, enum sim_need need);
void sim_leave(struct sim_call *call);
/* In a fork child of a process with a driver: there is none here. Needs no lock. */
bool sim_in_child(void);

#define SIM_ENTER_AS(name, need)                                                                   \
        struct sim_call sim_call __attribute__((cleanup(sim_leave))) = {.locked = false};          \
        CUresult sim_refused = sim_enter(&sim_call, name, need);                                   \
                                                                                                   \
        if (sim_refused != CUDA_SUCCESS)                                                           \
        return sim_refused
#define SIM_ENTER(symbol) SIM_ENTER_AS(#symbol, SIM_NEED_INIT)

/*
 * SIM_STREAM_PAIR defines the plain symbol and its _ptsz twin from one body,
 * which sees the stream argument with 0 already turned into CU_STREAM_LEGACY or
 * CU_STREAM_PER_THREAD. SIM_DEFAULT_PAIR does it for the _ptds calls, which
 * have no stream argument: the body gets one named `stream`, in front.
 *
 *   SIM_STREAM_PAIR(cuStreamQuery, stream, (CUstream stream), (stream))
 *   {
 *           ...
 *   }
 */
#define SIM_STREAM_PAIR(symbol, stream, params, args)                                              \
        static CUresult on_##symbol params;                                                        \
        CUresult CUDAAPI symbol params                                                             \
        {                                                                                          \
                SIM_ENTER(symbol);                                                                 \
                stream = stream ? stream : CU_STREAM_LEGACY;                                       \
                return on_##symbol args;                                                           \
        }                                                                                          \
        CUresult CUDAAPI symbol##_ptsz params                                                      \
        {                                                                                          \
                SIM_ENTER(symbol##_ptsz);                                                          \
                stream = stream ? stream : CU_STREAM_PER_THREAD;                                   \
                return on_##symbol args;                                                           \
        }                                                                                          \
        static CUresult on_##symbol params

#define SIM_UNPACK(...) __VA_ARGS__
#define SIM_DEFAULT_PAIR(symbol, params, args)                                                     \
        static CUresult on_##symbol(CUstream stream, SIM_UNPACK params);                           \
        CUresult CUDAAPI symbol params                                                             \
        {                                                                                          \
                SIM_ENTER(symbol);                                                                 \
                return on_##symbol(CU_STREAM_LEGACY, SIM_UNPACK args);                             \
        }                                                                                          \
        CUresult CUDAAPI symbol##_ptds params                                                      \
        {                                                                                          \
                SIM_ENTER(symbol##_ptds);                                                          \
                return on_##symbol(CU_STREAM_PER_THREAD, SIM_UNPACK args);                         \
        }                                                                                          \
        static CUresult on_##symbol(CUstream stream, SIM_UNPACK params)

/* ---- the lock, threads, handles, fatal errors (base.c) ---- */

extern pthread_mutex_t sim_mutex;

uint64_t sim_thread(void);       /* a number of the calling thread, never reused; needs no lock */
bool sim_in_host_function(void); /* the calling thread runs one; needs no lock (host.c) */
void sim_engine_start(void);     /* by cuInit; reads SIM_TIME (engine.c) */
void sim_engine_child(void);     /* in a fork child: a new lock, no helper threads (engine.c) */
uint64_t sim_unique(void);       /* ids of streams, contexts, buffers; needs no lock */

/* The program did what makes the real driver crash: print, then abort. */
_Noreturn void sim_abort(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Objects of one magic; destroyed ones come back newest first (U20). @bytes is the same always. */
void *sim_handle_new(enum sim_magic magic, size_t bytes);
void sim_handle_free(struct sim_handle *handle);
/* Aborts unless it is a live object of that magic: what the real driver may crash on. */
void sim_handle_check(const void *handle, enum sim_magic magic);

/* ---- devices and contexts (context.c, init.c) ---- */

int sim_device_count(void);
struct sim_device *sim_device(CUdevice ordinal); /* null: no such device */

/* The calling thread's current context; 201 without one, 709 after a reset, or its sticky error. */
CUresult sim_current(struct sim_context **context);
/* From a handle; 201 for null is the caller's. A destroyed handle aborts. */
CUresult sim_context_resolve(CUcontext handle, struct sim_context **context);

/* By stream.c, called by context.c: a context is born; it dies (waits for its work first). */
void sim_context_open(struct sim_context *context);
void sim_context_close(struct sim_context *context);
/* By launch.c: forgets the modules of a dying context. */
void sim_modules_close(struct sim_context *context);

/* ---- streams and order (stream.c, order.c) ---- */

/*
 * From a handle that SIM_STREAM_PAIR has normalised. The special handles need a
 * current context (201) and mean its legacy stream or the caller's own one. A
 * destroyed handle aborts.
 */
CUresult sim_stream_resolve(CUstream handle, struct sim_stream **stream);

/* A marker operation: takes no time, is done when everything before it on the stream is. Returned
 * with a reference (sim_operation_put). Null when the stream never had any work. */
struct sim_operation *sim_mark(struct sim_stream *stream, const char *name);
bool sim_operation_done(const struct sim_operation *operation); /* null is done */
void sim_operation_put(struct sim_operation *operation);        /* null is fine */
/* Does the stream's next operation run after this one, by edges the program made? */
bool sim_operation_before(const struct sim_operation *operation, struct sim_stream *stream);
/* Makes the stream's next operation wait for it: the pool's internal dependency. */
void sim_stream_follow(struct sim_stream *stream, struct sim_operation *operation);

bool sim_stream_is_idle(struct sim_stream *stream); /* legacy: and its blocking streams */
void sim_wait_stream(struct sim_stream *stream);
void sim_wait_context(struct sim_context *context); /* cuMemFree's barrier: every stream of it */
void sim_wait_operation(struct sim_operation *operation);

/* ---- capture (capture.c, graph.c) ---- */

/* For calls of the first two rows of table 3A: 900 and the captures in the way are dead, or 0. */
CUresult sim_capture_unsafe(void);
/* For calls that touch a whole context, illegal in every mode. */
CUresult sim_capture_context(struct sim_context *context);
bool sim_is_capturing(const struct sim_stream *stream);
/* cuMemAllocAsync and cuMemFreeAsync on a capturing stream: nodes. 901 when it is invalidated, 1
 * for a pointer that no allocation node of this capture made (the capture survives). */
CUresult sim_capture_alloc(struct sim_stream *stream, size_t bytes, CUdeviceptr *address);
CUresult sim_capture_free(struct sim_stream *stream, CUdeviceptr address);

/* ---- memory, as the operations see it (memory.c and its neighbours) ---- */

enum sim_memory_kind {
        SIM_MEMORY_DEVICE, /* cuMemAlloc, cuMemAllocPitch */
        SIM_MEMORY_POOL,   /* cuMemAllocAsync, cuMemAllocFromPoolAsync */
        SIM_MEMORY_MANAGED,
        SIM_MEMORY_PINNED,
        SIM_MEMORY_REGISTERED,
        SIM_MEMORY_VMM,   /* one mapping */
        SIM_MEMORY_GRAPH, /* an allocation node's */
        SIM_MEMORY_IMPORTED,
};

struct sim_allocation {
        CUdeviceptr base;
        size_t bytes;    /* as requested */
        size_t reserved; /* as rounded */
        enum sim_memory_kind kind;
        struct sim_context *context; /* null where 3C says so */
        struct sim_device *device;   /* null: host memory */
        uint64_t buffer_id;
        struct sim_pool *pool;
        bool freeing; /* cuMemFreeAsync was called: dead to the program, mapped until its turn */
};

/* The live allocation that holds the address, or null. */
struct sim_allocation *sim_memory_find(CUdeviceptr address);
/* Is every byte inside one live allocation (or adjoining VMM mappings)? 0 or 1 (M31). */
CUresult sim_memory_check(CUdeviceptr address, size_t bytes);
/* Still mapped, though perhaps freed: may an operation dereference it? */
bool sim_memory_is_mapped(CUdeviceptr address, size_t bytes);
/* The bytes are about to be unmapped: aborts if an operation runs in them (engine.c). */
void sim_engine_unmap(uint64_t address, size_t bytes);

/* Memory of graphs: taken when an allocation node is made, given back with the graph. 2 if full. */
CUresult sim_graph_memory_take(struct sim_device *device, size_t bytes, CUdeviceptr *address);
void sim_graph_memory_give(CUdeviceptr address);
/* The program frees what a launch allocated, in stream order or now (null); 1 if none did
 * (graph_memory.c). */
CUresult sim_graph_memory_free(CUdeviceptr address, struct sim_stream *stream);

/* Called by sync calls after they have waited, for the pools' release rules (U5): exactly one of
 * the two is not 0. By pool.c. */
void sim_pool_synchronized(struct sim_context *context, uint64_t stream_id);

/* ---- the oracle (oracle.c) ---- */

enum sim_level {
        SIM_LEVEL_PROGRAM, /* told through control.h; where it knows an owner, it decides */
        SIM_LEVEL_DRIVER,  /* the simulated driver's own allocations */
};

/* An owner is born and dies. Two living owners of one byte on one level abort. */
void sim_owner_begin(enum sim_level level, uint64_t address, size_t bytes, const char *what);
void sim_owner_end(enum sim_level level, uint64_t address);

#pragma GCC visibility pop

#endif
