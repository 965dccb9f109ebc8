/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI client -- which call of the driver caused what the device did
 *
 * A library that the driver loads by itself: CUDA_INJECTION64_PATH names it. It
 * notes the name of every driver function that is entered, has CUPTI record every
 * kernel, copy and set that the device executed, and joins the two by CUPTI's
 * correlation number. At exit it writes to $SUBMISSIONS_FILE
 *
 *   KIND FUNCTION COUNT      kernel, copy or set; "-" for no function that is known
 *   lost - COUNT             records that CUPTI had no room for
 *
 * scripts/gpu-check compares the functions with those that the shim hooks.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cuda.h>
#include <cupti.h>

#define BUFFER_BYTES ((size_t)4 << 20)
#define CALLS        ((size_t)1 << 27) /* more than a program of a minute makes */
#define FUNCTIONS    4096              /* more than CUPTI has numbers for */

enum kind { KERNEL, COPY, SET, KINDS };

/* Each entry is written by the thread that makes the call, before its work can be recorded. */
static uint16_t *function_of; /* correlation number -> CUPTI's number of the function */
static const char *names[FUNCTIONS];
static uint64_t counts[KINDS][FUNCTIONS]; /* CUPTI completes one buffer at a time */
static size_t lost;

/* The newest layouts that the headers of CUDA 12 and 13 both know; later ones begin like them. */
static void note(CUpti_Activity *record)
{
        uint32_t correlation;
        enum kind kind;

        switch (record->kind) {
        case CUPTI_ACTIVITY_KIND_KERNEL:
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
                correlation = ((CUpti_ActivityKernel9 *)(void *)record)->correlationId;
                kind = KERNEL;
                break;
        case CUPTI_ACTIVITY_KIND_MEMCPY:
                correlation = ((CUpti_ActivityMemcpy5 *)(void *)record)->correlationId;
                kind = COPY;
                break;
        case CUPTI_ACTIVITY_KIND_MEMCPY2:
                correlation = ((CUpti_ActivityMemcpyPtoP4 *)(void *)record)->correlationId;
                kind = COPY;
                break;
        case CUPTI_ACTIVITY_KIND_MEMSET:
                correlation = ((CUpti_ActivityMemset4 *)(void *)record)->correlationId;
                kind = SET;
                break;
        default:
                return;
        }
        counts[kind][correlation < CALLS ? function_of[correlation] : 0]++;
}

static void CUPTIAPI on_request(uint8_t **buffer, size_t *size, size_t *most)
{
        *buffer = aligned_alloc(8, BUFFER_BYTES);
        *size = *buffer ? BUFFER_BYTES : 0;
        *most = 0;
}

static void CUPTIAPI on_complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                 size_t valid)
{
        CUpti_Activity *record = NULL;
        size_t dropped = 0;

        (void)size;
        while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
                note(record);
        if (cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS)
                lost += dropped;
        free(buffer);
}

static void CUPTIAPI on_call(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId number,
                             const void *data)
{
        const CUpti_CallbackData *call = data;

        (void)user;
        (void)domain;
        if (call->callbackSite != CUPTI_API_ENTER || number >= FUNCTIONS)
                return;
        names[number] = call->functionName;
        if (call->correlationId < CALLS)
                function_of[call->correlationId] = (uint16_t)number;
}

static void finish(void)
{
        static const char *const kinds[] = {"kernel", "copy", "set"};
        const char *path = getenv("SUBMISSIONS_FILE");
        FILE *file = path ? fopen(path, "w") : stderr;

        cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
        if (!file)
                return;
        for (int kind = 0; kind < KINDS; kind++)
                for (int i = 0; i < FUNCTIONS; i++)
                        if (counts[kind][i])
                                fprintf(file, "%s %s %llu\n", kinds[kind],
                                        names[i] ? names[i] : "-",
                                        (unsigned long long)counts[kind][i]);
        fprintf(file, "lost - %zu\n", lost);
        if (file != stderr)
                fclose(file);
}

/* The driver's own name for it; 1 says that all went well. */
int InitializeInjection(void);

__attribute__((visibility("default"))) int InitializeInjection(void)
{
        static const CUpti_ActivityKind wanted[] = {
                CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                CUPTI_ACTIVITY_KIND_MEMCPY,
                CUPTI_ACTIVITY_KIND_MEMCPY2,
                CUPTI_ACTIVITY_KIND_MEMSET,
        };
        CUpti_SubscriberHandle subscriber;

        function_of = mmap(NULL, CALLS * sizeof(*function_of), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (function_of == MAP_FAILED)
                return 0;
        if (cuptiSubscribe(&subscriber, on_call, NULL) != CUPTI_SUCCESS ||
            cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API) != CUPTI_SUCCESS ||
            cuptiActivityRegisterCallbacks(on_request, on_complete) != CUPTI_SUCCESS)
                return 0;
        for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
                if (cuptiActivityEnable(wanted[i]) != CUPTI_SUCCESS)
                        return 0;
        atexit(finish);
        return 1;
}
