/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layout print -- layouts to text, and the words of both ways
 */

#include <streampool/model.h>

#include "layout.h"
#include "layout_words.h"
#include "text.h"

const char *const spm_layout_persistents[] = {"enabled", "size-match", "disabled", "enforced"};
const char *const spm_layout_kinds[] = {"sliced", "exclusive", "direct"};

const struct spm_layout_field spm_layout_fields[SPM_LAYOUT_FIELDS] = {
        {"page", SPM_SHELF_SLICED, offsetof(struct spm_shelf_config, page), false},
        {"slice", SPM_SHELF_SLICED, offsetof(struct spm_shelf_config, slice), false},
        {"cap", SPM_SHELF_SLICED, offsetof(struct spm_shelf_config, cap), false},
        {"max", SPM_SHELF_EXCLUSIVE, offsetof(struct spm_shelf_config, max), false},
        {"period", SPM_SHELF_EXCLUSIVE, offsetof(struct spm_shelf_config, period), true},
        {"reclaim", SPM_SHELF_DIRECT, offsetof(struct spm_shelf_config, reclaim), false},
};

uint64_t *spm_layout_field_of(struct spm_shelf_config *shelf, const struct spm_layout_field *field)
{
        return (uint64_t *)(void *)((char *)shelf + field->offset);
}

static void add_size(struct spm_text *text, uint64_t size)
{
        static const char *const units[] = {"", "K", "M", "G", "T"};
        unsigned int unit = 0;

        while (size && size % 1024 == 0 && unit < 4) {
                size /= 1024;
                unit++;
        }
        spm_text_number(text, size);
        spm_text_add(text, units[unit]);
}

static void add_shelf(struct spm_text *text, struct spm_shelf_config shelf)
{
        const char *before = ":";
        unsigned int i;

        spm_text_add(text, spm_layout_kinds[shelf.kind]);
        for (i = 0; i < SPM_LAYOUT_FIELDS; i++) {
                uint64_t value = *spm_layout_field_of(&shelf, &spm_layout_fields[i]);

                if (spm_layout_fields[i].kind != shelf.kind || !value)
                        continue;
                spm_text_add(text, before);
                spm_text_add(text, spm_layout_fields[i].name);
                spm_text_add(text, "=");
                if (spm_layout_fields[i].may_be_zero)
                        spm_text_number(text, value);
                else
                        add_size(text, value);
                before = ",";
        }
        if (shelf.kind == SPM_SHELF_SLICED && shelf.shrink)
                spm_text_add(text, ",shrink");
}

static const char *preset_of(const struct spm_layout *layout)
{
        switch (layout->preset) {
        case SPM_PRESET_SUBSLICES:
                return "subslices=";
        case SPM_PRESET_EXCLUSIVE:
                return "exclusive=";
        case SPM_PRESET_NONE:
                break;
        }
        return NULL;
}

bool spm_layout_print(const struct spm_layout *layout, char *buffer, size_t size)
{
        const char *preset = preset_of(layout);
        struct spm_text text;
        unsigned int i;

        spm_text_start(&text, buffer, size);
        if (preset) {
                spm_text_add(&text, preset);
                add_size(&text, layout->preset_max);
        }
        for (i = 0; i < layout->count && !preset; i++) {
                if (i)
                        spm_text_add(&text, ";");
                add_shelf(&text, layout->shelves[i]);
        }
        if (layout->persistent) {
                spm_text_add(&text, ";persistent=");
                spm_text_add(&text, spm_layout_persistents[layout->persistent]);
        }
        return text.used + 1 < size;
}
