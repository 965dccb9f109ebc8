/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layout text -- does what is said of layouts' texts hold of this one?
 *
 * A text is refused with a reason that names a place in it, and nothing is written; of several
 * lines, the line and the column of that place. Or it is a
 * layout that can be checked, printed, read again as the same, and installed.
 */

#include "layout_text.h"

#include <stdbool.h>
#include <string.h>
#include <streampool/model.h>

#define PRINTED 20000 /* of the longest list there can be */

/* The column is of the place, or of a shelf, where only the line matters. */
static bool is_in_line(const char *text, const struct spm_layout_error *error)
{
        const char *line = text;
        unsigned int i;

        if (!error->line)
                return !strchr(text, '\n') || error->fault == SPM_LAYOUT_EMPTY_POOL_LIST;
        for (i = 1; i < error->line; i++) {
                line = strchr(line, '\n');
                if (!line++)
                        return false;
        }
        return error->column - 1 <= strcspn(line, "\n") &&
               (!error->word[0] || line + error->column - 1 == text + error->at);
}

static const char *check_refusal(const char *text, const struct spm_layout *layout,
                                 const struct spm_layout_error *error)
{
        const unsigned char *byte = (const unsigned char *)layout;
        char why[256];
        size_t i;

        for (i = 0; i < sizeof(*layout); i++)
                if (byte[i] != 0x5a)
                        return "what is refused is written";
        if (!error->fault || error->at > strlen(text))
                return "a refusal without a reason";
        if (error->word[0] && strncmp(text + error->at, error->word, strlen(error->word)))
                return "the word is not where it is said to be";
        if (!is_in_line(text, error))
                return "the line is another";
        spm_layout_explain(error, why, sizeof(why));
        if (!why[0] || strlen(why) >= sizeof(why))
                return "a reason without words";
        return NULL;
}

static const char *check_printing(const struct spm_layout *layout)
{
        static char first[PRINTED], second[PRINTED];
        static struct spm_layout again;

        if (!spm_layout_print(layout, first, sizeof(first)))
                return "it is too long to be printed";
        if (spm_layout_parse(first, &again, NULL))
                return "what is printed is refused";
        if (memcmp(layout, &again, sizeof(again)) != 0)
                return "what is printed is another layout";
        if (!spm_layout_print(&again, second, sizeof(second)) || strcmp(first, second) != 0)
                return "it is printed in two ways";
        return NULL;
}

static const char *check_installing(const struct spm_layout *layout)
{
        struct spm_pool_config config = {.kind = SPM_POOL_ASYNC, .provider = SPM_PROVIDER_MODEL};
        const char *wrong = NULL;
        struct spm_layout_error error;
        struct spm_actions actions;
        struct spm_model *model;
        spm_pool pool;

        if (spm_model_new(NULL, &model))
                return NULL;
        if (spm_pool_create(model, &config, &pool) == SPM_OK &&
            spm_pool_install(model, pool, layout, &error, &actions) != SPM_OK)
                wrong = "an empty pool cannot have it";
        if (!wrong && !spm_check(model, NULL, 0))
                wrong = "with it the pool is not well";
        spm_model_free(model);
        return wrong;
}

const char *layout_text_check(const char *text, int *read)
{
        static struct spm_layout layout;
        struct spm_layout_error error = {.fault = SPM_LAYOUT_FINE};
        const char *wrong;

        memset(&layout, 0x5a, sizeof(layout));
        *read = spm_layout_parse(text, &layout, &error) == SPM_OK;
        if (!*read)
                return check_refusal(text, &layout, &error);
        if (spm_layout_check(&layout, &error))
                return "it is read, and cannot be";
        wrong = check_printing(&layout);
        return wrong ? wrong : check_installing(&layout);
}
