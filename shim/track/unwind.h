/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_UNWIND_H
#define SP_TRACK_UNWIND_H

/*
 * Unwind -- which calls of C and C++ is this thread in?
 *
 * By the toolchain's unwinder, which reads the tables that exceptions need and
 * every library has. Frame pointers would be faster, and lie: most libraries are built
 * without them, and a chain through such a function leaves callers out, or
 * follows a number that is no address, which cannot be told from a good one.
 *
 * The unwinder takes some 100 ns a frame. So a thread remembers where on its
 * stack the return addresses of its last walks lay. A walk that begins at the
 * same place and finds all of them there is the same again, for the price of
 * reading them. What lies there could be left over from a call that has
 * returned, where a function's frame is not always of one size; so the frame pointers
 * of such functions have to be the same, too.
 *
 * The way out of NVIDIA's runtime is remembered without the place at which it began, and
 * without the address that it leads to: from one of its calls of the driver the
 * frames of that library lie as they lay, wherever on the stack that is and whoever has called.
 * So it is found again at any depth, and the address is read where it lies.
 *
 * The unwinder believes what it finds, and reads wherever a wrong address leads. So
 * it is not let near two kinds of frames. Stacks that a program made for its
 * coroutines end in whatever it has put there: on a stack that is not the one which the
 * thread was given, there are no frames. And below a Python interpreter may
 * lie what greenlets have moved away and others have overwritten: a walk ends
 * where the interpreter begins.
 */

#include <stdbool.h>

/**
 * sp_unwind_start() - finds the unwinder; before any walk
 * @remembered: walks of each thread, a power of two; each takes 2 KiB
 *
 * Return: false if there is none.
 */
bool sp_unwind_start(unsigned int remembered);

/**
 * sp_unwind() - the return addresses above the call that returns to @caller
 * @here:  the frame of a function that was called, directly or not, by the one that returns there
 * @frame: return argument, innermost first, without @caller
 *
 * Return: how many, at most @most, of which SP_FRAMES_MAX is the most. 0 if @caller is not found.
 */
unsigned int sp_unwind(const void *caller, const void *here, const void **frame, unsigned int most);

/**
 * sp_unwind_out() - the first of them that is not in a runtime, which @caller is in
 *
 * Return: @caller if there is none within reach.
 */
const void *sp_unwind_out(const void *caller, const void *here);

#endif
