/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host -- where the model's own records live
 */

#include "host.h"

#include <stddef.h>
#include <stdlib.h>

#include "state.h"

/* Before each record, so that bytes in use can be counted. Keeps the alignment of malloc(). */
union prefix {
        size_t size;
        max_align_t align;
};

void *spm_host_new(struct spm_model *model, size_t size)
{
        size_t whole = sizeof(union prefix) + size;
        union prefix *prefix;

        if (model->config.alloc)
                prefix = model->config.alloc(1, whole, model->config.user);
        else
                prefix = calloc(1, whole);
        if (!prefix)
                return NULL;
        prefix->size = whole;
        model->host_bytes += whole;
        return prefix + 1;
}

void spm_host_free(struct spm_model *model, void *memory)
{
        union prefix *prefix;

        if (!memory)
                return;
        prefix = (union prefix *)memory - 1;
        model->host_bytes -= prefix->size;
        if (model->config.free)
                model->config.free(prefix, model->config.user);
        else
                free(prefix);
}
