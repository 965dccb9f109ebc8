/* SPDX-License-Identifier: Apache-2.0 */
/* For binary.py: dlsym.S with nothing behind it, to run on another processor. */

#include "driver/lookup.h"

void *sp_on_dlsym(void *handle, const char *name)
{
        return sp_dlsym(handle, name);
}
