/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leak -- a buffer a request, and nobody gives them back
 *
 * Expect: leak memory=device count=3 site=made
 */
#include "cu.h"
static CUdeviceptr read_request(void)
{
        CUdeviceptr buffer;

        CU_OK(cu.MemAlloc(&buffer, 100000)); /* here: made */
        return buffer;
}

int main(void)
{
        CUdeviceptr last = 0;

        cu_start(0);
        for (int i = 0; i < 3; i++)
                last = read_request();
        return !last;
}
