/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_TAG_H
#define SPM_TAG_H

/*
 * Tag -- whose the memory is, by names of the caller's own
 *
 * What each tag had at the peak of all is found without a walk over the tags: a
 * new peak is only counted, and a tag writes down what it had then when it
 * changes for the first time after it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <streampool/model.h>

#include "table.h"

struct spm_tag_state {
        struct spm_object object;
        char name[SPM_TAG_NAME];
        struct spm_tally tally;
        uint64_t at_peak; /* bytes, at peak number... */
        uint64_t peak;    /* ... this one; at a later one: what it has now */
};

/** spm_tag_find() - NULL for an unknown one. */
struct spm_tag_state *spm_tag_find(const struct spm_model *model, uint32_t id);

/** spm_tag_forget() - all of them: the ledger ends. */
void spm_tag_forget(struct spm_model *model);

/* An allocation begins; ends, perhaps by a free; was not made. */
void spm_tag_count(struct spm_model *model, struct spm_tag_state *tag, size_t size);
void spm_tag_uncount(struct spm_model *model, struct spm_tag_state *tag, size_t size, bool freed);
void spm_tag_undo(struct spm_model *model, struct spm_tag_state *tag, size_t size);

/** spm_tag_check() - Return: NULL, or the name of the invariant that is broken. */
const char *spm_tag_check(const struct spm_model *model);

#endif
