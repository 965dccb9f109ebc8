/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leak on error -- the way out in the middle forgets what was there already
 *
 * Expect: leak memory=device count=1 site=first
 */
#include "cu.h"
static bool load(size_t bytes)
{
        CUdeviceptr weights, scratch;

        CU_OK(cu.MemAlloc(&weights, 1 << 20)); /* here: first */
        if (cu.MemAlloc(&scratch, bytes))
                return false;
        CU_OK(cu.MemFree(scratch));
        CU_OK(cu.MemFree(weights));
        return true;
}

int main(void)
{
        cu_start(0);
        return !load(1 << 20) || load((size_t)1 << 50);
}
