/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Argument of a library -- as argument after free, of a kernel as the CUDA runtime has them
 *
 * A CUkernel belongs to no context, and is launched as if it were a CUfunction.
 *
 * Settings: STREAMPOOL_CHECK=arguments
 * Expect: argument_after_free site=late freed_at=freed allocation=made number=2 kernel=look
 */
#include "cu.h"

/* Has no use for either of the two. */
static const char image[] = ".version 6.0\n"
                            ".target sm_50\n"
                            ".address_size 64\n"
                            ".visible .entry look(.param .u32 number, .param .u64 address)\n"
                            "{\n"
                            "        ret;\n"
                            "}\n";

static CUfunction load(void)
{
        PFN_cuLibraryLoadData_v12000 load_data =
                (PFN_cuLibraryLoadData_v12000)cu_symbol("cuLibraryLoadData");
        PFN_cuLibraryGetKernel_v12000 get_kernel =
                (PFN_cuLibraryGetKernel_v12000)cu_symbol("cuLibraryGetKernel");
        CUlibrary library;
        CUkernel kernel;

        CU_OK(load_data(&library, image, NULL, NULL, 0, NULL, NULL, 0));
        CU_OK(get_kernel(&kernel, library, "look"));
        return (CUfunction)kernel;
}

int main(void)
{
        uint32_t number = 1;
        CUdeviceptr block;
        void *arguments[] = {&number, &block};
        CUfunction look;

        cu_start(0);
        look = load();
        CU_OK(cu.MemAlloc(&block, 4096)); /* here: made */
        CU_OK(cu.LaunchKernel(look, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
        CU_OK(cu.MemFree(block));                                                 /* here: freed */
        CU_OK(cu.LaunchKernel(look, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL)); /* here: late */
        CU_OK(cu.CtxSynchronize());
        return 0;
}
