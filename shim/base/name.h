/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_NAME_H
#define SP_NAME_H

/*
 * Name -- what is a file called of which each process writes one?
 */

#include "base/text.h"

/* What the letters of a pattern stand for. */
struct sp_name {
        long process;     /* %p */
        const char *host; /* %h */
        const char *rank; /* %r */
};

/** sp_name_add() - a path with its %p, %h, %r and %% replaced; cut if it is too long. */
void sp_name_add(struct sp_text *path, const char *pattern, const struct sp_name *name);

#endif
