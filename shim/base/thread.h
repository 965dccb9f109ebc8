/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_THREAD_H
#define SP_THREAD_H

/*
 * Thread -- what is done when a thread of the program ends
 *
 * Whoever keeps something for a thread says so while that thread runs, and is
 * called in it when it ends; what was said last is called first.
 */

#include <stdbool.h>

/** sp_thread_at_end() - @end is called with @argument when the calling thread ends. Return: false
 * if it will not be, because the host has no memory. */
bool sp_thread_at_end(void (*end)(void *argument), void *argument);

#endif
