/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LAYOUT_TEXT_H
#define LAYOUT_TEXT_H

/*
 * Layout text -- does what is said of layouts' texts hold of this one?
 */

/** layout_text_check() - Return: what is wrong, or NULL. @read: return argument, is it a layout? */
const char *layout_text_check(const char *text, int *read);

#endif
