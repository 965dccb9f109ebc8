/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges -- in which of its own phases is the program?
 *
 * The layouts and numbers are NVTX 3's, which it keeps for all versions of it
 * (nvtxDetail/nvtxTypes.h, nvToolsExt.h); it is no dependency of ours, so they
 * are written down here. Each copy of NVTX in a process, one a library that uses it, calls in.
 *
 * Ranges that have a start and an end in no order (nvtxRangeStart) belong to no
 * thread, and are left out.
 */

#include "track/ranges.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <wchar.h>

#include "base/lock.h"
#include "track/stack.h"

#define DEEPEST  16 /* of a thread; what is pushed beyond is counted only */
#define NAME_MAX 128

enum { CALLBACKS = 1 };                                             /* NvtxExportTableID */
enum { CORE = 1, CORE2 = 5 };                                       /* NvtxCallbackModule */
enum { PUSH_EX = 8, PUSH, PUSH_WIDE, POP };                         /* NvtxCallbackIdCore */
enum { DOMAIN_PUSH = 4, DOMAIN_POP, REGISTER = 10, REGISTER_WIDE }; /* NvtxCallbackIdCore2 */
enum { MESSAGE = 1, MESSAGE_WIDE, MESSAGE_REGISTERED };             /* nvtxMessageType_t */

/* NvtxExportTableCallbacks */
struct callbacks {
        size_t size;
        int (*get_table)(int module, void ****table, unsigned int *size);
};

/* nvtxEventAttributes_v2, as far as the name. */
struct attributes {
        uint16_t version, size;
        uint32_t category;
        int32_t color_type;
        uint32_t color;
        int32_t payload_type, reserved;
        uint64_t payload;
        int32_t message_type;
        union {
                const char *text;
                const wchar_t *wide;
                const char *registered; /* what add_name() returned */
        } message;
};

/* Of one thread. */
static __thread struct {
        int depth;
        const char *name[DEEPEST];
} ranges __attribute__((tls_model("initial-exec")));

const char *sp_ranges_innermost(void)
{
        int depth = ranges.depth < DEEPEST ? ranges.depth : DEEPEST;

        return depth > 0 ? ranges.name[depth - 1] : NULL;
}

static const char *narrow(const wchar_t *wide, char *bytes)
{
        size_t length = 0;

        for (; wide && *wide && length < NAME_MAX - 1; wide++)
                bytes[length++] = *wide < 0x80 ? (char)*wide : '?'; // NOLINT: one byte
        bytes[length] = '\0';
        return bytes;
}

/* Return: the level of the range, from 0, as nvtxRangePush() has it. */
static int push(const char *name)
{
        if (ranges.depth < DEEPEST)
                ranges.name[ranges.depth] = name ? sp_stack_text(name) : NULL;
        return ranges.depth++;
}

/* As NVTX: of a pop too many, a negative number. */
static int pop(void)
{
        return ranges.depth > 0 ? --ranges.depth : -1;
}

static int push_attributes(const struct attributes *attributes)
{
        char bytes[NAME_MAX];

        if (!attributes || attributes->size < sizeof(*attributes))
                return push(NULL);
        switch (attributes->message_type) {
        case MESSAGE:
                return push(attributes->message.text);
        case MESSAGE_WIDE:
                return push(narrow(attributes->message.wide, bytes));
        case MESSAGE_REGISTERED:
                return push(attributes->message.registered);
        default:
                return push(NULL);
        }
}

static int push_wide(const wchar_t *name)
{
        char bytes[NAME_MAX];

        return push(narrow(name, bytes));
}

static int push_in_domain(const void *domain, const struct attributes *attributes)
{
        (void)domain;
        return push_attributes(attributes);
}

static int pop_in_domain(const void *domain)
{
        (void)domain;
        return pop();
}

static const char *add_name(const void *domain, const char *name)
{
        (void)domain;
        return name ? sp_stack_text(name) : NULL;
}

static const char *add_wide_name(const void *domain, const wchar_t *name)
{
        char bytes[NAME_MAX];

        (void)domain;
        return sp_stack_text(narrow(name, bytes));
}

/* A table of places where pointers to functions go. */
static void fill(void **const *table, unsigned int size, unsigned int index, void (*function)(void))
{
        if (index < size && table[index])
                memcpy(table[index], &function, sizeof(function));
}

#define FILL(index, function) fill((void **const *)table, size, index, (void (*)(void))(function))

__attribute__((visibility("default"))) int
InitializeInjectionNvtx2(const void *(*get_export_table)(unsigned int number))
{
        const struct callbacks *callbacks = get_export_table ? get_export_table(CALLBACKS) : NULL;
        unsigned int size;
        void ***table;

        if (!callbacks || callbacks->size < sizeof(*callbacks) || !sp_stack_has_ranges())
                return 0;
        /* Ranges may be pushed, and the process forked, before CUDA is started, or without it. */
        pthread_atfork(NULL, NULL, sp_lock_all_reset);
        if (callbacks->get_table(CORE, &table, &size)) {
                FILL(PUSH_EX, push_attributes);
                FILL(PUSH, push);
                FILL(PUSH_WIDE, push_wide);
                FILL(POP, pop);
        }
        if (callbacks->get_table(CORE2, &table, &size)) {
                FILL(DOMAIN_PUSH, push_in_domain);
                FILL(DOMAIN_POP, pop_in_domain);
                FILL(REGISTER, add_name);
                FILL(REGISTER_WIDE, add_wide_name);
        }
        return 1;
}
