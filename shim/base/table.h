/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TABLE_H
#define SP_TABLE_H

/*
 * Table -- hash tables that survive a full heap
 *
 * The only file of the shim that includes uthash.h. Left alone, uthash ends the
 * process when it cannot allocate; here an addition that fails leaves the table
 * as it was and the element's `hh.tbl` NULL, which every caller checks.
 */

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#endif
