/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_STAMP_GRAPH_GATE_H
#define SP_STAMP_GRAPH_GATE_H

/*
 * Graph gate -- no wait of ours in the midst of a graph launch into the same stream
 *
 * The driver loses a wait that a stream is given while another thread is inside
 * cuGraphLaunch on that stream (580.159: 170 of 68,000; none with the two kept
 * apart; tests/gpu/beside.c). What the program does to itself that way it would do
 * without us, too; but a wait that memory of ours depends on must not be lost.
 *
 * A launch that finds a wait of ours under way lets it pass: a cuStreamWaitEvent.
 * A wait that finds launches gives up after SP_GATE_PATIENCE_NS, and its caller
 * does without. Streams share gates by their handles, which costs time at most.
 *
 * Threads: all functions may be called at any time, with no lock held; a gate is
 * no lock: the one thing that is waited for with it is a call that waits for no
 * gate. CU_STREAM_PER_THREAD has none: nobody else can launch into it.
 */

#include <stdbool.h>

#include "driver/driver.h"

#define SP_GATE_PATIENCE_NS 2000000

/** sp_graph_gate_enter() - this thread is about to launch a graph into @stream. */
void sp_graph_gate_enter(CUstream stream);
void sp_graph_gate_leave(CUstream stream);

/**
 * sp_graph_gate_close() - keep launches into @stream out until sp_graph_gate_open()
 *
 * Return: false if launches go on; then there is nothing to open.
 */
bool sp_graph_gate_close(CUstream stream);
void sp_graph_gate_open(CUstream stream);

#endif
