/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After context -- the context took its memory along
 *
 * Expect: after_context site=freed allocation=made freed_at=ended
 */
#include "cu.h"
int main(void)
{
        CUcontext context;
        CUdeviceptr block;

        cu_start(0);
        CU_OK(cu.CtxCreate(&context, 0, 0));
        CU_OK(cu.MemAlloc(&block, 1 << 20));      /* here: made */
        CU_OK(cu.CtxDestroy(context));            /* here: ended */
        return cu.MemFree(block) == CUDA_SUCCESS; /* here: freed */
}
