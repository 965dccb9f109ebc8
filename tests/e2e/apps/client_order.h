/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLIENT_ORDER_H
#define CLIENT_ORDER_H

/*
 * Client order -- what a recorded program made sure comes before what (client.c)
 *
 * A clock for every stream: how many of the steps of each other stream come before
 * its next one, by events, by the legacy stream, or because the host waited. What
 * the program never said is not known here, though a device may do it so.
 */

#include <stdbool.h>
#include <stdint.h>

#include "trace.h"

struct order {
        uint32_t streams;  /* and the legacy one */
        uint32_t *seen;    /* by stream: its clock; the stream's own entry counts its steps */
        uint32_t *host;    /* the clock of the program itself */
        uint32_t **event;  /* by event: the clock when it was recorded, or NULL */
        uint32_t events;   /* that there is room for */
        bool *is_blocking; /* by stream: is it in order with the legacy one? */
};

void order_init(struct order *order, const struct trace *trace);
void order_fini(struct order *order);

/** order_do() - any TRACE_ORDER or TRACE_QUERY but a launch. */
void order_do(struct order *order, const struct trace_event *event);

/** order_begin() - what comes before the stream's next step is known from here on. */
void order_begin(struct order *order, uint32_t stream);

/** order_step() - the stream does something. Return: which of its steps that is. */
uint32_t order_step(struct order *order, uint32_t stream);

/** order_next() - the number that order_step() would return. */
uint32_t order_next(const struct order *order, uint32_t stream);

/** order_is_before() - does that step of @from come before the next one of @stream? */
bool order_is_before(const struct order *order, uint32_t from, uint32_t step, uint32_t stream);

/** order_view() - the clock of a stream's next step, or with PEER_ANYWHERE of the host; a copy
 * that is the caller's. */
uint32_t *order_view(const struct order *order, uint32_t stream);

#endif
