/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Argument correct -- kernels that are given what lives, and what is no address
 *
 * Blocks of every kind, whole and from their middle; a block where another one was before; the end
 * of a block, behind which one was freed; numbers of eight bytes, and no address at all; a
 * structure with an old address in it that nobody uses.
 *
 * Settings: STREAMPOOL_CHECK=uses,arguments
 */
#include <stddef.h>

#include "cu.h"
enum { BYTES = 2 << 20, COUNT = 16 };

static struct cu_kernels kernels;

/* Writes the value to the second of the two addresses. */
static const char image[] =
        ".version 6.0\n"
        ".target sm_50\n"
        ".address_size 64\n"
        ".visible .entry second(.param .align 8 .b8 at[16], .param .u32 value)\n"
        "{\n"
        "        .reg .b32       %r<2>;\n"
        "        .reg .b64       %rd<2>;\n"
        "        ld.param.u64    %rd1, [at+8];\n"
        "        ld.param.u32    %r1, [value];\n"
        "        st.global.u32   [%rd1], %r1;\n"
        "        ret;\n"
        "}\n";

static void use(CUdeviceptr block)
{
        CU_OK(cu_fill(&kernels, NULL, block, COUNT, 1));
        CU_OK(cu_copy(&kernels, NULL, block + BYTES / 2, block, COUNT));
}

static void use_in_buffer(CUdeviceptr block)
{
        struct arguments {
                CUdeviceptr p;
                uint64_t count;
                uint32_t value;
        } arguments = {block, COUNT, 1};
        /* Without the padding behind the last one: a driver refuses more than it needs. */
        size_t size = offsetof(struct arguments, value) + sizeof(arguments.value);
        void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &arguments, CU_LAUNCH_PARAM_BUFFER_SIZE,
                         &size, CU_LAUNCH_PARAM_END};

        CU_OK(cu.LaunchKernel(kernels.fill, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
}

static void use_all_kinds(void)
{
        CUdeviceptr block;
        void *pages;

        CU_OK(cu.MemAlloc(&block, BYTES));
        use(block);
        CU_OK(cu.MemFree(block));
        CU_OK(cu.MemAllocAsync(&block, BYTES, NULL));
        use(block);
        CU_OK(cu.MemFreeAsync(block, NULL));
        CU_OK(cu.MemAllocManaged(&block, BYTES, CU_MEM_ATTACH_GLOBAL));
        use(block);
        CU_OK(cu.CtxSynchronize());
        CU_OK(cu.MemFree(block));
        CU_OK(cu.MemHostAlloc(&pages, BYTES, 0));
        use((CUdeviceptr)(uintptr_t)pages);
        CU_OK(cu.CtxSynchronize());
        CU_OK(cu.MemFreeHost(pages));
}

static void use_again(void)
{
        CUdeviceptr block;

        for (int i = 0; i < 100; i++) {
                CU_OK(cu.MemAlloc(&block, BYTES));
                use(block);
                use_in_buffer(block);
                CU_OK(cu.MemFree(block));
        }
}

/* A range that is given by both of its ends; the kernel has no use for the second one here. */
static void use_ends(void)
{
        CUdeviceptr block[8];

        for (int i = 0; i < 8; i++)
                CU_OK(cu.MemAlloc(&block[i], BYTES));
        for (int i = 1; i < 8; i += 2)
                CU_OK(cu.MemFree(block[i]));
        for (int i = 0; i < 8; i += 2)
                CU_OK(cu_copy(&kernels, NULL, block[i], block[i] + BYTES, 0));
        for (int i = 0; i < 8; i += 2)
                CU_OK(cu.MemFree(block[i]));
}

static void use_numbers(void)
{
        static const uint64_t numbers[] = {0, 1, BYTES, 1ull << 40, 0x3ff0000000000000, UINT64_MAX};

        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
                CU_OK(cu_copy(&kernels, NULL, numbers[i], numbers[i], 0));
        CU_OK(cu_spin(&kernels, NULL, 1000));
}

static void use_structure(void)
{
        CUmodule module;
        CUfunction second;
        CUdeviceptr at[2];
        uint32_t value = 1;
        void *arguments[] = {at, &value};

        CU_OK(cu.ModuleLoadData(&module, image));
        CU_OK(cu.ModuleGetFunction(&second, module, "second"));
        CU_OK(cu.MemAlloc(&at[0], BYTES));
        CU_OK(cu.MemAlloc(&at[1], BYTES));
        CU_OK(cu.MemFree(at[0]));
        CU_OK(cu.LaunchKernel(second, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
        CU_OK(cu.MemFree(at[1]));
        CU_OK(cu.ModuleUnload(module));
}

int main(void)
{
        cu_start(0);
        cu_load_kernels(&kernels);
        use_all_kinds();
        use_again();
        use_ends();
        use_numbers();
        use_structure();
        CU_OK(cu.CtxSynchronize());
        return 0;
}
