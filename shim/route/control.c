/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Control -- the functions of streampool.h that change what pools do
 *
 * Those that ask are in report/control.c. A layout is installed in steps, each of which looks at
 * all pools anew (track/layout.h): between them memory goes back to the driver, which takes that no
 * lock is held, and other threads may allocate.
 */

#define STREAMPOOL_API __attribute__((visibility("default")))

#include <streampool/streampool.h>

#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/log.h"
#include "base/text.h"
#include "route/hand.h"
#include "route/perform.h"
#include "route/route.h"
#include "track/layout.h"

#define STEPS_MAX 20000 /* others may obtain and leave memory as fast as it is given back here */

/* may pools be changed now, and those of this device? */

static enum streampool_status check_call(int device, struct sp_text *why)
{
        if (sp_life_is_child() || !sp_life_has_begun() || sp_life_state() == SP_LIFE_LEAVING) {
                sp_text_add(why, "streampool is not at work in this process, or not yet");
                return STREAMPOOL_NOTHING;
        }
        if (sp_life_state() == SP_LIFE_OFF) {
                sp_text_add(why, "streampool has given up, and new memory is the driver's");
                return STREAMPOOL_UNSUPPORTED;
        }
        if (device < SP_LAYOUT_ALL || device >= sp_layout_devices()) {
                sp_text_add(why, "device=%d is none of the %d that there are; -1 is all of them",
                            device, sp_layout_devices());
                return STREAMPOOL_INVALID;
        }
        return STREAMPOOL_OK;
}

/* a layout */

static enum streampool_status parse(const char *text, struct sp_layout_wish *wish,
                                    struct sp_text *why)
{
        struct spm_layout_error error;
        char words[SP_LOG_MAX];

        wish->source = SP_LAYOUT_OF_PROGRAM;
        wish->is_heap = !text || strcmp(text, "pool") == 0;
        if (wish->is_heap || spm_layout_parse(text, &wish->layout, &error) == SPM_OK)
                return STREAMPOOL_OK;
        spm_layout_explain(&error, words, sizeof(words));
        sp_text_add(why, "%s", words);
        return STREAMPOOL_INVALID;
}

/* What was freed last is kept from everybody until its pool is trimmed. */
static void end_quarantine(int device)
{
        struct sp_device *each = NULL;

        while (sp_config()->quarantine && (each = sp_device_each(each)))
                if (device == SP_LAYOUT_ALL || each->ordinal == device)
                        (void)sp_trim_device(each, 0);
}

/* The driver's own cuMemFree would have waited, so that what a program has freed is not in use as
 * it sees it. Where the driver serves, nothing is done that the program has not asked it for. */
static void settle_all(int device)
{
        CUstreamCaptureMode mode;

        if (!sp_route_pools())
                return;
        end_quarantine(device);
        mode = sp_bracket_open();
        for (struct sp_context *context = sp_context_each(NULL); context;
             context = sp_context_each(context))
                if ((device == SP_LAYOUT_ALL || context->device->ordinal == device) &&
                    sp_context_pools(context) && sp_route_may_act())
                        sp_settle(context);
        sp_bracket_close(mode);
}

static enum spm_status install(struct sp_layout_wish *wish, int device,
                               struct sp_layout_refusal *refusal)
{
        bool has_settled = false;
        enum spm_status status;

        for (unsigned int steps = 0; steps < STEPS_MAX; steps++) {
                struct spm_actions actions;

                status = sp_layout_try(wish, device, refusal, &actions);
                sp_hands_retired();
                sp_perform(&actions, NULL);
                if (status == SPM_E_IN_USE && !refusal->live && refusal->pending && !has_settled) {
                        has_settled = true;
                        settle_all(device);
                } else if (status != SPM_AGAIN) {
                        return status;
                }
        }
        return SPM_E_IN_USE;
}

static void add_use(struct sp_text *why, const struct sp_layout_refusal *refusal)
{
        if (refusal->live || refusal->pending)
                sp_text_add(why,
                            "pools in use: %u, with %llu bytes live and %llu freed but not "
                            "complete: again when they are not",
                            refusal->pools, (unsigned long long)refusal->live,
                            (unsigned long long)refusal->pending);
        else
                sp_text_add(why, "what a pool holds idle cannot be given back now: again later");
}

static enum streampool_status explain(enum spm_status status,
                                      const struct sp_layout_refusal *refusal, struct sp_text *why)
{
        switch (status) {
        case SPM_OK:
                return STREAMPOOL_OK;
        case SPM_E_IN_USE:
                add_use(why, refusal);
                return STREAMPOOL_IN_USE;
        case SPM_E_UNSUPPORTED:
                sp_text_add(why, "%s keeps a pool from having a layout", refusal->reason);
                return STREAMPOOL_UNSUPPORTED;
        default:
                sp_text_add(why, "the host has no memory for it");
                return STREAMPOOL_NO_MEMORY;
        }
}

enum streampool_status streampool_set_layout(const char *text, int device, char *why, size_t size)
{
        struct sp_layout_refusal refusal = {0};
        enum streampool_status status;
        struct sp_layout_wish *wish;
        struct sp_text words;
        char nowhere[1];

        if (why && size)
                sp_text_init(&words, why, size);
        else
                sp_text_init(&words, nowhere, sizeof(nowhere));
        status = check_call(device, &words);
        if (status)
                return status;
        wish = calloc(1, sizeof(*wish));
        if (!wish)
                return explain(SPM_E_HOST_MEMORY, &refusal, &words);
        status = parse(text, wish, &words);
        if (status == STREAMPOOL_OK)
                status = explain(install(wish, device, &refusal), &refusal, &words);
        if (status)
                free(wish);
        return status;
}

/* windows */

static enum streampool_status turn_window(int device, bool opens)
{
        enum streampool_status status;
        struct sp_text words;
        char nowhere[1];

        sp_text_init(&words, nowhere, sizeof(nowhere));
        status = check_call(device, &words);
        if (status == STREAMPOOL_OK)
                sp_layout_window(device, opens);
        return status;
}

enum streampool_status streampool_persistent_enter(int device)
{
        return turn_window(device, true);
}

enum streampool_status streampool_persistent_leave(int device)
{
        return turn_window(device, false);
}
