/* SPDX-License-Identifier: Apache-2.0 */

/* Survey -- a pool looked at from end to end, for the report; no driver call is made here */

#include "report/figures.h"
#include "track/state.h"

bool sp_route_survey(const struct sp_pool_figures *figures, struct spm_survey *survey)
{
        struct spm_model *model = figures->pool ? sp_model_enter_bounded() : NULL;
        bool is_there;

        if (!model)
                return false;
        is_there = spm_survey(model, figures->pool, 0, survey) == SPM_OK;
        sp_model_leave();
        return is_there;
}
