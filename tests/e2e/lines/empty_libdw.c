/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Empty libdw -- a library of that name in which nothing is found
 */
int sp_test_nothing(void);

int sp_test_nothing(void)
{
        return 0;
}
