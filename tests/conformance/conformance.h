/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

/*
 * Conformance -- what a driver answers, written down as text
 *
 * A case calls the driver and says what came back, on one line: return codes,
 * and facts that do not depend on addresses, times or the size of the machine.
 * The same program runs on the simulated driver and on the real one, alone and
 * under the shim, and the four texts are compared.
 *
 * Cases share processes, and several processes run at once. A case that leaves the driver unusable
 * has one of its own. A case that the real driver does not survive is listed with the reason and
 * never run; so is the reason where the shim answers otherwise on purpose.
 */

#include "cu.h"

enum conf_flags {
        CONF_ALONE = 1u << 0,   /* a process of its own */
        CONF_COLD = 1u << 1,    /* a process of its own, and the driver not yet started */
        CONF_DIFFERS = 1u << 2, /* the shim answers otherwise, for the reason given */
        CONF_KILLS = 1u << 3,   /* the real driver dies; never run */
        CONF_QUIET =
                1u << 4, /* while no other process uses the device: time or free memory counts */
};

struct conf_case {
        const char *name; /* group.case; NULL ends a list */
        void (*run)(void);
        unsigned flags;
        const char *why; /* for CONF_DIFFERS and CONF_KILLS */
};

extern const struct conf_case conf_memory[], conf_async[], conf_misuse[], conf_query[];
extern const struct conf_case conf_context[], conf_order[], conf_capture[], conf_graph[];
extern const struct conf_case conf_pool[], conf_kinds[], conf_vmm[], conf_lookup[];
extern const struct conf_case conf_process[], conf_reuse[], conf_pool_life[];

/* What every case finds, unless it is CONF_COLD. Written before the first case of a process. */
struct conf_common {
        CUdevice device;
        CUcontext context; /* primary, current */
        CUstream n1, n2;   /* non-blocking */
        CUstream b1, b2;   /* blocking */
        struct cu_kernels kernels;
};
extern struct conf_common conf;

/** conf_say() - add words to the line of the running case. */
void conf_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** conf_code() - add the return code of one call to the line, and hand it back. */
CUresult conf_code(const char *call, CUresult result);

/* CODE(MemFree, p) calls the driver, says "cuMemFree=0" and is the result. */
#define CODE(name, ...) conf_code("cu" #name, cu.name(__VA_ARGS__))

/** conf_on_thread() - run @work(@argument) on a new thread, with @context current if not NULL. */
void conf_on_thread(CUcontext context, void (*work)(void *), void *argument);

/** conf_cold_start() - for CONF_COLD cases: what the others find done. */
void conf_cold_start(void);

/* Some function is newer than the driver: say so and leave the case. */
#define NEED(name)                                                                                 \
        do {                                                                                       \
                if (!cu.name) {                                                                    \
                        conf_say("skipped: the driver has no cu" #name);                           \
                        return;                                                                    \
                }                                                                                  \
        } while (0)

#endif
