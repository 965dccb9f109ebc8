/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_USE_H
#define SPM_USE_H

/*
 * Use -- the parts that a single use and a launch have in common
 */

#include <stdint.h>
#include <streampool/model.h>

#include "ledger.h"
#include "subject.h"

/** spm_use_collect() - as spm_use_waits(). Return: how many there are. */
unsigned int spm_use_collect(const struct spm_model *model, const struct spm_entry *entry,
                             enum spm_use_access access, const struct spm_stream_state *stream,
                             struct spm_use_wait *waits, unsigned int room);

/** spm_use_learn() - @stream waits on the device for what an access that was prepared at @serial
 * was told to wait for. */
void spm_use_learn(struct spm_model *model, const struct spm_entry *entry,
                   struct spm_stream_state *stream, enum spm_use_access access, uint64_t serial);

/** spm_use_note() - the operation at @position of @stream, whose usage it is, has this access. */
void spm_use_note(struct spm_model *model, struct spm_entry *entry, struct spm_usage *usage,
                  enum spm_use_access access, const struct spm_stream_state *stream,
                  uint64_t position);

/** spm_use_submit() - work that uses something was submitted. Return: its position. */
uint64_t spm_use_submit(struct spm_model *model, struct spm_stream_state *stream);

/** spm_use_unprepare() - one prepared use less. Return: the stream's usage. */
struct spm_usage *spm_use_unprepare(struct spm_model *model, struct spm_entry *entry,
                                    spm_stream stream);

#endif
