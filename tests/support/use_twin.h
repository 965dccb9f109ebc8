/* SPDX-License-Identifier: Apache-2.0 */
#ifndef USE_TWIN_H
#define USE_TWIN_H

/*
 * Use twin -- who used what, and who has to wait for it, by brute force
 *
 * Every operation is a node with all its ancestors. Of a block all uses are kept,
 * and nothing is ever replaced; who has to wait for whom is read from the graph.
 * It is slow and simple on purpose.
 *
 * A wait that the model asks for is one that the device makes and the program does
 * not know of. So there are two orders: "real" has these waits, "told" has not.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <streampool/model.h>

#define USE_NODES   768
#define USE_STREAMS 12
#define USE_BLOCKS  512
#define USE_USES    64 /* of one block; further ones are not made */

struct use_set {
        uint64_t words[USE_NODES / 64];
};

struct use_node {
        int stream;
        struct use_set real; /* ancestors, itself among them */
        struct use_set told;
};

struct use_block {
        struct spm_block_id id;
        size_t size;
        size_t reserved;
        bool is_live;
        enum spm_life life; /* that was seen last */
        int freed;          /* the node of its free */
        unsigned int count;
        int nodes[USE_USES]; /* the first is its allocation, which is a write */
        bool writes[USE_USES];
};

struct use_twin {
        int count;
        struct use_node nodes[USE_NODES];
        struct use_set done;              /* the host has seen them */
        struct use_set real[USE_STREAMS]; /* what the next node of a stream runs after */
        struct use_set told[USE_STREAMS];
        struct use_block blocks[USE_BLOCKS];
        unsigned int block_count;
};

void use_set_join(struct use_set *set, const struct use_set *other);
bool use_set_has(const struct use_set *set, int node);

/** use_twin_submit() - Return: the node; USE_NODES - 1 at most are made. */
int use_twin_submit(struct use_twin *twin, int stream);

/** use_twin_is_full() - no program goes on then. */
bool use_twin_is_full(const struct use_twin *twin);

/** use_twin_note() - the node uses the block. */
void use_twin_note(struct use_block *block, int node, bool writes);

/** use_twin_waits() - a bit for each stream that has a use of the block which the access has to be
 * behind, and @stream is not: of the real order, or of the told one. */
uint32_t use_twin_waits(const struct use_twin *twin, const struct use_block *block,
                        enum spm_use_access access, int stream, bool real);

/** use_twin_told() - the ancestors of these uses join what @stream runs after. */
void use_twin_obey(struct use_twin *twin, const struct use_set *behind, int stream);

/** use_twin_behind() - all nodes that the waits of that access stand for. */
struct use_set use_twin_behind(const struct use_twin *twin, const struct use_block *block,
                               enum spm_use_access access, int stream);

/** use_twin_is_over() - has the host seen the end of all uses of the block, and of its free? */
bool use_twin_is_over(const struct use_twin *twin, const struct use_block *block);

/** use_twin_meets() - work that @stream gets next could run beside a use of a dead block whose
 * memory is among these bytes. Return: that block, or NULL. */
const struct use_block *use_twin_meets(const struct use_twin *twin, uint64_t address, size_t bytes,
                                       int stream);

#endif
