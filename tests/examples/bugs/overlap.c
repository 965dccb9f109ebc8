/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Overlap -- a queue moves up by one entry, in one copy over itself
 *
 * Expect: overlap site=moved allocation=made access=write
 */
#include "cu.h"

enum { ENTRY = 256, ENTRIES = 64 };

int main(void)
{
        CUdeviceptr queue;

        cu_start(0);
        CU_OK(cu.MemAlloc(&queue, ENTRY * ENTRIES)); /* here: made */
        CU_OK(cu.MemsetD8(queue, 1, ENTRY * ENTRIES));
        CU_OK(cu.MemcpyDtoD(queue, queue + ENTRY, ENTRY * (ENTRIES - 1))); /* here: moved */
        CU_OK(cu.CtxSynchronize());
        CU_OK(cu.MemFree(queue));
        return 0;
}
