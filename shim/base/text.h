/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TEXT_H
#define SP_TEXT_H

/*
 * Text -- where does printed output go before it is written?
 *
 * Into a buffer of fixed size that the caller owns. Nothing is allocated, no
 * stream of the application's stdio is touched, and a text that does not fit is
 * cut and says so. One text becomes one write(2) where the kernel allows it.
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct sp_text {
        char *bytes;   /* always ends in NUL */
        size_t size;   /* at least 1 */
        size_t length; /* below size */
        bool cut;      /* something did not fit */
};

/* text */

void sp_text_init(struct sp_text *text, char *bytes, size_t size);
void sp_text_add(struct sp_text *text, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
void sp_text_add_list(struct sp_text *text, const char *format, va_list list)
        __attribute__((format(printf, 2, 0)));

/** sp_text_pad() - spaces up to @column, counted from the last newline; at least one. */
void sp_text_pad(struct sp_text *text, size_t column);

/** sp_text_add_bytes() - a size for people: "512 B", "1.5 KiB", "32 MiB"; three digits. */
void sp_text_add_bytes(struct sp_text *text, unsigned long long bytes);

/**
 * sp_text_write() - the whole text to a file descriptor
 *
 * Retries after EINTR and after short writes; keeps errno.
 *
 * Return: 0, or -errno; what was written before stays written.
 */
int sp_text_write(const struct sp_text *text, int fd);

#endif
