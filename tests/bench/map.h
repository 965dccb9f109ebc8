/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MAP_H
#define MAP_H

/*
 * Map -- from an address to what stands for it
 *
 * Open addressing in one array, at most half full: what the peers call a flat
 * hash map. Keys are not 0.
 */

#include <stddef.h>
#include <stdint.h>

struct map_entry {
        uint64_t key;
        void *value;
};

struct map {
        struct map_entry *entry;
        size_t room; /* a power of two, or 0 */
        size_t count;
};

/** map_put() - @key must not be there. Ends the program if the host has no memory. */
void map_put(struct map *map, uint64_t key, void *value);

/** map_get() - NULL if there is none. */
void *map_get(const struct map *map, uint64_t key);

/** map_take() - remove and return it; NULL if there is none. */
void *map_take(struct map *map, uint64_t key);

void map_fini(struct map *map);

#endif
