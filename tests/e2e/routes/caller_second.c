/* SPDX-License-Identifier: Apache-2.0 */
/* For caller.c: what is next. caller_first.c calls a function of it, to be linked with it. */

const char *routes_name(void);
int second_is_here(void);

int second_is_here(void)
{
        return 1;
}

const char *routes_name(void)
{
        return "second";
}
