/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_ACTION_H
#define SPM_ACTION_H

/*
 * Action -- what the caller is asked to do
 *
 * A list of fixed length. Whoever adds to it asks for room first, and has a
 * way to do without.
 */

#include <stdbool.h>
#include <streampool/model.h>

static inline unsigned int spm_actions_room(const struct spm_actions *actions)
{
        return SPM_ACTIONS_MAX - actions->count;
}

/** spm_action_add() - a zeroed action at the end of the list, which has room. */
struct spm_action *spm_action_add(struct spm_actions *actions, enum spm_action_kind kind);

#endif
