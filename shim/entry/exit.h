/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_EXIT_H
#define SP_EXIT_H

/*
 * Exit -- the last report, and the exit status
 */

/* For on_exit(): writes the report if nobody did, and changes a status of 0 where findings and
 * STREAMPOOL_EXITCODE ask for it. */
void sp_exit_status(int status, void *unused);

#endif
