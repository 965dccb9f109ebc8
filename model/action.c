/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Action -- what the caller is asked to do
 */

#include "action.h"

#include <assert.h>
#include <string.h>

struct spm_action *spm_action_add(struct spm_actions *actions, enum spm_action_kind kind)
{
        struct spm_action *action = &actions->item[actions->count];

        assert(spm_actions_room(actions));
        actions->count++;
        memset(action, 0, sizeof(*action));
        action->kind = kind;
        return action;
}
