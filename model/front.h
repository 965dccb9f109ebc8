/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_FRONT_H
#define SPM_FRONT_H

/*
 * Front -- what the files of the front door share
 */

#include <stdbool.h>
#include <streampool/model.h>

#include "check.h"
#include "order.h"
#include "state.h"

/** spm_model_tidy() - what closed pools can give back, and dropped stamps. */
void spm_model_tidy(struct spm_model *model, struct spm_actions *actions);

/** spm_model_finish() - the end of every input that has actions: tidies up and, in debug builds,
 * checks. Return: @status. */
static inline enum spm_status spm_model_finish(struct spm_model *model, enum spm_status status,
                                               struct spm_actions *actions)
{
        if (model->unfinished || model->closed_pools || model->dropped)
                spm_model_tidy(model, actions);
        SPM_CHECK(model);
        return status;
}

struct spm_block;
struct spm_stream_state;

/** spm_block_describe() - what the public interface tells of a live block, but for its segment. */
void spm_block_describe(const struct spm_block *block, struct spm_allocation *allocation);

/** spm_block_place() - the rest. */
void spm_block_place(const struct spm_block *block, struct spm_allocation *allocation);

/** spm_block_find_live() - that holds @address, also inside. Return: SPM_OK, SPM_E_DOUBLE_FREE (in
 * memory of ours), SPM_E_FOREIGN. */
enum spm_status spm_block_find_live(const struct spm_model *model, uint64_t address,
                                    struct spm_block **block);

/** spm_block_wait() - a block that was live was freed in the order of @stream, at @position: what
 * it waits for. */
void spm_block_wait(struct spm_model *model, struct spm_block *block,
                    struct spm_stream_state *stream, uint64_t position);

/** spm_block_wait_for_birth() - an asynchronous block was freed in nobody's order: it waits for
 * what it was born with. */
void spm_block_wait_for_birth(struct spm_model *model, struct spm_block *block);

/** spm_block_wait_more() - what was freed waits for @point as well. Return: false if it cannot, and
 * nothing has changed. */
bool spm_block_wait_more(struct spm_model *model, struct spm_block *block, struct spm_point point);

#endif
