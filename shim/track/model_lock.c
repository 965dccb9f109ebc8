/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Model lock -- the model, and whoever is inside
 *
 * Apart from state.c, because the ledger and the report need no driver.
 */

#include "base/lock.h"
#include "track/state.h"

#define PATIENCE_MS 200

/* Written once, before the shim is on; what it points to is guarded by model_lock. */
static struct spm_model *model;
static struct sp_lock model_lock = SP_LOCK_INIT(SP_RANK_MODEL);

bool sp_model_make(const struct spm_config *wish)
{
        return spm_model_new(wish, &model) == SPM_OK;
}

struct spm_model *sp_model_enter(void)
{
        sp_lock_take(&model_lock);
        return model;
}

void sp_model_leave(void)
{
        sp_lock_drop(&model_lock);
}

bool sp_books_enter_bounded(struct spm_model **books)
{
        if (!sp_lock_take_bounded(&model_lock, PATIENCE_MS))
                return false;
        *books = model;
        return true;
}

struct spm_model *sp_model_enter_bounded(void)
{
        struct spm_model *books;

        if (!model || !sp_books_enter_bounded(&books))
                return NULL;
        return books;
}
