/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copy past end -- the buffer is of whole lines, and so is the copy, but not the block
 *
 * Expect: out_of_bounds site=copy allocation=made access=write outside=1000
 */
#include "cu.h"
enum { BYTES = 1000, WHOLE_LINES = 1024 };

int main(void)
{
        static char lines[WHOLE_LINES];
        CUdeviceptr block;

        cu_start(0);
        CU_OK(cu.MemAlloc(&block, BYTES)); /* here: made */
        for (int i = 0; i < 2; i++)
                (void)cu.MemcpyHtoD(block, lines, sizeof(lines)); /* here: copy */
        CU_OK(cu.MemFree(block));
        return 0;
}
