/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_GROW_H
#define SPM_GROW_H

/*
 * Grow -- where more memory goes, and what makes way
 *
 * In a range, a request that no free block holds goes where the least is
 * missing: into a hole and the free blocks beside it, or such as its stream has
 * freed and may have again. Holes that were used
 * last are looked at first, and a fixed number of them, and always the end of
 * the range. Each hole on the way is backed in pieces (piece.h). Where idle
 * memory makes way, or will, all are of the usual size.
 *
 * A pool may hold what was in use at its peak, plus a slack and one piece (enum
 * spm_growth). Before it passes that, segments that nobody uses are released,
 * those idle for longest first: they move. What is much smaller than a piece goes
 * last, and only when the pool would pass it by more than a few grains. So memory follows the
 * program around in its range, and a program whose blocks vary in size does not collect free pieces
 * of every size.
 *
 * Without a range a segment is as large as the request, at least as large as a
 * piece, and released when it is idle as a whole.
 */

#include <stdbool.h>
#include <streampool/model.h>

#include "fit.h"

/**
 * spm_grow_ask() - ask for memory that the request fits in
 * @request: whose; if it was asked for before, it was not found where it should fit
 * @exact: for nothing beyond it, and whatever the pool may hold
 *
 * Return: SPM_OK if there is more already, SPM_AGAIN if it was asked for, SPM_E_OUT_OF_MEMORY,
 * SPM_E_HOST_MEMORY.
 */
enum spm_status spm_grow_ask(struct spm_model *model, const struct spm_want *want,
                             struct spm_request *request, bool exact, struct spm_actions *actions);

/** spm_grow_page() - ask for a page of a layout, at @address if that is not 0. Return: as above. */
enum spm_status spm_grow_page(struct spm_model *model, struct spm_pool_state *pool,
                              uint64_t address, size_t size, bool last,
                              struct spm_actions *actions);

/** spm_grow_is_past_cap() - would so much more be more than the pool may ever hold? */
bool spm_grow_is_past_cap(const struct spm_pool_state *pool, uint64_t size);

/** spm_grow_excess() - bytes that the pool would hold beyond what it may, if it grew by what is
 * missing now. */
uint64_t spm_grow_excess(const struct spm_want *want, const struct spm_request *request);

/** spm_grow_initial() - back the first @size bytes of a MODEL provider's pool. */
enum spm_status spm_grow_initial(struct spm_model *model, struct spm_pool_state *pool, size_t size);

#endif
