/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Candidate -- what a run could be served with, as the environment says it
 */

#include "candidate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Blocks above a MiB begin at multiples of this in pools of cuMemAlloc() (shim/track/pools.c). */
#define LARGE_ALIGN (64 * KIB)

/* The presets begin there (streampool/layout.h), and pages of a few shelves below. */
#define PRESET_LEAST (128 * MIB)
#define PAGE_LEAST   (2 * MIB)
#define PAGE_MOST    (256 * MIB)

static const char *const growths[] = {"balanced", "speed", "tight"}; /* enum spm_growth */

/* settings */

void setting_limit(struct setting *setting, uint64_t bytes)
{
        snprintf(setting->limit, sizeof(setting->limit), "%" PRIu64 "M",
                 (bytes + GRAIN - 1) / GRAIN * (GRAIN / MIB));
}

void setting_cap(struct setting *setting, uint64_t page, uint64_t pages)
{
        if (pages)
                snprintf(setting->layout, TEXT_MOST, "sliced:page=%" PRIu64 "M,cap=%" PRIu64 "M",
                         page / MIB, page / MIB * pages);
        else
                snprintf(setting->layout, TEXT_MOST, "sliced:page=%" PRIu64 "M", page / MIB);
}

static enum spm_growth growth_of(const char *word)
{
        unsigned int i = 0;

        while (strcmp(growths[i], word) != 0)
                i++;
        return (enum spm_growth)i;
}

struct peer_options setting_options(const struct setting *setting, uint64_t lag)
{
        struct peer_options options = {
                .has_device = true,
                .keep = SIZE_MAX,
                .growth = growth_of(setting->growth),
                .large_align = LARGE_ALIGN,
                .lag = lag,
                .is_announced = true,
                .layout = setting->layout[0] ? setting->layout : NULL,
        };

        /* A limit of nothing is none to the options. */
        if (setting->limit[0])
                options.capacity = strtoull(setting->limit, NULL, 10) * MIB;
        if (setting->limit[0] && !options.capacity)
                options.capacity = 1;
        return options;
}

/* candidates */

uint64_t largest_block(const struct trace *trace)
{
        uint64_t most = 0;
        uint32_t i;

        for (i = 0; i < trace->blocks; i++)
                if (trace->size[i] > most)
                        most = trace->size[i];
        return most;
}

static uint64_t power_of_two(uint64_t least)
{
        uint64_t power = 1;

        while (power < least)
                power *= 2;
        return power;
}

static struct candidate *add(struct candidate *candidates, unsigned int *count)
{
        struct candidate *candidate = &candidates[(*count)++];

        memset(candidate, 0, sizeof(*candidate));
        candidate->setting.growth = growths[SPM_GROWTH_BALANCED];
        return candidate;
}

/* @format has one number in it, of MiB, or none. */
__attribute__((format(printf, 3, 4))) static void
add_layout(struct candidate *candidates, unsigned int *count, const char *format, ...)
{
        char *text = add(candidates, count)->setting.layout;
        va_list list;

        va_start(list, format);
        vsnprintf(text, TEXT_MOST, format, list);
        va_end(list);
}

/* One sliced pool alone takes every block if a page holds the largest. What larger pages waste in
 * the last one they save at the ends of all. */
static void add_capped(const struct trace *trace, uint64_t largest, struct candidate *candidates,
                       unsigned int *count)
{
        uint64_t page = largest;

        for (; page <= 4 * largest && (page == largest || page < trace->live_peak); page *= 2) {
                struct candidate *candidate = add(candidates, count);

                candidate->page = page;
                setting_cap(&candidate->setting, page, 0);
        }
}

unsigned int candidates_usual(const struct trace *trace, struct candidate *candidates)
{
        uint64_t largest = (largest_block(trace) + GRAIN - 1) / GRAIN * GRAIN;
        uint64_t preset = power_of_two(largest < PRESET_LEAST ? PRESET_LEAST : largest);
        uint64_t page = power_of_two(trace->live_peak / 16);
        unsigned int count = 0;
        unsigned int i;

        page = page < PAGE_LEAST ? PAGE_LEAST : page > PAGE_MOST ? PAGE_MOST : page;
        for (i = 0; i < sizeof(growths) / sizeof(*growths); i++)
                add(candidates, &count)->setting.growth = growths[i];
        add_layout(candidates, &count, "subslices=%" PRIu64 "M", preset / MIB);
        add_layout(candidates, &count, "exclusive=%" PRIu64 "M", preset / MIB);
        add_layout(candidates, &count,
                   "sliced:page=32M,slice=1M;exclusive:max=%" PRIu64 "M,period=5000",
                   largest / MIB);
        add_layout(candidates, &count, "sliced:page=%" PRIu64 "M;direct", page / MIB);
        add_layout(candidates, &count, "direct");
        add_capped(trace, largest, candidates, &count);
        return count;
}

/* The text is printed anew: what is planned is what was understood. */
bool candidate_of(const char *text, struct candidate *candidate)
{
        struct spm_layout_error error;
        struct spm_layout layout;
        unsigned int count = 0;
        char why[256];

        add(candidate, &count);
        if (spm_layout_parse(text, &layout, &error) == SPM_OK)
                return spm_layout_print(&layout, candidate->setting.layout, TEXT_MOST);
        spm_layout_explain(&error, why, sizeof(why));
        fprintf(stderr, "the layout %s: %s\n", text, why);
        return false;
}
