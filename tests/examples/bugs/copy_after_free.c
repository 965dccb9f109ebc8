/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copy after free -- the second half of a result is fetched when its block is gone
 *
 * Expect: use_after_free site=late freed_at=freed allocation=made access=read
 * Also: STREAMPOOL_MODE=observe
 */
#include "cu.h"
enum { BYTES = 8192 };

static char result[BYTES];

int main(void)
{
        CUdeviceptr block;

        cu_start(0);
        CU_OK(cu.MemAlloc(&block, BYTES)); /* here: made */
        CU_OK(cu.MemsetD8(block, 1, BYTES));
        CU_OK(cu.MemcpyDtoH(result, block, BYTES / 2));
        CU_OK(cu.MemFree(block));                                              /* here: freed */
        (void)cu.MemcpyDtoH(result + BYTES / 2, block + BYTES / 2, BYTES / 2); /* here: late */
        return 0;
}
