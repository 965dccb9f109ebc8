/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_SEAL_H
#define SP_TRACK_SEAL_H

/*
 * Seal -- what two processes under the shim have to agree on
 *
 * A sealed handle is 64 bytes that the program carries from one process to
 * another as if the driver had made them. It does not hold what is behind the
 * block, which can be many chunks: it says where the exporter keeps its table,
 * and where in it the record of the block is. The key is random and in both, so
 * a process that got the exporter's number later, a record that has ended and a
 * handle that is not ours are all told from the right one.
 *
 * The first bytes are a word of ours, and not the last: the driver ignores some
 * of those (U9), and whoever is not under the shim must be refused.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "driver/driver.h"

#define SP_SEAL_WORD  "sp-ipc-1" /* changes with the two structs below */
#define SP_SEAL_PARTS 65536      /* at most, of one block */

struct sp_seal {
        char word[8];
        int32_t process;
        int32_t table; /* its descriptor in that process */
        uint64_t at;   /* of the record in the table */
        unsigned char key[16];
        uint64_t porter; /* who hands out descriptors (porter.h); 0: they are taken */
};

struct sp_seal_part {
        int32_t descriptor; /* in that process, of the physical memory */
        uint32_t unused;
        uint64_t bytes;
};

/* In the table, and @count parts after it. */
struct sp_seal_record {
        unsigned char key[16];
        uint64_t size;         /* of the block, as asked for */
        uint64_t offset;       /* of its first byte in the first part, or in what @native names */
        uint64_t count;        /* 0: a part of plain cuMemAlloc memory */
        CUipcMemHandle native; /* of that memory, the driver's own */
};

_Static_assert(sizeof(struct sp_seal) <= sizeof(CUipcMemHandle), "a seal is a handle");

/** sp_seal_read() - Return: false if the handle is not one of ours. */
static inline bool sp_seal_read(const CUipcMemHandle *handle, struct sp_seal *seal)
{
        memcpy(seal, handle, sizeof(*seal));
        return !memcmp(seal->word, SP_SEAL_WORD, sizeof(seal->word));
}

/* System calls that the oldest C library we load with has no function for. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

#endif
