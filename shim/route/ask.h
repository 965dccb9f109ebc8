/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_ROUTE_ASK_H
#define SP_ROUTE_ASK_H

/*
 * Ask -- the program wants device memory, and the driver is to give it
 *
 *   struct sp_ask ask = sp_ask_for(SP_KIND_ARRAY, bytes);
 *
 *   result = SP_ASK_FOR(&ask, sp_driver.cuArrayCreate_v2(handle, desc));
 *   if (result == CUDA_SUCCESS)
 *           sp_ask_write_down(&ask, address, sp_context_current(), 0);
 *
 * The limit is asked before the driver, and once more after the pools have
 * given back what they hold idle (O1); the driver likewise (O2). What the limit
 * refuses is answered as the driver answers when it is full, and the driver is
 * not called. What it would say to anybody just now, because of a capture, a sticky
 * error or the end of the process, comes first; and what is wrong with the
 * arguments is for the driver to say: a request for 0 bytes, or for more than
 * the device has, is its own to refuse, but for one of the pool's kinds, where what it
 * says is known and takes it milliseconds (ask.c).
 *
 * Under a limit, what the driver would take more memory for than counts (pages of
 * small allocations, its own pools) it is not asked for where the pool had none:
 * by then the pool has waited, and taken from the driver all that it could have.
 *
 * Every refusal for lack of memory is counted, and told about (refusal.h).
 */

#include <stdbool.h>
#include <stddef.h>

#include "driver/driver.h"
#include "route/perform.h"
#include "track/ledger.h"
#include "track/stream.h"

struct sp_ask {
        enum sp_kind kind;
        size_t bytes;
        int device;      /* -1 if there is none: then the driver refuses */
        CUstream stream; /* of an asynchronous allocation */
        bool pooled;     /* the pool could have served, and had none */
        size_t counted;  /* bytes that were taken from the limit */
        bool unasked;    /* refused, and the driver was not asked */
        bool by_limit;   /* it was the limit that refused */
};

/** sp_ask_for() - in the current context. */
struct sp_ask sp_ask_for(enum sp_kind kind, size_t bytes);

/** sp_ask_on() - on the stream that @handle means. */
struct sp_ask sp_ask_on(const struct sp_stream *stream, CUstream handle, size_t bytes);

/** sp_ask_limit() - CUDA_SUCCESS if the driver is to be asked, or what the program is told. */
CUresult sp_ask_limit(struct sp_ask *ask);

/** sp_ask_ended() - @result is what the program is told. */
void sp_ask_ended(struct sp_ask *ask, CUresult result);

/** sp_ask_settle() - it succeeded, and took @bytes. False if that is more than was thought, and too
 * much: then it is to be given back, and the program is refused. */
bool sp_ask_settle(struct sp_ask *ask, size_t bytes);

/**
 * sp_ask_write_down() - it succeeded, and is at @address; 0 is no address
 * @context: whose it is, or NULL
 * @shadow: what the pool would have done, where the mirror was told (sp_mirror_alloc()), or 0
 */
void sp_ask_write_down(const struct sp_ask *ask, uint64_t address, const struct sp_context *context,
                       uint64_t shadow);

/* The result of @call, asked for as SP_ASK() does, or what the program is told without it. */
#define SP_ASK_FOR(ask, call)                                                                      \
        __extension__({                                                                            \
                CUresult told = sp_ask_limit(ask);                                                 \
                if (told == CUDA_SUCCESS)                                                          \
                        told = SP_ASK(call);                                                       \
                sp_ask_ended((ask), told);                                                         \
                told;                                                                              \
        })

#endif
