/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_RESULT_H
#define SP_TRACK_RESULT_H

/*
 * Result -- how a CUresult is called, and which one is meant by a name
 *
 * Names are those of cuda.h; in what people write, letters may be small and the
 * CUDA_ERROR_ in front may be left out.
 */

#include <stdbool.h>

/** sp_result_name() - "CUDA_ERROR_OUT_OF_MEMORY"; NULL for a number that has no name. */
const char *sp_result_name(int result);

/** sp_result_named() - the error that @name means; false if there is none. */
bool sp_result_named(const char *name, int *result);

#endif
