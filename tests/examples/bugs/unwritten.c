/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwritten -- half of a block is read that nobody has written; it is zero as long as nobody had
 * that memory before
 *
 * Settings: STREAMPOOL_POISON=alloc
 * Prints: read 0x7 0xcbcbcbcb
 */
#include <stdio.h>

#include "cu.h"

#define WORDS 1024

int main(void)
{
        CUdeviceptr block;
        uint32_t read[2];

        cu_start(0);
        CU_OK(cu.MemAlloc(&block, 4 * WORDS));
        CU_OK(cu.MemsetD32(block, 7, WORDS / 2));
        CU_OK(cu.MemcpyDtoH(read, block + 2 * WORDS - sizeof(read[0]), sizeof(read)));
        printf("read 0x%x 0x%x\n", read[0], read[1]);
        CU_OK(cu.MemFree(block));
        return 0;
}
