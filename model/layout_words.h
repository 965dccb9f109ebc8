/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_LAYOUT_WORDS_H
#define SPM_LAYOUT_WORDS_H

/*
 * Layout words -- what kinds and fields are called, for who reads and who prints
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/model.h>

#define SPM_LAYOUT_FIELDS 6

struct spm_layout_field {
        const char *name;
        enum spm_shelf_kind kind;
        size_t offset; /* in struct spm_shelf_config */
        bool may_be_zero;
};

extern const struct spm_layout_field spm_layout_fields[SPM_LAYOUT_FIELDS];
extern const char *const spm_layout_persistents[]; /* by enum spm_persistent */
extern const char *const spm_layout_kinds[];       /* of the list, by enum spm_shelf_kind */

uint64_t *spm_layout_field_of(struct spm_shelf_config *shelf, const struct spm_layout_field *field);

#endif
