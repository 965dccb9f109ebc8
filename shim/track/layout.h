/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_LAYOUT_H
#define SP_TRACK_LAYOUT_H

/*
 * Layout -- how pools of device memory are cut up, if not as the default heap
 *
 * STREAMPOOL_LAYOUT is read once, and constant after that. It concerns all pools of device memory,
 * one of which serves all streams of its device or context: a cap is one of that pool, and not of a
 * stream. Pinned host memory has no layout. Release thresholds, and options that say what a pool
 * may hold or keep, do nothing then; a program that trims a pool gets all of its idle pages back.
 */

#include <stdbool.h>
#include <streampool/model.h>

/**
 * sp_layout_start() - STREAMPOOL_LAYOUT, before the shim is on
 *
 * What is wrong in it is told, and then pools have the default heap.
 */
void sp_layout_start(const char *text);

/** sp_layout() - that was asked for; NULL for the default heap. */
const struct spm_layout *sp_layout(void);

/** sp_layout_install() - into a pool that was just made, with the model's lock held. One that
 * cannot have it has the default heap. */
void sp_layout_install(struct spm_model *model, spm_pool pool);

#endif
