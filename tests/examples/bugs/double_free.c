/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Double free -- the owner frees, and so does the owner of a copy of the pointer
 *
 * Expect: double_free site=second freed_at=first allocation=made
 * Also: STREAMPOOL_MODE=observe
 */
#include "cu.h"
struct tensor {
        CUdeviceptr memory;
};

static struct tensor make_tensor(void)
{
        struct tensor tensor;

        CU_OK(cu.MemAlloc(&tensor.memory, 4096)); /* here: made */
        return tensor;
}

static void drop(const struct tensor *tensor)
{
        (void)cu.MemFree(tensor->memory); /* here: second */
}

int main(void)
{
        struct tensor one, copy;

        cu_start(0);
        one = make_tensor();
        copy = one;
        CU_OK(cu.MemFree(one.memory)); /* here: first */
        drop(&copy);
        return 0;
}
