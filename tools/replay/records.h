/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECORDS_H
#define RECORDS_H

/*
 * Records -- how much of the host's memory the model's own books take
 *
 * Bytes as asked for, which is what the model is answerable for: what the C
 * library adds to each, and pages that are never touched, are not looked at.
 */

#include <stddef.h>
#include <stdint.h>

struct records {
        uint64_t bytes;
        uint64_t high;
};

/* For struct spm_config, with a struct records as its user. */
void *records_new(size_t count, size_t size, void *user);
void records_free(void *memory, void *user);

#endif
