/* SPDX-License-Identifier: Apache-2.0 */
/* For endings.c: a library whose destructor, late in the process, ends it at once. */

#include <stdlib.h>
#include <unistd.h>

int last_is_here(void);

int last_is_here(void)
{
        return 1;
}

__attribute__((destructor)) static void cut(void)
{
        if (getenv("LAST_CUTS"))
                _exit(4);
}
