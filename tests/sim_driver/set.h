/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_SET_H
#define SIM_SET_H

/*
 * Set -- one value into many elements, in stream order
 */

#include "operation.h"

#pragma GCC visibility push(hidden)

/* The work of setting @height rows of @width elements of @size bytes; 1: not the program's memory.
 */
CUresult sim_set_work(struct sim_work *work, CUdeviceptr to, size_t pitch, unsigned int size,
                      unsigned int value, size_t width, size_t height);

#pragma GCC visibility pop

#endif
