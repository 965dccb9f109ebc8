/* SPDX-License-Identifier: Apache-2.0 */
/* For caller.c: what is next. */

const char *routes_name(void);

const char *routes_name(void)
{
        return "second";
}
