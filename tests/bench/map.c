/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Map -- from an address to what stands for it
 */

#include "map.h"

#include <stdlib.h>

#include "measure.h"

static size_t home(const struct map *map, uint64_t key)
{
        /* Fibonacci hashing: addresses differ in their middle bits. */
        return (size_t)((key * 0x9e3779b97f4a7c15u) >> 32) & (map->room - 1);
}

static size_t place(const struct map *map, uint64_t key)
{
        size_t i = home(map, key);

        while (map->entry[i].key && map->entry[i].key != key)
                i = (i + 1) & (map->room - 1);
        return i;
}

static void widen(struct map *map)
{
        struct map old = *map;
        size_t i;

        map->room = old.room ? 2 * old.room : 64;
        map->entry = must_calloc(map->room, sizeof(*map->entry));
        for (i = 0; i < old.room; i++)
                if (old.entry[i].key)
                        map->entry[place(map, old.entry[i].key)] = old.entry[i];
        free(old.entry);
}

void map_put(struct map *map, uint64_t key, void *value)
{
        if (2 * (map->count + 1) > map->room)
                widen(map);
        map->entry[place(map, key)] = (struct map_entry){key, value};
        map->count++;
}

void *map_get(const struct map *map, uint64_t key)
{
        return map->room ? map->entry[place(map, key)].value : NULL;
}

void *map_take(struct map *map, uint64_t key)
{
        size_t hole, i;
        void *value;

        if (!map->room)
                return NULL;
        hole = place(map, key);
        value = map->entry[hole].value;
        if (!map->entry[hole].key)
                return NULL;
        map->count--;
        /* What follows moves up, unless that would put it before its home. */
        for (i = (hole + 1) & (map->room - 1); map->entry[i].key; i = (i + 1) & (map->room - 1)) {
                size_t distance = (i - home(map, map->entry[i].key)) & (map->room - 1);

                if (distance >= ((i - hole) & (map->room - 1))) {
                        map->entry[hole] = map->entry[i];
                        hole = i;
                }
        }
        map->entry[hole] = (struct map_entry){0};
        return value;
}

void map_fini(struct map *map)
{
        free(map->entry);
        *map = (struct map){0};
}
