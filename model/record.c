/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Record -- what is known of a block
 */

#include "record.h"

#include <assert.h>
#include <string.h>

#include "area.h"
#include "host.h"
#include "state.h"

#define EXTRAS      4  /* at hand */
#define RECORDS_MIN 32 /* made at once */
#define RECORDS_MAX 8192
#define LINE        64 /* of a cache */

struct spm_records {
        struct spm_records *next;
};

/* It holds what its last block has left there. */
static inline struct spm_block *take_spare(struct spm_model *model)
{
        struct spm_block *block = model->spare;

        assert(block);
        model->spare = block->next;
        model->spares--;
        model->blocks++;
        spm_block_become(block, SPM_BLOCK_LOOSE);
        return block;
}

struct spm_block *spm_block_take(struct spm_model *model)
{
        struct spm_block *block = take_spare(model);

        spm_block_clear(block);
        return block;
}

void spm_block_give(struct spm_model *model, struct spm_block *block)
{
        spm_block_drop_deps(model, block);
        block->next = model->spare;
        model->spare = block;
        model->spares++;
        model->blocks--;
}

/* A quarter more than there are, so that many records lie on few host pages. */
static bool make_records(struct spm_model *model)
{
        size_t count = model->blocks / 4;
        struct spm_records *more;
        struct spm_block *block;

        if (count < RECORDS_MIN)
                count = RECORDS_MIN;
        if (count > RECORDS_MAX)
                count = RECORDS_MAX;
        more = spm_host_new(model, sizeof(*more) + count * sizeof(*block) + LINE);
        if (!more)
                return false;
        more->next = model->records;
        model->records = more;
        block = (struct spm_block *)(((uintptr_t)(more + 1) + LINE - 1) & ~(uintptr_t)(LINE - 1));
        model->spares += (unsigned int)count;
        for (block += count; count; count--) {
                (--block)->next = model->spare;
                model->spare = block;
        }
        return true;
}

static SPM_COLD bool stock_up(struct spm_model *model, unsigned int count)
{
        while (model->spares < count)
                if (!make_records(model))
                        return false;
        while (model->extras < EXTRAS) {
                struct spm_extra *extra = spm_host_new(model, sizeof(*extra));

                if (!extra)
                        return false;
                extra->next = model->extra;
                model->extra = extra;
                model->extras++;
        }
        return true;
}

bool spm_block_reserve(struct spm_model *model, unsigned int count)
{
        return (model->spares >= count && model->extras >= EXTRAS) || stock_up(model, count);
}

void spm_block_forget_spares(struct spm_model *model)
{
        while (model->records) {
                struct spm_records *records = model->records;

                model->records = records->next;
                spm_host_free(model, records);
        }
        while (model->extra) {
                struct spm_extra *extra = model->extra;

                model->extra = extra->next;
                spm_host_free(model, extra);
        }
        model->spare = NULL;
        model->spares = 0;
        model->extras = 0;
}

struct spm_block *spm_block_insert(struct spm_model *model, struct spm_block *block, bool before)
{
        struct spm_block *made = take_spare(model);

        memcpy(&made->state + 1, &block->state + 1, sizeof(*made) - sizeof(made->state));
        made->extra = NULL;
        made->dep_count = 0;
        if (before) {
                made->next = block;
                block->previous = made;
                if (made->previous)
                        made->previous->next = made;
                else
                        made->area->first = made;
        } else {
                made->previous = block;
                block->next = made;
                if (made->next)
                        made->next->previous = made;
                else
                        made->area->last = made;
        }
        return made;
}

void spm_block_remove(struct spm_model *model, struct spm_block *block)
{
        assert(spm_block_is(block, SPM_BLOCK_LOOSE));
        if (block->previous)
                block->previous->next = block->next;
        else
                block->area->first = block->next;
        if (block->next)
                block->next->previous = block->previous;
        else
                block->area->last = block->previous;
        spm_block_give(model, block);
}

struct spm_block *spm_block_split(struct spm_model *model, struct spm_block *block, size_t size)
{
        struct spm_block *rest = spm_block_insert(model, block, false);
        struct spm_point deps[SPM_BLOCK_DEPS];
        unsigned int i;

        assert(!block->is_slot && size && size < block->size);
        for (i = 0; i < block->dep_count; i++)
                deps[i] = spm_block_dep(block, i);
        rest->address += size;
        rest->size -= size;
        block->size = size;
        /* Extras are at hand, see spm_block_reserve(); a block that forgot what it waits for is not
         * to be served again. */
        if (!spm_block_set_deps(model, rest, deps, block->dep_count))
                rest->exported = true;
        return rest;
}

void spm_block_absorb(struct spm_model *model, struct spm_block *block, struct spm_block *other)
{
        assert(block->area == other->area);
        assert(block->next == other || block->previous == other);

        if (block->previous == other)
                block->address = other->address;
        block->size += other->size;
        block->fresh = block->fresh && other->fresh;
        spm_block_remove(model, other);
}

/* points */

static struct spm_extra *take_extra(struct spm_model *model)
{
        struct spm_extra *extra = model->extra;

        if (!extra)
                return spm_host_new(model, sizeof(*extra));
        model->extra = extra->next;
        model->extras--;
        return extra;
}

void spm_block_drop_extra(struct spm_model *model, struct spm_block *block)
{
        block->extra->next = model->extra;
        model->extra = block->extra;
        model->extras++;
        block->extra = NULL;
}

bool spm_block_set_many(struct spm_model *model, struct spm_block *block,
                        const struct spm_point *deps, unsigned int count)
{
        unsigned int i;

        if (count > SPM_BLOCK_DEPS)
                return false;
        if (count > 2 && !block->extra) {
                block->extra = take_extra(model);
                if (!block->extra)
                        return false;
        }
        for (i = 0; i < count && i < 2; i++) {
                block->streams[i] = deps[i].stream;
                block->positions[i] = deps[i].position;
        }
        for (; i < count; i++)
                block->extra->points[i - 2] = deps[i];
        if (count <= 2 && block->extra)
                spm_block_drop_extra(model, block);
        block->dep_count = (uint8_t)count;
        return true;
}
