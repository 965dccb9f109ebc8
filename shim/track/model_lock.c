/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Model lock -- the model, and whoever is inside
 *
 * Apart from state.c, because the ledger and the report need no driver.
 */

#include "base/lock.h"
#include "track/state.h"

#define PATIENCE_MS 200

struct spm_model *sp_model;
struct sp_lock sp_model_lock = SP_LOCK_INIT(SP_RANK_MODEL);

bool sp_model_make(const struct spm_config *wish)
{
        return spm_model_new(wish, &sp_model) == SPM_OK;
}

bool sp_books_enter_bounded(struct spm_model **books)
{
        if (!sp_lock_take_bounded(&sp_model_lock, PATIENCE_MS))
                return false;
        *books = sp_model;
        return true;
}

struct spm_model *sp_model_enter_bounded(void)
{
        struct spm_model *books;

        if (!sp_model || !sp_books_enter_bounded(&books))
                return NULL;
        return books;
}
