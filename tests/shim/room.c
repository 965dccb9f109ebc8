/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Room -- what no device could hold is refused without filling one
 */

#include "route/room.h"

#include <stdlib.h>

#include "tests/shim/begin.h"
#include "tests/sim_driver/control.h"

#define MEMORY ((size_t)1 << 30)

static void start(void)
{
        setenv("SIM_MEMORY", "1G", 1);
        begin_on(0);
}

TestSuite(room, .init = start);

Test(room, is_looked_for_before_a_device_is_filled)
{
        CUdeviceptr pointer, small;

        cr_assert_eq(sp_on_cuMemAlloc_v2(&small, 1 << 20), CUDA_SUCCESS);
        sim_calls_reset();
        cr_expect_eq(sp_on_cuMemAlloc_v2(&pointer, MEMORY), CUDA_ERROR_OUT_OF_MEMORY);
        cr_expect_eq(sp_on_cuMemAllocAsync(&pointer, 2 * MEMORY, CU_STREAM_LEGACY),
                     CUDA_ERROR_OUT_OF_MEMORY);
        cr_expect_eq(sim_calls("cuMemCreate"), 0);
        cr_expect_eq(sp_on_cuMemFree_v2(small), CUDA_SUCCESS);
}

Test(room, counts_what_is_idle_and_what_is_freed)
{
        CUdeviceptr half, most;

        cr_assert_eq(sp_on_cuMemAlloc_v2(&half, MEMORY / 2), CUDA_SUCCESS);
        cr_expect_not(sp_room_for(sp_context_current()->sync_pool, MEMORY / 4 * 3));
        cr_assert_eq(sp_on_cuMemFree_v2(half), CUDA_SUCCESS);
        cr_expect(sp_room_for(sp_context_current()->sync_pool, MEMORY / 4 * 3));
        cr_expect_eq(sp_on_cuMemAlloc_v2(&most, MEMORY / 4 * 3), CUDA_SUCCESS);
        cr_expect_eq(sp_on_cuMemFree_v2(most), CUDA_SUCCESS);
}
