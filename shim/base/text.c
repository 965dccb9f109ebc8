/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Text -- where does printed output go before it is written?
 *
 * vsnprintf() is the only thing of stdio that is used: it takes no lock of a
 * stream and, for the conversions used here, does not allocate.
 */

#include "base/text.h"

#include <stdio.h>
#include <string.h>

#include "base/write.h"

void sp_text_init(struct sp_text *text, char *bytes, size_t size)
{
        text->bytes = bytes;
        text->size = size;
        text->length = 0;
        text->cut = false;
        text->bytes[0] = '\0';
}

void sp_text_add_list(struct sp_text *text, const char *format, va_list list)
{
        size_t room = text->size - text->length;
        int wanted = vsnprintf(text->bytes + text->length, room, format, list);

        if (wanted < 0)
                return;
        if ((size_t)wanted < room) {
                text->length += (size_t)wanted;
        } else {
                text->length = text->size - 1;
                text->cut = true;
        }
}

void sp_text_add(struct sp_text *text, const char *format, ...)
{
        va_list list;

        va_start(list, format);
        sp_text_add_list(text, format, list);
        va_end(list);
}

void sp_text_pad(struct sp_text *text, size_t column)
{
        size_t start = text->length;

        while (start > 0 && text->bytes[start - 1] != '\n')
                start--;
        do {
                sp_text_add(text, " ");
        } while (!text->cut && text->length - start < column);
}

void sp_text_add_bytes(struct sp_text *text, unsigned long long bytes)
{
        static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
        unsigned int unit = 0;
        double value = (double)bytes;

        /* 999.5 would be shown with four digits. */
        while (value >= 999.5) {
                value /= 1024;
                unit++;
        }
        if (unit == 0 || value >= 99.95 || value == (double)(unsigned int)value)
                sp_text_add(text, "%.0f %s", value, units[unit]);
        else if (value >= 9.995)
                sp_text_add(text, "%.1f %s", value, units[unit]);
        else
                sp_text_add(text, "%.2f %s", value, units[unit]);
}

int sp_text_write(const struct sp_text *text, int fd)
{
        return sp_write(fd, text->bytes, text->length);
}
