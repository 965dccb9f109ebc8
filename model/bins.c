/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bins -- free blocks by size
 *
 * Which bin a block belongs to, and which is the next that is not empty. Bins of
 * one size are lists; the others are the trees of bins_tree.c.
 */

#include "bins.h"

#include "area.h"
#include "bits.h"
#include "host.h"

#define COLUMNS    64
#define EXACT_BITS 10 /* units of the exact bins: 1024 */

_Static_assert(SPM_EXACT_ROWS *COLUMNS == 1 << EXACT_BITS, "the exact bins end where trees begin");
_Static_assert(SPM_ROWS == SPM_EXACT_ROWS + 64 - EXACT_BITS, "every size has a row");

struct spm_row {
        uint64_t used;
        struct spm_block *bin[COLUMNS]; /* a list linked both ways, or the root of a tree */
};

struct place {
        unsigned int row;
        unsigned int column;
};

static struct place place_of(const struct spm_bins *bins, size_t size)
{
        uint64_t units = (uint64_t)size >> bins->shift;
        unsigned int bits;

        if (units < (uint64_t)1 << EXACT_BITS)
                return (struct place){(unsigned int)units / COLUMNS, (unsigned int)units % COLUMNS};
        bits = spm_highest_bit(units);
        return (struct place){SPM_EXACT_ROWS + bits - EXACT_BITS,
                              (unsigned int)(units >> (bits - 6)) % COLUMNS};
}

static bool is_exact(struct place place)
{
        return place.row < SPM_EXACT_ROWS;
}

/* lists */

/* The lower address of the newest two is first: cheap, and most of what an order would give. */
static void list_insert(struct spm_block **head, struct spm_block *block)
{
        struct spm_block *first = *head;

        if (!first || block->address < first->address) {
                block->left = NULL;
                block->right = first;
                if (first)
                        first->left = block;
                *head = block;
                return;
        }
        block->left = first;
        block->right = first->right;
        if (first->right)
                first->right->left = block;
        first->right = block;
}

static void list_remove(struct spm_block **head, struct spm_block *block)
{
        if (block->left)
                block->left->right = block->right;
        else
                *head = block->right;
        if (block->right)
                block->right->left = block->left;
}

/* rows */

void spm_bins_init(struct spm_bins *bins, size_t unit)
{
        bins->shift = spm_lowest_bit(unit);
}

static bool make_row(struct spm_model *model, struct spm_bins *bins, unsigned int row)
{
        if (!bins->rows[row])
                bins->rows[row] = spm_host_new(model, sizeof(*bins->rows[row]));
        return bins->rows[row] != NULL;
}

bool spm_bins_prepare(struct spm_model *model, struct spm_bins *bins, size_t size)
{
        unsigned int last = place_of(bins, size).row;
        unsigned int row;

        for (row = 0; row <= last; row++)
                if (!make_row(model, bins, row))
                        return false;
        return true;
}

void spm_bins_forget(struct spm_model *model, struct spm_bins *bins)
{
        unsigned int row;

        for (row = 0; row < SPM_ROWS; row++) {
                spm_host_free(model, bins->rows[row]);
                bins->rows[row] = NULL;
        }
        bins->used[0] = 0;
        bins->used[1] = 0;
}

static void put(struct spm_bins *bins, struct place place, struct spm_block *block)
{
        struct spm_row *row = bins->rows[place.row];

        if (is_exact(place))
                list_insert(&row->bin[place.column], block);
        else
                spm_tree_insert(&row->bin[place.column], block);
        row->used |= (uint64_t)1 << place.column;
        bins->used[place.row / 64] |= (uint64_t)1 << place.row % 64;
}

static void take(struct spm_bins *bins, struct place place, struct spm_block *block)
{
        struct spm_row *row = bins->rows[place.row];

        if (is_exact(place))
                list_remove(&row->bin[place.column], block);
        else
                spm_tree_remove(&row->bin[place.column], block);
        if (row->bin[place.column])
                return;
        row->used &= ~((uint64_t)1 << place.column);
        if (!row->used)
                bins->used[place.row / 64] &= ~((uint64_t)1 << place.row % 64);
}

bool spm_bins_insert(struct spm_model *model, struct spm_bins *bins, struct spm_block *block)
{
        struct place place = place_of(bins, block->size);

        if (!make_row(model, bins, place.row))
                return false;
        put(bins, place, block);
        return true;
}

void spm_bins_remove(struct spm_bins *bins, struct spm_block *block)
{
        take(bins, place_of(bins, block->size), block);
}

/* In a tree of its own it is found wherever it is. */
static bool may_stay(const struct spm_bins *bins, const struct spm_block *block, struct place from,
                     struct place to)
{
        return from.row == to.row && from.column == to.column && !is_exact(from) &&
               bins->rows[from.row]->bin[from.column] == block && !block->left && !block->right;
}

void spm_bins_change(struct spm_bins *bins, struct spm_block *block, uint64_t address, size_t size)
{
        struct place from = place_of(bins, block->size);
        struct place to = place_of(bins, size);
        bool stays = may_stay(bins, block, from, to);

        if (!stays)
                take(bins, from, block);
        block->address = address;
        block->size = size;
        if (!stays)
                put(bins, to, block);
}

/* search */

/* The first bin that is not empty, from @place on. */
static bool seek(const struct spm_bins *bins, struct place *place)
{
        const struct spm_row *row = bins->rows[place->row];
        uint64_t used = row ? row->used >> place->column : 0;
        unsigned int next = place->row + 1;
        unsigned int word = next / 64;

        if (used) {
                place->column += spm_lowest_bit(used);
                return true;
        }
        if (next >= SPM_ROWS)
                return false;
        used = bins->used[word] >> next % 64 << next % 64;
        if (!used && word == 0)
                used = bins->used[++word];
        if (!used)
                return false;
        place->row = word * 64 + spm_lowest_bit(used);
        place->column = spm_lowest_bit(bins->rows[place->row]->used);
        return true;
}

/* The last one that is not empty, up to @place. */
static bool seek_down(const struct spm_bins *bins, struct place *place)
{
        const struct spm_row *row = bins->rows[place->row];
        uint64_t used = row ? row->used << (COLUMNS - 1 - place->column) : 0;
        unsigned int word;

        if (used) {
                place->column -= COLUMNS - 1 - spm_highest_bit(used);
                return true;
        }
        if (!place->row)
                return false;
        word = (place->row - 1) / 64;
        used = bins->used[word] << (63 - (place->row - 1) % 64) >> (63 - (place->row - 1) % 64);
        if (!used && word == 1)
                used = bins->used[--word];
        if (!used)
                return false;
        place->row = word * 64 + spm_highest_bit(used);
        place->column = spm_highest_bit(bins->rows[place->row]->used);
        return true;
}

static struct spm_block *bin_at(const struct spm_bins *bins, struct place place)
{
        return bins->rows[place.row]->bin[place.column];
}

/* Return: false at the end. */
static bool step_up(struct place *place)
{
        if (place->column + 1 < COLUMNS) {
                place->column++;
                return true;
        }
        place->column = 0;
        return ++place->row < SPM_ROWS;
}

static bool step_down(struct place *place)
{
        if (place->column) {
                place->column--;
                return true;
        }
        place->column = COLUMNS - 1;
        return place->row-- != 0;
}

static struct spm_block *first_from(const struct spm_bins *bins, struct place place)
{
        if (!seek(bins, &place))
                return NULL;
        if (is_exact(place))
                return bin_at(bins, place);
        return spm_tree_at_least(bin_at(bins, place), 0, 0);
}

struct spm_block *spm_bins_at_least(const struct spm_bins *bins, size_t size)
{
        struct place place = place_of(bins, size);
        struct spm_block *found;

        if (!is_exact(place) && bins->rows[place.row]) {
                found = spm_tree_at_least(bin_at(bins, place), size, 0);
                if (found)
                        return found;
                if (!step_up(&place))
                        return NULL;
        }
        return first_from(bins, place);
}

struct spm_block *spm_bins_after(const struct spm_bins *bins, const struct spm_block *block)
{
        struct place place = place_of(bins, block->size);
        struct spm_block *next =
                is_exact(place)
                        ? block->right
                        : spm_tree_at_least(bin_at(bins, place), block->size, block->address + 1);

        if (next)
                return next;
        return step_up(&place) ? first_from(bins, place) : NULL;
}

static struct spm_block *last_from(const struct spm_bins *bins, struct place place)
{
        if (!seek_down(bins, &place))
                return NULL;
        if (is_exact(place))
                return bin_at(bins, place);
        return spm_tree_below(bin_at(bins, place), SIZE_MAX, UINT64_MAX);
}

struct spm_block *spm_bins_largest(const struct spm_bins *bins)
{
        return last_from(bins, (struct place){SPM_ROWS - 1, COLUMNS - 1});
}

struct spm_block *spm_bins_before(const struct spm_bins *bins, const struct spm_block *block)
{
        struct place place = place_of(bins, block->size);
        struct spm_block *found =
                is_exact(place) ? block->right
                                : spm_tree_below(bin_at(bins, place), block->size, block->address);

        if (found)
                return found;
        return step_down(&place) ? last_from(bins, place) : NULL;
}

/* check */

static bool check_tree(const struct spm_bins *bins, const struct spm_block *node,
                       struct place place, size_t *count)
{
        struct place at;

        if (!node)
                return true;
        at = place_of(bins, node->size);
        if (at.row != place.row || at.column != place.column || !spm_tree_is_ordered(node))
                return false;
        ++*count;
        return check_tree(bins, node->left, place, count) &&
               check_tree(bins, node->right, place, count);
}

static bool check_list(const struct spm_bins *bins, const struct spm_block *block,
                       struct place place, size_t *count)
{
        const struct spm_block *previous = NULL;

        for (; block; block = block->right) {
                struct place at = place_of(bins, block->size);

                if (at.row != place.row || at.column != place.column || block->left != previous)
                        return false;
                previous = block;
                ++*count;
        }
        return true;
}

/* What no bit leads to is not found here; whoever has counted its blocks misses it. */
bool spm_bins_check(const struct spm_bins *bins, size_t *count)
{
        struct place at;

        *count = 0;
        for (at.row = 0; at.row < SPM_ROWS; at.row++) {
                const struct spm_row *row = bins->rows[at.row];
                bool used = bins->used[at.row / 64] >> at.row % 64 & 1;
                uint64_t left = row ? row->used : 0;

                if (used != (left != 0))
                        return false;
                for (; left; left &= left - 1) {
                        const struct spm_block *bin;

                        at.column = spm_lowest_bit(left);
                        bin = row->bin[at.column];
                        if (!bin || !(is_exact(at) ? check_list(bins, bin, at, count)
                                                   : check_tree(bins, bin, at, count)))
                                return false;
                }
        }
        return true;
}
