/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Use twin -- who used what, and who has to wait for it, by brute force
 */

#include "use_twin.h"

#include <assert.h>

#define WORDS (USE_NODES / 64)

void use_set_join(struct use_set *set, const struct use_set *other)
{
        for (unsigned int i = 0; i < WORDS; i++)
                set->words[i] |= other->words[i];
}

bool use_set_has(const struct use_set *set, int node)
{
        return set->words[node / 64] >> (node % 64) & 1;
}

static void add(struct use_set *set, int node)
{
        set->words[node / 64] |= (uint64_t)1 << (node % 64);
}

bool use_twin_is_full(const struct use_twin *twin)
{
        return twin->count > USE_NODES - 64 || twin->block_count > USE_BLOCKS - 8;
}

int use_twin_submit(struct use_twin *twin, int stream)
{
        int node = twin->count++;

        assert(node < USE_NODES);
        add(&twin->real[stream], node);
        add(&twin->told[stream], node);
        twin->nodes[node].stream = stream;
        twin->nodes[node].real = twin->real[stream];
        twin->nodes[node].told = twin->told[stream];
        return node;
}

void use_twin_note(struct use_block *block, int node, bool writes)
{
        assert(block->count < USE_USES);
        block->nodes[block->count] = node;
        block->writes[block->count++] = writes;
}

/* Does a later write stand for use @i? Then whoever is behind that is behind this. */
static bool is_hidden(const struct use_twin *twin, const struct use_block *block, unsigned int i,
                      bool real)
{
        for (unsigned int j = 0; j < block->count; j++) {
                const struct use_node *other = &twin->nodes[block->nodes[j]];

                if (j != i && block->writes[j] && block->nodes[j] != block->nodes[i] &&
                    use_set_has(real ? &other->real : &other->told, block->nodes[i]))
                        return true;
        }
        return false;
}

static bool has_to_wait(const struct use_twin *twin, const struct use_block *block, unsigned int i,
                        enum spm_use_access access, int stream, bool real)
{
        const struct use_set *behind = real ? &twin->real[stream] : &twin->told[stream];

        return (access != SPM_USE_READ || block->writes[i]) &&
               !use_set_has(behind, block->nodes[i]) &&
               !use_set_has(&twin->done, block->nodes[i]) && !is_hidden(twin, block, i, real);
}

uint32_t use_twin_waits(const struct use_twin *twin, const struct use_block *block,
                        enum spm_use_access access, int stream, bool real)
{
        uint32_t streams = 0;

        for (unsigned int i = 0; i < block->count; i++)
                if (has_to_wait(twin, block, i, access, stream, real))
                        streams |= (uint32_t)1 << twin->nodes[block->nodes[i]].stream;
        return streams;
}

struct use_set use_twin_behind(const struct use_twin *twin, const struct use_block *block,
                               enum spm_use_access access, int stream)
{
        struct use_set behind = {{0}};

        for (unsigned int i = 0; i < block->count; i++)
                if (has_to_wait(twin, block, i, access, stream, false))
                        use_set_join(&behind, &twin->nodes[block->nodes[i]].told);
        return behind;
}

void use_twin_obey(struct use_twin *twin, const struct use_set *behind, int stream)
{
        use_set_join(&twin->real[stream], behind);
        use_set_join(&twin->told[stream], behind);
}

bool use_twin_is_over(const struct use_twin *twin, const struct use_block *block)
{
        for (unsigned int i = 0; i < block->count; i++)
                if (!use_set_has(&twin->done, block->nodes[i]))
                        return false;
        return use_set_has(&twin->done, block->freed);
}

/* The allocation itself is no work. */
static bool is_met(const struct use_twin *twin, const struct use_block *block, int stream)
{
        for (unsigned int i = 1; i < block->count; i++)
                if (!use_set_has(&twin->done, block->nodes[i]) &&
                    !use_set_has(&twin->real[stream], block->nodes[i]))
                        return true;
        return false;
}

const struct use_block *use_twin_meets(const struct use_twin *twin, uint64_t address, size_t bytes,
                                       int stream)
{
        for (unsigned int i = 0; i < twin->block_count; i++) {
                const struct use_block *block = &twin->blocks[i];

                if (!block->is_live && block->id.address < address + bytes &&
                    address < block->id.address + block->reserved && is_met(twin, block, stream))
                        return block;
        }
        return NULL;
}
