/* SPDX-License-Identifier: Apache-2.0 */
/* A program that does nothing, for builds of all kinds: static, with a sanitizer. */

#include <stdio.h>

int main(void)
{
        printf("nothing\n");
        return 0;
}
