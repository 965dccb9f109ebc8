/* SPDX-License-Identifier: Apache-2.0 */

/* Name -- what is a file called of which each process writes one? */

#include "base/name.h"

void sp_name_add(struct sp_text *path, const char *pattern, const struct sp_name *name)
{
        for (; *pattern; pattern++) {
                if (pattern[0] != '%' || !pattern[1]) {
                        sp_text_add(path, "%c", *pattern);
                        continue;
                }
                switch (*++pattern) {
                case 'p':
                        sp_text_add(path, "%ld", name->process);
                        break;
                case 'h':
                        sp_text_add(path, "%s", name->host);
                        break;
                case 'r':
                        sp_text_add(path, "%s", name->rank);
                        break;
                case '%':
                        sp_text_add(path, "%%");
                        break;
                default:
                        sp_text_add(path, "%%%c", *pattern);
                }
        }
}
