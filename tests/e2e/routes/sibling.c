/* SPDX-License-Identifier: Apache-2.0 */
/* For caller.c: where cudnn.c forwards to. */

int cudnnCreate(void);
int cuOther(void);

int cudnnCreate(void)
{
        return 5;
}

int cuOther(void)
{
        return 6;
}
