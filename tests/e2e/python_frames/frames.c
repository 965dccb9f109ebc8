/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Frames -- shim/track/python.c as a library of its own, for ctypes
 *
 * A Python program calls these as it would call the driver through an extension:
 * without the GIL by CDLL, and with it by PyDLL. What the shim's lower floors do
 * for the module is done here by the C library.
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "driver/lookup.h"
#include "track/python.h"
#include "track/python_layout.h"
#include "track/python_sight.h"

#define SHOWN __attribute__((visibility("default")))

SHOWN void frames_start(void);
SHOWN long frames_words(char *text, size_t size, unsigned int most);
SHOWN long frames_steady(long times);
SHOWN double frames_cost(long times);
SHOWN void frames_for_ever(void);
SHOWN unsigned int frames_line(int kind, const unsigned char *table, size_t size, int first,
                               int at);
SHOWN int frames_sees(size_t address, size_t size);
SHOWN int frames_knows(const char *version, const void *runtime);

void *sp_dlsym(void *handle, const char *name)
{
        return dlsym(handle, name);
}

void sp_log(enum sp_log_level level, const char *format, ...)
{
        va_list arguments;

        (void)level;
        va_start(arguments, format);
        vfprintf(stderr, format, arguments);
        va_end(arguments);
        fputc('\n', stderr);
}

void frames_start(void)
{
        sp_python_start();
}

/* For each frame "LINE\0FILE\0FUNCTION\0". Return: bytes; -1 if a frame has no words, -2 if there
 * is no room, -3 if errno was changed. */
long frames_words(char *text, size_t size, unsigned int most)
{
        struct sp_python_frame frame[SP_PYTHON_MAX];
        struct sp_python_words words;
        unsigned int count;
        size_t used = 0;

        errno = 4711;
        count = sp_python_take(frame, most);
        if (errno != 4711)
                return -3;
        for (unsigned int i = 0; i < count; i++) {
                if (!sp_python_words(&frame[i], &words))
                        return -1;
                if (used + words.file_length + words.function_length + 16 > size)
                        return -2;
                used += (size_t)sprintf(text + used, "%u", words.line) + 1;
                memcpy(text + used, words.file, words.file_length);
                used += words.file_length;
                text[used++] = '\0';
                memcpy(text + used, words.function, words.function_length);
                used += words.function_length;
                text[used++] = '\0';
        }
        return (long)used;
}

/* Takes and takes; in one call that is always the same. Return: frames; -1 if it was not. */
long frames_steady(long times)
{
        struct sp_python_frame first[SP_PYTHON_MAX], again[SP_PYTHON_MAX];
        unsigned int count = sp_python_take(first, SP_PYTHON_MAX);
        struct sp_python_words words;

        for (long i = 0; i < times; i++) {
                if (sp_python_take(again, SP_PYTHON_MAX) != count ||
                    memcmp(first, again, count * sizeof(first[0])) != 0)
                        return -1;
                if (i % 16 == 0 && count && !sp_python_words(&again[i / 16 % count], &words))
                        return -1;
        }
        return count;
}

/* ns for one take */
double frames_cost(long times)
{
        struct sp_python_frame frame[SP_PYTHON_MAX];
        struct timespec begin, end;

        clock_gettime(CLOCK_MONOTONIC, &begin);
        for (long i = 0; i < times; i++)
                sp_python_take(frame, SP_PYTHON_MAX);
        clock_gettime(CLOCK_MONOTONIC, &end);
        return ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) /
               (double)times;
}

/* In a daemon thread: still here when the interpreter ends, and without frames from then on. */
void frames_for_ever(void)
{
        struct sp_python_frame frame[SP_PYTHON_MAX];
        struct sp_python_words words;

        for (;;) {
                unsigned int count = sp_python_take(frame, SP_PYTHON_MAX);

                for (unsigned int i = 0; i < count; i++)
                        sp_python_words(&frame[i], &words);
        }
}

unsigned int frames_line(int kind, const unsigned char *table, size_t size, int first, int at)
{
        return sp_python_line((enum sp_python_lines)kind, table, size, first, at);
}

int frames_sees(size_t address, size_t size)
{
        struct sp_sight sight;
        const unsigned char *seen;

        sp_sight_open(&sight);
        seen = sp_sight_look(&sight, address, size);
        return seen && memcmp(seen, (const void *)address, size) == 0;
}

int frames_knows(const char *version, const void *runtime)
{
        return sp_python_layout_find(version, runtime) != NULL;
}
