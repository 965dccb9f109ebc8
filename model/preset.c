/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preset -- is this a layout, and lists that are made of one number
 */

#include <string.h>
#include <streampool/model.h>

#include "layout.h"

#define KIB            ((uint64_t)1 << 10)
#define MIB            ((uint64_t)1 << 20)
#define GIB            ((uint64_t)1 << 30)

#define SUBSLICE_LEAST (32 * MIB) /* a page of the ladder */
#define BUCKETS        24
#define BUCKET_LEAST   (32 * KIB)
#define BUCKET_UNIT    512 /* bounds are multiples, but for the last */
#define PERIOD         5000

/* Sums of a few such sizes can be counted. */
#define SIZE_MOST ((uint64_t)1 << 56)

enum spm_status spm_layout_refuse(struct spm_layout_error *error,
                                  const struct spm_layout_error *why)
{
        if (error)
                *error = *why;
        return SPM_E_INVALID_VALUE;
}

/* checks */

/* Zero, or more than can be counted. The figures are written in any case. */
static bool is_bad_size(struct spm_layout_error *error, const char *field, uint64_t size)
{
        error->field = field;
        error->value = size;
        error->limit = SIZE_MOST;
        if (!size)
                error->fault = SPM_LAYOUT_ZERO_SIZE;
        else if (size > SIZE_MOST)
                error->fault = SPM_LAYOUT_SIZE_TOO_LARGE;
        return error->fault != SPM_LAYOUT_FINE;
}

static bool exceeds(struct spm_layout_error *error, enum spm_layout_fault fault, const char *field,
                    uint64_t value, uint64_t limit)
{
        if (value <= limit)
                return false;
        error->fault = fault;
        error->field = field;
        error->value = value;
        error->limit = limit;
        return true;
}

static void check_sliced(const struct spm_shelf_config *shelf, struct spm_layout_error *error)
{
        if (is_bad_size(error, "page", shelf->page) ||
            exceeds(error, SPM_LAYOUT_SLICE_LARGER_THAN_PAGE, "slice", shelf->slice, shelf->page) ||
            !shelf->cap || is_bad_size(error, "cap", shelf->cap))
                return;
        if (shelf->cap < shelf->page && !shelf->shrink) {
                error->fault = SPM_LAYOUT_CAP_SMALLER_THAN_PAGE;
                error->limit = shelf->page;
                return;
        }
        exceeds(error, SPM_LAYOUT_TOO_MANY_PAGES, "cap", shelf->cap / shelf->page, SPM_PAGES_MAX);
}

static void check_shelf(const struct spm_shelf_config *shelf, struct spm_layout_error *error)
{
        switch (shelf->kind) {
        case SPM_SHELF_SLICED:
                check_sliced(shelf, error);
                return;
        case SPM_SHELF_EXCLUSIVE:
                is_bad_size(error, "max", shelf->max);
                return;
        case SPM_SHELF_DIRECT:
                if (shelf->reclaim)
                        is_bad_size(error, "reclaim", shelf->reclaim);
                return;
        case SPM_SHELF_PERSISTENT:
                break;
        }
        error->fault = SPM_LAYOUT_NO_SUCH_KIND;
        error->field = "kind";
        error->value = (uint64_t)shelf->kind;
}

enum spm_status spm_layout_check(const struct spm_layout *layout, struct spm_layout_error *error)
{
        struct spm_layout_error why = {0};

        if (!layout->count)
                why.fault = SPM_LAYOUT_EMPTY_POOL_LIST;
        else if (!exceeds(&why, SPM_LAYOUT_TOO_MANY_POOLS, "count", layout->count,
                          SPM_SHELVES_MAX) &&
                 exceeds(&why, SPM_LAYOUT_NO_SUCH_KIND, "persistent", (uint64_t)layout->persistent,
                         SPM_PERSISTENT_ENFORCED))
                why.index = layout->count;
        while (!why.fault && why.index < layout->count) {
                check_shelf(&layout->shelves[why.index], &why);
                why.index += !why.fault;
        }
        return why.fault ? spm_layout_refuse(error, &why) : SPM_OK;
}

/* presets */

static uint64_t period_of(uint64_t max)
{
        return (uint64_t)(PERIOD * (1.0 + (double)max / (double)GIB) + 0.5);
}

static void add_exclusive(struct spm_layout *layout, uint64_t max)
{
        layout->shelves[layout->count++] = (struct spm_shelf_config){
                .kind = SPM_SHELF_EXCLUSIVE, .max = max, .period = period_of(max)};
}

/* The last rung is the smallest, and comes first. */
static void make_subslices(uint64_t max, struct spm_layout *layout)
{
        unsigned int k = 0;

        while (max >> (2 * (k + 1)) >= SUBSLICE_LEAST)
                k++;
        for (; k; k--) {
                uint64_t page = max >> (2 * k);

                layout->shelves[layout->count++] = (struct spm_shelf_config){
                        .kind = SPM_SHELF_SLICED, .page = page, .slice = page >> k};
        }
        add_exclusive(layout, max);
}

/* By multiplication alone, so that it is the same everywhere. */
static double power(double base, unsigned int exponent)
{
        double result = 1.0;

        while (exponent--)
                result *= base;
        return result;
}

/* The largest size whose ratio to the first, to the power of all steps, is at most that of @max to
 * the power of @step. */
static uint64_t bucket(uint64_t max, unsigned int step)
{
        double goal = power((double)max / (double)BUCKET_LEAST, step);
        uint64_t low = BUCKET_LEAST;
        uint64_t high = max;

        while (low < high) {
                uint64_t middle = high - (high - low) / 2;

                if (power((double)middle / (double)BUCKET_LEAST, BUCKETS - 1) <= goal)
                        low = middle;
                else
                        high = middle - 1;
        }
        return low;
}

static void make_buckets(uint64_t max, struct spm_layout *layout)
{
        unsigned int step;

        for (step = 0; step < BUCKETS; step++) {
                uint64_t size =
                        (bucket(max, step) + (BUCKET_UNIT - 1)) & ~(uint64_t)(BUCKET_UNIT - 1);

                if (step + 1 == BUCKETS || size > max)
                        size = max;
                if (!layout->count || layout->shelves[layout->count - 1].max < size)
                        add_exclusive(layout, size);
        }
}

enum spm_status spm_layout_preset(enum spm_preset preset, uint64_t max, struct spm_layout *layout,
                                  struct spm_layout_error *error)
{
        bool slices = preset == SPM_PRESET_SUBSLICES;
        uint64_t least = slices ? 4 * SUBSLICE_LEAST : BUCKET_LEAST + 1;
        struct spm_layout_error why = {.fault = SPM_LAYOUT_PRESET_UNAVAILABLE,
                                       .field = slices ? "subslices" : "exclusive",
                                       .value = max,
                                       .limit = least};

        if (preset != SPM_PRESET_SUBSLICES && preset != SPM_PRESET_EXCLUSIVE) {
                why.fault = SPM_LAYOUT_NO_SUCH_KIND;
                why.field = "preset";
                why.value = (uint64_t)preset;
                return spm_layout_refuse(error, &why);
        }
        if (max < least || max > SIZE_MOST)
                return spm_layout_refuse(error, &why);
        memset(layout, 0, sizeof(*layout));
        layout->preset = preset;
        layout->preset_max = max;
        if (slices)
                make_subslices(max, layout);
        else
                make_buckets(max, layout);
        return SPM_OK;
}

bool spm_layout_is_transient(enum spm_layout_fault fault)
{
        return fault == SPM_LAYOUT_POOLS_IN_USE || fault == SPM_LAYOUT_CAPACITY_EXCEEDED;
}
