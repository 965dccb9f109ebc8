/* SPDX-License-Identifier: Apache-2.0 */

/* Layout -- how pools of device memory are cut up, if not as the default heap */

#include "track/layout.h"

#include <stdatomic.h>

#include "base/log.h"

#define WHY_MAX 256 /* what a line of the log has room for, and more */

/* Constant once the shim is on. */
static struct spm_layout layout;
static bool is_set;

/* Said once, and not of every pool: atomic. */
static _Atomic(bool) is_told;

void sp_layout_start(const char *text)
{
        struct spm_layout_error error;
        char why[WHY_MAX];

        if (!text || !*text)
                return;
        is_set = spm_layout_parse(text, &layout, &error) == SPM_OK;
        if (is_set)
                return;
        spm_layout_explain(&error, why, sizeof(why));
        sp_log(SP_LOG_ERROR, "STREAMPOOL_LAYOUT is wrong, and pools have the default heap: %s",
               why);
}

const struct spm_layout *sp_layout(void)
{
        return is_set ? &layout : NULL;
}

/* A pool without memory gives nothing back, so there is nothing to carry out. */
void sp_layout_install(struct spm_model *model, spm_pool pool)
{
        struct spm_layout_error error = {.fault = SPM_LAYOUT_FINE};
        struct spm_actions actions;
        enum spm_status status;
        char why[WHY_MAX];

        if (!is_set)
                return;
        status = spm_pool_install(model, pool, &layout, &error, &actions);
        if (status == SPM_OK || atomic_exchange(&is_told, true))
                return;
        spm_layout_explain(&error, why, sizeof(why));
        sp_log(SP_LOG_WARNING, "a pool has the default heap, and not STREAMPOOL_LAYOUT: %s",
               error.fault ? why : spm_status_name(status));
}
