/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host -- where the model's own records live
 */

#include "host.h"

#include <stdlib.h>

#include "state.h"

void *spm_host_new(struct spm_model *model, size_t size)
{
        if (model->config.alloc)
                return model->config.alloc(1, size, model->config.user);
        return calloc(1, size);
}

void spm_host_free(struct spm_model *model, void *memory)
{
        if (!memory)
                return;
        if (model->config.free)
                model->config.free(memory, model->config.user);
        else
                free(memory);
}
