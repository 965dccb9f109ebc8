/* SPDX-License-Identifier: Apache-2.0 */
/* For outer.c: the half of the driver that does the work. */

int cuInit(unsigned int flags);
int cuDriverGetVersion(int *version);

int cuInit(unsigned int flags)
{
        return flags ? 1 : 0;
}

int cuDriverGetVersion(int *version)
{
        *version = 12000;
        return 0;
}
