/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_PYTHON_SIGHT_H
#define SP_PYTHON_SIGHT_H

/*
 * Python sight -- reading memory that may be gone
 *
 * With a sight, memory is read by the kernel, which says no where there is none.
 * Without one it is read as it is, by those who know that it is there.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SP_SIGHT_MOST 512

struct sp_sight {
        unsigned char bytes[SP_SIGHT_MOST];
};

/** sp_sight_look() - @size bytes of @address; keeps errno. Return: where they are now, until the
 * next call with this sight; NULL if they cannot be read, or are more than SP_SIGHT_MOST. */
const unsigned char *sp_sight_look(struct sp_sight *sight, uintptr_t address, size_t size);

/* Could this be the address of an object? Refuses what is small, odd, or the kernel's. */
static inline bool sp_sight_is_plausible(uintptr_t address)
{
        return address >= 4096 && address % sizeof(void *) == 0 && !(address >> 56);
}

/** sp_sight_see() - the same, or @address itself if @sight is NULL */
static inline const unsigned char *sp_sight_see(struct sp_sight *sight, uintptr_t address,
                                                size_t size)
{
        if (!sp_sight_is_plausible(address))
                return NULL;
        return sight ? sp_sight_look(sight, address, size) : (const unsigned char *)address;
}

static inline uintptr_t sp_sight_word(const unsigned char *seen, size_t offset)
{
        uintptr_t word;

        memcpy(&word, seen + offset, sizeof(word));
        return word;
}

static inline int32_t sp_sight_number(const unsigned char *seen, size_t offset)
{
        int32_t number;

        memcpy(&number, seen + offset, sizeof(number));
        return number;
}

#endif
