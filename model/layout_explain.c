/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layout explain -- what is wrong, in one line
 */

#include <streampool/model.h>

#include "layout.h"
#include "text.h"

static const char *rule_of(enum spm_layout_fault fault)
{
        switch (fault) {
        case SPM_LAYOUT_FINE:
                return "nothing is wrong";
        case SPM_LAYOUT_EMPTY_POOL_LIST:
                return "the list has no pool";
        case SPM_LAYOUT_TOO_MANY_POOLS:
                return "there are more pools than a layout can have";
        case SPM_LAYOUT_ZERO_SIZE:
                return "must not be zero";
        case SPM_LAYOUT_SLICE_LARGER_THAN_PAGE:
                return "is larger than a page, and a slice lies in one page";
        case SPM_LAYOUT_CAP_SMALLER_THAN_PAGE:
                return "is smaller than a page, so that not one fits (shrink makes the page "
                       "smaller)";
        case SPM_LAYOUT_TOO_MANY_PAGES:
                return "is more pages than a pool can have";
        case SPM_LAYOUT_SIZE_TOO_LARGE:
                return "is more than can be counted";
        case SPM_LAYOUT_NO_SUCH_KIND:
                return "is not known";
        case SPM_LAYOUT_PRESET_UNAVAILABLE:
                return "is a preset that cannot be made of this size";
        case SPM_LAYOUT_UNKNOWN_WORD:
                return "is not known here";
        case SPM_LAYOUT_UNKNOWN_FIELD:
                return "is no field of this kind of pool";
        case SPM_LAYOUT_BAD_SIZE:
                return "is no size such as 4096, 64K or 32M";
        case SPM_LAYOUT_TWICE:
                return "is said twice";
        case SPM_LAYOUT_MIXED:
                return "cannot stand beside other pools, as a preset is a whole list";
        case SPM_LAYOUT_POOLS_IN_USE:
                return "the pool is in use: again when it is not";
        case SPM_LAYOUT_UNSUPPORTED:
                return "keeps the pool from having a layout";
        case SPM_LAYOUT_TOO_BIG:
                return "is more than any pool of the layout takes";
        case SPM_LAYOUT_CAPACITY_EXCEEDED:
                return "does not fit, as the pool is full: again when something was freed";
        }
        return "unknown fault";
}

static bool is_of_text(enum spm_layout_fault fault)
{
        return fault >= SPM_LAYOUT_UNKNOWN_WORD && fault <= SPM_LAYOUT_MIXED;
}

static bool is_of_shelf(enum spm_layout_fault fault)
{
        return fault > SPM_LAYOUT_TOO_MANY_POOLS && fault < SPM_LAYOUT_PRESET_UNAVAILABLE;
}

static void add_figure(struct spm_text *text, const char *label, uint64_t figure)
{
        spm_text_add(text, ",");
        spm_text_count(text, label, figure);
}

/* What the value is measured by. */
static void add_figures(struct spm_text *text, const struct spm_layout_error *error)
{
        switch (error->fault) {
        case SPM_LAYOUT_SLICE_LARGER_THAN_PAGE:
        case SPM_LAYOUT_CAP_SMALLER_THAN_PAGE:
                add_figure(text, "page:", error->limit);
                break;
        case SPM_LAYOUT_TOO_MANY_POOLS:
        case SPM_LAYOUT_TOO_MANY_PAGES:
        case SPM_LAYOUT_SIZE_TOO_LARGE:
        case SPM_LAYOUT_TOO_BIG:
                add_figure(text, "at most:", error->limit);
                break;
        case SPM_LAYOUT_PRESET_UNAVAILABLE:
                add_figure(text, "value:", error->value);
                add_figure(text, "at least:", error->limit);
                break;
        case SPM_LAYOUT_POOLS_IN_USE:
                add_figure(text, "live:", error->value);
                add_figure(text, "freed but not complete:", error->limit);
                break;
        case SPM_LAYOUT_CAPACITY_EXCEEDED:
                add_figure(text, "capacity:", error->limit);
                add_figure(text, "in use:", error->in_use);
                break;
        default:
                break;
        }
}

/* A file may have anything in it, and this may go to a terminal. */
static void add_word(struct spm_text *text, const char *word)
{
        if (!*word) {
                spm_text_word(text, "(nothing)");
                return;
        }
        spm_text_word(text, "'");
        for (; *word; word++) {
                char letter = *word;

                if (letter <= ' ' || letter > '~')
                        letter = '?';
                spm_text_letter(text, letter);
        }
        spm_text_add(text, "'");
}

/* pool 2, at line 4, character 2: */
static void add_place(struct spm_text *text, const struct spm_layout_error *error)
{
        bool has_pool = is_of_shelf(error->fault) || is_of_text(error->fault);

        if (has_pool)
                spm_text_count(text, "pool", (uint64_t)error->index + 1);
        if (has_pool && error->line)
                spm_text_add(text, ",");
        if (error->line)
                spm_text_count(text, "at line", error->line);
        if (is_of_text(error->fault)) {
                spm_text_add(text, ",");
                spm_text_count(text, error->line ? "character" : "at character", error->column);
        }
        if (has_pool || error->line)
                spm_text_add(text, ":");
}

void spm_layout_explain(const struct spm_layout_error *error, char *buffer, size_t size)
{
        struct spm_text text;

        spm_text_start(&text, buffer, size);
        add_place(&text, error);
        if (is_of_text(error->fault)) {
                if (error->field)
                        spm_text_word(&text, error->field);
                add_word(&text, error->word);
        } else if (error->field) {
                spm_text_word(&text, error->field);
                if (is_of_shelf(error->fault)) {
                        spm_text_add(&text, "=");
                        spm_text_number(&text, error->value);
                }
        } else if (error->value && error->fault != SPM_LAYOUT_POOLS_IN_USE) {
                spm_text_count(&text, "size", error->value);
        }
        spm_text_word(&text, rule_of(error->fault));
        add_figures(&text, error);
}
