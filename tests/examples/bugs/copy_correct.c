/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copy correct -- copies and sets that end with the last byte of their block, and not behind it
 *
 * Of every kind of memory, whole and in part, in rows with gaps, in a block whose address was freed
 * before, and of nothing where no block is any more.
 */
#include "cu.h"
enum { BYTES = 1000, WIDTH = 100, ROWS = 10, PAGES = 4 << 20 };

static char here[2 * BYTES];

static void copy(CUdeviceptr block)
{
        CU_OK(cu.MemsetD8(block, 0, BYTES));
        CU_OK(cu.MemsetD32(block, 0, BYTES / 4));
        CU_OK(cu.MemcpyHtoD(block, here, BYTES));
        CU_OK(cu.MemcpyDtoH(here, block + BYTES - 1, 1));
        CU_OK(cu.MemcpyDtoD(block, block + BYTES / 2, BYTES / 2));
        CU_OK(cu.Memcpy(block + BYTES / 2, (CUdeviceptr)(uintptr_t)here, BYTES / 2));
}

/* The last row has no gap behind it: it ends where the block does. */
static void copy_rows(CUdeviceptr block, size_t pitch, size_t width, size_t rows)
{
        CUDA_MEMCPY2D copy = {
                .srcMemoryType = CU_MEMORYTYPE_HOST,
                .srcHost = here,
                .srcPitch = width,
                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                .dstDevice = block,
                .dstPitch = pitch,
                .dstXInBytes = width / 2,
                .dstY = 1,
                .WidthInBytes = width - width / 2,
                .Height = rows - 1,
        };

        CU_OK(cu.MemsetD2D8(block, pitch, 0, width, rows));
        CU_OK(cu.Memcpy2D(&copy));
}

static void copy_slices(CUdeviceptr block)
{
        CUDA_MEMCPY3D copy = {
                .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                .srcDevice = block,
                .srcPitch = 20,
                .srcHeight = 5,
                .srcY = 2,
                .srcZ = 1,
                .dstMemoryType = CU_MEMORYTYPE_HOST,
                .dstHost = here,
                .dstPitch = 20,
                .dstHeight = 3,
                .WidthInBytes = 20,
                .Height = 3,
                .Depth = 9,
        };

        CU_OK(cu.Memcpy3D(&copy));
}

static void copy_pooled(CUstream stream)
{
        CUdeviceptr block;

        for (int i = 0; i < 3; i++) {
                CU_OK(cu.MemAlloc(&block, BYTES));
                copy(block);
                copy_rows(block, WIDTH, WIDTH, ROWS);
                copy_rows(block, WIDTH + 4, WIDTH - 36, ROWS);
                copy_slices(block);
                CU_OK(cu.MemFree(block));
        }
        CU_OK(cu.MemcpyDtoH(here, block, 0));
        CU_OK(cu.MemAllocAsync(&block, BYTES, stream));
        CU_OK(cu.StreamSynchronize(stream));
        copy(block);
        CU_OK(cu.MemFreeAsync(block, stream));
}

static void copy_of_driver(void)
{
        CUdeviceptr block;
        size_t pitch;

        CU_OK(cu.MemAllocManaged(&block, BYTES, CU_MEM_ATTACH_GLOBAL));
        copy(block);
        CU_OK(cu.MemFree(block));
        CU_OK(cu.MemAllocPitch(&block, &pitch, WIDTH, ROWS, 4));
        copy_rows(block, pitch, WIDTH, ROWS);
        /* The gap behind the last row is of the allocation, too. */
        CU_OK(cu.MemsetD8(block, 0, pitch * ROWS));
        CU_OK(cu.MemFree(block));
}

static void copy_page_locked(void)
{
        void *pages;

        CU_OK(cu.MemHostAlloc(&pages, BYTES, 0));
        copy((CUdeviceptr)(uintptr_t)pages);
        CU_OK(cu.MemFreeHost(pages));
}

/* One range of addresses, two pieces of memory: a set may pass from one to the other. */
static void copy_mapped(void)
{
        CUmemAllocationProp wish = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location.type = CU_MEM_LOCATION_TYPE_DEVICE};
        CUmemAccessDesc access = {.location.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                  .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        CUmemGenericAllocationHandle memory[2];
        CUdeviceptr range;

        CU_OK(cu.MemAddressReserve(&range, 2 * PAGES, 0, 0, 0));
        for (int i = 0; i < 2; i++) {
                CU_OK(cu.MemCreate(&memory[i], PAGES, &wish, 0));
                CU_OK(cu.MemMap(range + i * PAGES, PAGES, 0, memory[i], 0));
                CU_OK(cu.MemRelease(memory[i]));
        }
        CU_OK(cu.MemSetAccess(range, 2 * PAGES, &access, 1));
        CU_OK(cu.MemsetD8(range + PAGES / 2, 0, PAGES));
        CU_OK(cu.CtxSynchronize());
        CU_OK(cu.MemUnmap(range, 2 * PAGES));
        CU_OK(cu.MemAddressFree(range, 2 * PAGES));
}

int main(void)
{
        CUstream stream;

        cu_start(0);
        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        copy_pooled(stream);
        copy_of_driver();
        copy_page_locked();
        copy_mapped();
        return 0;
}
