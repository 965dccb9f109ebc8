/* SPDX-License-Identifier: Apache-2.0 */
/* For abba.c: a constructor that calls the driver while another thread does. */

#include <stdatomic.h>
#include <unistd.h>

extern atomic_int abba_stage;

int cuInit(unsigned int flags);

__attribute__((constructor)) static void load(void)
{
        atomic_store(&abba_stage, 1);
        while (atomic_load(&abba_stage) < 2)
                usleep(100);
        /* Time for the other thread to get as far as it can. */
        usleep(100000);
        if (cuInit(0) == 0)
                atomic_store(&abba_stage, 3);
}
