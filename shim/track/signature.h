/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_SIGNATURE_H
#define SP_TRACK_SIGNATURE_H

/*
 * Signature -- which parameters of a kernel have the size of an address?
 *
 * The driver says it from CUDA 12.4 on (cuFuncGetParamInfo), and it is remembered
 * for each function. Asked with no lock held, and while nothing captures.
 */

#include <stdbool.h>
#include <stdint.h>

#include "driver/driver.h"

#define SP_SIGNATURE_WORDS 128 /* of a kernel that has more, the first ones */

/* A parameter of eight bytes. */
struct sp_signature_word {
        uint16_t number; /* among all parameters, from 1 */
        uint16_t offset; /* where it is when all are in one buffer */
};

struct sp_signature {
        unsigned int count;
        struct sp_signature_word word[SP_SIGNATURE_WORDS];
};

/** sp_signature_is_told() - can this driver describe parameters? */
bool sp_signature_is_told(void);

/** sp_signature_of() - of @function, which may also be a CUkernel that was cast to it, as for a
 * launch. Return: false if the driver does not say it. */
bool sp_signature_of(CUfunction function, struct sp_signature *signature);

/** sp_signature_name() - what the driver calls @function, mangled if it is of C++; kept for ever.
 * Return: NULL if it does not say so, or if there is no room. */
const char *sp_signature_name(CUfunction function);

/** sp_signature_forget() - functions end now, and their handles may soon mean others. */
void sp_signature_forget(void);

#endif
