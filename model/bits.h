/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPM_BITS_H
#define SPM_BITS_H

/*
 * Bits -- where the ones of a word are; the word has one
 */

#include <stdint.h>

/* Also the logarithm to base 2, rounded down. */
static inline unsigned int spm_highest_bit(uint64_t word)
{
        return 63 - (unsigned int)__builtin_clzll(word);
}

/* Also the logarithm of a power of two. */
static inline unsigned int spm_lowest_bit(uint64_t word)
{
        return (unsigned int)__builtin_ctzll(word);
}

#endif
