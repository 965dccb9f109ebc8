/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Endless -- a model that never comes to an answer
 *
 * A build with assertions stops the program; one without gives up the pool,
 * and the driver serves.
 */

#include <criterion/criterion.h>
#include <signal.h>
#include <streampool/model.h>

#include "tests/shim/begin.h"

enum spm_status __wrap_spm_alloc(struct spm_model *model, struct spm_request *request,
                                 struct spm_allocation *allocation, struct spm_actions *actions);

enum spm_status __wrap_spm_alloc(struct spm_model *model, struct spm_request *request,
                                 struct spm_allocation *allocation, struct spm_actions *actions)
{
        (void)model;
        (void)request;
        (void)allocation;
        actions->count = 0;
        return SPM_AGAIN;
}

#ifdef NDEBUG
Test(endless, switches_the_pool_off)
#else
Test(endless, stops_the_program, .signal = SIGABRT)
#endif
{
        CUdeviceptr pointer = 0;

        begin_on(0);
        cr_expect_eq(sp_on_cuMemAlloc_v2(&pointer, 4096), CUDA_SUCCESS);
        cr_expect_neq(pointer, 0);
        cr_expect_eq(sp_life_state(), SP_LIFE_OFF);
        cr_expect_eq(sp_on_cuMemFree_v2(pointer), CUDA_SUCCESS);
}
