/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Show -- a plan as JSON
 *
 * Texts are words, numbers and layouts that the library has printed, so there is nothing in them
 * that would have to be escaped.
 */

#include "show.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void show_run(const struct trace *trace)
{
        uint64_t refused = 0;
        size_t i;

        for (i = 0; i < trace->events; i++)
                refused += trace->event[i].kind == TRACE_REFUSED;
        printf("\"run\": {\"allocations\": %" PRIu32 ", \"refused\": %" PRIu64
               ", \"streams\": %" PRIu32 ", \"calls\": %" PRIu32 ", \"live_peak\": %" PRIu64
               ", \"largest\": %" PRIu64 "}",
               trace->blocks, refused, trace->streams, trace->calls, trace->live_peak,
               largest_block(trace));
}

static void show_setting(const struct setting *setting)
{
        const char *between = "";

        putchar('{');
        if (setting->layout[0]) {
                printf("\"STREAMPOOL_LAYOUT\": \"%s\"", setting->layout);
                between = ", ";
        } else if (strcmp(setting->growth, "balanced") != 0) {
                printf("\"STREAMPOOL_GROWTH\": \"%s\"", setting->growth);
                between = ", ";
        }
        if (setting->limit[0])
                printf("%s\"STREAMPOOL_LIMIT\": \"%s\"", between, setting->limit);
        putchar('}');
}

static void show_refused(const struct trace *trace, const struct trial *trial)
{
        printf("\"refused\": {\"allocation\": %" PRIu32 ", \"bytes\": %" PRIu64 "}",
               trial->refused + 1, trace->size[trial->refused]);
}

static void show_row(const struct task *task, const struct row *row)
{
        const struct trial *tight = &row->tight;

        printf("{\"growth\": \"%s\", \"settings\": ", row->candidate->setting.growth);
        show_setting(row->free.is_served ? &row->setting : &row->candidate->setting);
        printf(", \"served\": %s, ", row->free.is_served ? "true" : "false");
        if (!row->free.is_served) {
                show_refused(task->trace, &row->free);
                if (row->beyond)
                        printf(", \"beyond\": %" PRIu64, row->beyond);
        } else {
                printf("\"peak\": %" PRIu64 ", \"cap\": %" PRIu64 ", \"maps\": %" PRIu64
                       ", \"moves\": %" PRIu64 ", \"waits\": %" PRIu64 ", \"asked\": %" PRIu64
                       ", \"ns_a_call\": %.1f, \"free\": {\"maps\": %" PRIu64
                       ", \"waits\": %" PRIu64 "}",
                       row->free.peak, setting_options(&row->setting, 0).capacity, tight->maps,
                       tight->moves, tight->waits, tight->asked,
                       (double)tight->ns / task->trace->calls, row->free.maps, row->free.waits);
        }
        putchar('}');
}

static void show_verdict(const struct task *task, const struct row *row,
                         const struct verdict *verdict)
{
        printf("\"verified\": {\"is_verified\": %s, \"less\": ",
               verdict->is_verified ? "true" : "false");
        show_setting(&row->less);
        if (!verdict->with.is_served || !verdict->less.is_served) {
                printf(", ");
                show_refused(task->trace,
                             verdict->with.is_served ? &verdict->less : &verdict->with);
        }
        putchar('}');
}

void show(const struct task *task, const struct row *rows, unsigned int count, unsigned int best,
          const struct verdict *verdict)
{
        unsigned int i;

        putchar('{');
        show_run(task->trace);
        printf(",\n\"devices\": [0");
        if (task->devices > 1)
                printf(", %" PRIu64 ", null", task->lag[1]);
        printf("],\n\"rows\": [");
        for (i = 0; i < count; i++) {
                printf(i ? ",\n  " : "\n  ");
                show_row(task, &rows[i]);
        }
        printf("\n],\n\"plan\": ");
        if (best < count) {
                printf("%u,\n", best);
                show_verdict(task, &rows[best], verdict);
        } else {
                printf("null,\n\"verified\": null");
        }
        puts("}");
}
