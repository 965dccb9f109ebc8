/* SPDX-License-Identifier: Apache-2.0 */

/* Figures -- what the pools tell the report; no driver call is made here */

#include "report/figures.h"

#include "base/config.h"
#include "base/life.h"
#include "driver/driver.h"
#include "track/context.h"
#include "track/layout.h"
#include "track/mempool.h"
#include "track/pinned.h"
#include "track/state.h"
#include "track/stream.h"

static void add_figures(struct sp_figures *figures, const struct spm_stats *stats, spm_pool pool,
                        int device, enum sp_pool_class class)
{
        if (!stats->allocs)
                return;
        if (figures->pools == SP_FIGURES_POOLS) {
                figures->pools_left_out++;
                return;
        }
        figures->pool[figures->pools++] = (struct sp_pool_figures){
                .pool = pool,
                .device = device,
                .class = class,
                .requested = stats->used_current,
                .requested_high = stats->used_high,
                .rounded = stats->rounded_current,
                .reserved = stats->reserved_current,
                .reserved_high = stats->reserved_high,
                .pending = stats->pending_bytes,
                .ready = stats->ready_bytes,
                .largest_ready = stats->largest_ready,
                .live = stats->live_blocks,
                .allocs = stats->allocs,
                .frees = stats->frees,
                .hits = stats->hits,
                .grows = stats->grows,
                .releases = stats->releases,
                .moves = stats->moves,
        };
}

/* Lists can be long, and mostly a program uses a few of their pools. */
static void add_shelves(struct sp_figures *figures, const struct spm_model *model, spm_pool pool)
{
        struct spm_shelf_stats stats;
        unsigned int i;

        for (i = 0; spm_layout_stats(model, pool, i, &stats) == SPM_OK; i++) {
                if (!stats.pages_peak && !stats.spills)
                        continue;
                if (figures->shelves == SP_FIGURES_SHELVES)
                        figures->shelves_left_out++;
                else
                        figures->shelf[figures->shelves++] =
                                (struct sp_shelf_figures){figures->pools - 1, i, stats};
        }
}

static void add_pool(struct sp_figures *figures, struct spm_model *model, spm_pool pool, int device,
                     enum sp_pool_class class)
{
        unsigned int before = figures->pools;
        struct spm_stats stats;

        if (!pool || spm_stats(model, pool, &stats) != SPM_OK)
                return;
        add_figures(figures, &stats, pool, device, class);
        if (figures->pools > before)
                add_shelves(figures, model, pool);
}

static const char *backing_name(void)
{
        struct sp_device *device = sp_device_each(NULL);

        if (!device || sp_config()->mode == SP_MODE_OBSERVE)
                return NULL;
        return device->has_vmm && sp_config()->backing != SP_BACKING_NATIVE ? "mapped chunks"
                                                                            : "cuMemAlloc blocks";
}

static void add_async(struct sp_figures *figures, const struct sp_device *device)
{
        spm_pool pools[SP_MEMPOOLS_MAX];
        unsigned int count = sp_mempools_on(device, pools);
        struct spm_stats ended;
        struct spm_model *model;

        if (sp_mempool_sum_ended(device, &ended))
                add_figures(figures, &ended, 0, device->ordinal, SP_CLASS_ASYNC);
        model = sp_model_enter_bounded();
        if (!model)
                return;
        for (unsigned int i = 0; i < count; i++)
                add_pool(figures, model, pools[i], device->ordinal, SP_CLASS_ASYNC);
        sp_model_leave();
}

/* With the model's lock held. The first is there whenever another one is. */
static void add_layouts(struct sp_figures *figures)
{
        for (int device = SP_LAYOUT_ALL; device < sp_layout_devices(); device++) {
                const struct sp_layout_wish *wish = sp_layout_of(device);
                struct sp_layout_figures *said = &figures->layout[figures->layouts];

                if ((!wish && device >= 0) || figures->layouts == SP_FIGURES_LAYOUTS)
                        continue;
                said->device = device;
                said->source = wish ? wish->source : SP_LAYOUT_OF_NOBODY;
                if (wish && !wish->is_heap)
                        (void)spm_layout_print(&wish->layout, said->text, sizeof(said->text));
                figures->layouts++;
        }
        if (figures->layouts == 1 && !figures->layout[0].source)
                figures->layouts = 0;
}

void sp_route_figures(struct sp_figures *figures)
{
        struct spm_model *model;

        figures->observing = sp_config()->mode == SP_MODE_OBSERVE;
        figures->off = sp_life_state() == SP_LIFE_OFF;
        figures->backing = backing_name();
        figures->driver_path = sp_driver_path();
        figures->driver_version = sp_state_driver_version();

        model = sp_model_enter_bounded();
        if (!model)
                return;
        add_layouts(figures);
        for (struct sp_context *context = sp_context_each(NULL); context;
             context = sp_context_each(context)) {
                unsigned int index = 0;
                spm_pool pool;

                add_pool(figures, model, context->sync_pool, context->device->ordinal,
                         SP_CLASS_SYNC);
                while ((pool = sp_pinned_each(context, &index)))
                        add_pool(figures, model, pool, context->device->ordinal, SP_CLASS_HOST);
        }
        sp_model_leave();
        for (struct sp_device *device = sp_device_each(NULL); device;
             device = sp_device_each(device))
                add_async(figures, device);
}

uint64_t sp_route_stream_handle(uint64_t number)
{
        return (uintptr_t)sp_stream_handle((spm_stream)number);
}

static void reset_async(struct sp_device *device)
{
        spm_pool pools[SP_MEMPOOLS_MAX];
        unsigned int count = sp_mempools_on(device, pools);
        struct spm_model *model = sp_model_enter_bounded();

        if (!model)
                return;
        for (unsigned int i = 0; i < count; i++)
                (void)spm_reset_peaks(model, pools[i]);
        sp_model_leave();
        sp_mempool_reset_ended(device);
}

void sp_route_reset_peaks(void)
{
        struct spm_model *model = sp_model_enter_bounded();

        if (!model)
                return;
        for (struct sp_context *context = sp_context_each(NULL); context;
             context = sp_context_each(context)) {
                unsigned int index = 0;
                spm_pool pool;

                (void)spm_reset_peaks(model, context->sync_pool);
                while ((pool = sp_pinned_each(context, &index)))
                        (void)spm_reset_peaks(model, pool);
        }
        sp_model_leave();
        for (struct sp_device *device = sp_device_each(NULL); device;
             device = sp_device_each(device))
                reset_async(device);
}
