/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_PORTER_H
#define SP_TRACK_PORTER_H

/*
 * Porter -- hands descriptors to other processes where they cannot be taken
 *
 * The one thread of ours, and there is none unless the kernel keeps pidfd_getfd()
 * from this process and the program exports memory all the same.
 */

#include <stdint.h>

#include "track/seal.h"

#define SP_PORTER_TABLE UINT32_MAX

/** sp_porter_start() - the number by which others find it, the same each time; 0: there is none. */
uint64_t sp_porter_start(void);

/* in the process that opens */

/** sp_porter_meet() - a connection to the porter of the exporter. Return: -1 and errno if there is
 * none. */
int sp_porter_meet(const struct sp_seal *seal);

/** sp_porter_ask() - the descriptor of part @part of what is sealed, or of the table. Return: -1
 * and errno if it was not to be had. */
int sp_porter_ask(int connection, const struct sp_seal *seal, uint32_t part);

#endif
