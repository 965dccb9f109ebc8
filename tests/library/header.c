/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Header -- the public headers by themselves, in C and in C++
 *
 * Compiled by each compiler that is there, in the oldest language that has what
 * they need, with warnings as errors. The command line includes each of them
 * before this file does, in the other order: none needs anything before it, and
 * each may be included twice.
 */

#include <streampool/model.h>
#include <streampool/streampool.h>

int main(void)
{
        struct spm_model *model;

        if (streampool_version || spm_model_new(NULL, &model) != SPM_OK)
                return 1;
        spm_model_free(model);
        return 0;
}
