/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leak pinned -- page-locked memory is given to free() by nobody, nor to cuMemFreeHost
 *
 * Expect: leak memory=pinned count=2 site=made
 */
#include "cu.h"
int main(void)
{
        void *pages[2];

        cu_start(0);
        for (int i = 0; i < 2; i++)
                CU_OK(cu.MemHostAlloc(&pages[i], 1 << 16, 0)); /* here: made */
        return 0;
}
