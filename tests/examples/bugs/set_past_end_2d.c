/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Set past end 2D -- rows lie apart, which nobody thought of when the block was made
 *
 * The block ends in the gap behind a row, so the next row is the first that is outside.
 *
 * Expect: out_of_bounds site=set allocation=made access=write outside=2816
 */
#include "cu.h"
enum { WIDTH = 90, PITCH = 128, ROWS = 31 };

int main(void)
{
        CUdeviceptr block;

        cu_start(0);
        CU_OK(cu.MemAlloc(&block, WIDTH * ROWS));          /* here: made */
        (void)cu.MemsetD2D8(block, PITCH, 0, WIDTH, ROWS); /* here: set */
        CU_OK(cu.MemFree(block));
        return 0;
}
