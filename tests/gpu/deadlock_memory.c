/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory -- growth, and a device that is full, beside a persistent kernel
 *
 * A pool that holds too much that is freed but not finished would like to wait
 * for it; one that is refused memory would like to wait even more. Neither may
 * wait for the kernel: the bare driver serves or refuses.
 */
#include "deadlock.h"

#define BLOCKS 24
#define BYTES  ((size_t)32 << 20)

void case_growth(struct ground *g)
{
        CUdeviceptr plain[BLOCKS], ordered[BLOCKS];

        churn(g, g->a, BYTES);
        hold(g, g->a, BY_KERNEL);
        loop_sync(g, g->b, BLOCKS, BYTES, plain);
        for (int i = 0; i < BLOCKS; i++) {
                ordered[i] = take_async(g->b, BYTES);
                fill_and_check(g, g->b, ordered[i], 256);
        }
        for (int i = 0; i < BLOCKS; i++)
                give_async(i % 2 ? plain[i] : ordered[i], g->b);
        open_on(g, g->b, BY_KERNEL);
        CU_OK(cu.StreamSynchronize(g->a));
        for (int i = 0; i < BLOCKS; i++)
                give_async(i % 2 ? ordered[i] : plain[i], g->b);
}

/* Much is freed behind the kernel; what the loop needs is new. */
void case_growth_behind(struct ground *g)
{
        CUdeviceptr blocks[BLOCKS];

        for (int i = 0; i < BLOCKS; i++)
                blocks[i] = i % 2 ? take(BYTES) : take_async(g->a, BYTES);
        hold(g, g->a, BY_KERNEL);
        for (int i = 0; i < BLOCKS; i++) {
                give_async(blocks[i], g->a);
                blocks[i] = i % 2 ? take(BYTES) : take_async(g->b, BYTES);
                fill_and_check(g, g->b, blocks[i], 256);
        }
        for (int i = 0; i < BLOCKS; i++)
                give_async(blocks[i], g->b);
        loop_async(g, g->b, BLOCKS, BYTES);
        open_on(g, g->b, BY_KERNEL);
        CU_OK(cu.StreamSynchronize(g->a));
}

static size_t free_bytes(void)
{
        size_t left, total;

        CU_OK(cu.MemGetInfo(&left, &total));
        return left;
}

/* As many as there is room for. */
static int fill_device(CUstream stream, size_t bytes, CUdeviceptr *blocks, int limit)
{
        for (int i = 0; i < limit; i++) {
                CUresult result = i % 2 ? cu.MemAlloc(&blocks[i], bytes)
                                        : cu.MemAllocAsync(&blocks[i], bytes, stream);

                if (result == CUDA_ERROR_OUT_OF_MEMORY)
                        return i;
                CU_OK(result);
                cu_owned(blocks[i], bytes);
        }
        return limit;
}

/* Both families are refused, and what is there is still served. */
void case_full(struct ground *g)
{
        CUdeviceptr blocks[16], p;
        size_t bytes = free_bytes() / 8 >> 21 << 21;
        int count;

        loop_async(g, g->a, 16, (size_t)1 << 18);
        hold(g, g->a, BY_HOST_FUNCTION);
        count = fill_device(g->b, bytes, blocks, 16);
        fprintf(stderr, "%d blocks of an eighth\n", count);
        if (count == 16 || cu.MemAlloc(&p, bytes) != CUDA_ERROR_OUT_OF_MEMORY ||
            cu.MemAllocAsync(&p, bytes, g->b) != CUDA_ERROR_OUT_OF_MEMORY)
                ++*g->mismatches;
        loop_async(g, g->b, 4, (size_t)1 << 16);
        open_by_host(g);
        CU_OK(cu.StreamSynchronize(g->a));
        for (int i = 0; i < count; i++)
                give_async(blocks[i], g->b);
}

/*
 * What would be enough is freed behind the kernel. The stream that asks may be made to wait for
 * that, so it is the host that opens; but the host must not wait.
 */
void case_full_behind(struct ground *g)
{
        CUdeviceptr blocks[16], p = 0;
        size_t bytes = free_bytes() / 8 >> 21 << 21;
        CUresult result;
        int count = 0;

        while (count < 16 && !cu.MemAllocAsync(&blocks[count], bytes, g->a))
                cu_owned(blocks[count], bytes), count++;
        hold(g, g->a, BY_HOST_FUNCTION);
        for (int i = 0; i < count; i++)
                give_async(blocks[i], g->a);
        result = cu.MemAllocAsync(&p, bytes, g->b);
        fprintf(stderr, "%d blocks of an eighth, one more: %d\n", count, (int)result);
        open_by_host(g);
        CU_OK(cu.StreamSynchronize(g->a));
        if (!result) {
                cu_owned(p, bytes);
                fill_and_check(g, g->b, p, 256);
                give_async(p, g->b);
        }
}

/* The bare driver waits in cuMemFree for the kernel, which nobody else would end. */
void case_free_behind(struct ground *g)
{
        CUdeviceptr p = take(BYTES);

        hold(g, g->a, BY_HOST_FUNCTION);
        give(p);
        open_by_host(g);
}
