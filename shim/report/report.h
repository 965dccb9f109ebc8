/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_REPORT_H
#define SP_REPORT_H

/*
 * Report -- what happened to the program's memory?
 *
 * Made of what the ledger, the counters and the pools know. No driver is
 * called, no application's stdio is touched, and a lock that another thread
 * keeps is given up on: part of the report is missing then, and says so.
 */

#include <stdbool.h>

/**
 * sp_report_write() - write the report where STREAMPOOL_REPORT says
 *
 * Nothing is written if no allocation, free or finding was seen, unless
 * something was to be made to fail, or STREAMPOOL_DIAG asks why. A file that cannot be written is
 * named on stderr, where the report goes instead.
 */
void sp_report_write(void);

/** sp_report_write_files() - the same, but nothing on stderr. */
void sp_report_write_files(void);

/** sp_report_write_dying() - the same, for a handler of a signal: without what takes heap and
 * files, which are functions and lines (lines.h). */
void sp_report_write_dying(void);

/** sp_report_has_findings() - was memory leaked, or freed wrongly, and is the user to hear of it?
 */
bool sp_report_has_findings(void);

#endif
