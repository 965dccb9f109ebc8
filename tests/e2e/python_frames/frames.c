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
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

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
SHOWN void frames_at_the_end(int how);
SHOWN unsigned int frames_line(int kind, const unsigned char *table, size_t size, int first,
                               int at);
SHOWN int frames_sees(size_t address, size_t size);
SHOWN int frames_knows(const char *version, const void *runtime);

/* the end of the interpreter, at the worst moment */

/*
 * A thread is late if the interpreter ends after it has asked for its state, which has no memory
 * any more when it would be read; or later, after it has asked whether there is still an
 * interpreter, and its state is still there, but nobody's.
 */
enum { IN_TIME, LATE, TOO_LATE };

static _Thread_local int late, asked;
static atomic_int late_begun, late_done;
static int (*is_initialized)(void);
static void *(*this_thread)(void);

static void nap(void)
{
        usleep(1000);
}

static void *no_memory(void)
{
        void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        munmap(page, 4096);
        return page;
}

static void await_end(void)
{
        atomic_fetch_add(&late_begun, 1);
        while (is_initialized())
                nap();
        usleep(100000);
}

static void *this_thread_late(void)
{
        void *thread = this_thread();

        if (late != LATE)
                return thread;
        await_end();
        return no_memory();
}

/* Asked for the second time right before the state is read. */
static int is_initialized_late(void)
{
        int answer = is_initialized();

        if (late == TOO_LATE && ++asked == 2)
                await_end();
        return answer;
}

/* The process lives on until the late ones are through. */
static __attribute__((destructor)) void await_late(void)
{
        for (int i = 0; i < 5000 && atomic_load(&late_done) < atomic_load(&late_begun); i++)
                nap();
        if (atomic_load(&late_begun))
                dprintf(STDOUT_FILENO, "%d of %d late threads had no frames\n",
                        atomic_load(&late_done), atomic_load(&late_begun));
}

/* For a daemon thread. It does not return: there is nothing to return to. */
void frames_at_the_end(int how)
{
        struct sp_python_frame frame[SP_PYTHON_MAX];

        late = how;
        if (sp_python_take(frame, SP_PYTHON_MAX) == 0)
                atomic_fetch_add(&late_done, 1);
        for (;;)
                pause();
}

/* builds and processes that are not what they seem */

/* FRAMES_PRETEND: "forbidden", "filtered", "code" or "bytes" for types of another build, or a
 * version. */
static bool pretends(const char *what)
{
        const char *pretended = getenv("FRAMES_PRETEND");

        return pretended && strcmp(pretended, what) == 0;
}

static const char *pretended_version(void)
{
        static char version[64];

        snprintf(version, sizeof(version), "%s.1 (pretended) [GCC ]", getenv("FRAMES_PRETEND"));
        return version;
}

/* In place of the C library's. */
ssize_t process_vm_readv(pid_t process, const struct iovec *here, unsigned long heres,
                         const struct iovec *there, unsigned long theres, unsigned long flags)
{
        if (pretends("forbidden")) {
                errno = EPERM;
                return -1;
        }
        return syscall(SYS_process_vm_readv, process, here, heres, there, theres, flags);
}

/* As a sandbox: the process ends at such a call. */
static __attribute__((constructor)) void filter(void)
{
        struct sock_filter rules[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {sizeof(rules) / sizeof(rules[0]), rules};

        if (pretends("filtered") &&
            (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &program)))
                abort();
}

/* the floors below */

void *sp_dlsym(void *handle, const char *name)
{
        void *found = dlsym(handle, name);

        if (found && strcmp(name, "Py_GetVersion") == 0 && getenv("FRAMES_PRETEND") &&
            strncmp(getenv("FRAMES_PRETEND"), "3.", 2) == 0)
                return (void *)pretended_version;
        if ((strcmp(name, "PyCode_Type") == 0 && pretends("code")) ||
            (strcmp(name, "PyBytes_Type") == 0 && pretends("bytes")))
                return dlsym(handle, "PyType_Type");
        if (found && strcmp(name, "Py_IsInitialized") == 0) {
                is_initialized = (int (*)(void))found;
                return (void *)is_initialized_late;
        }
        if (found && strcmp(name, "PyGILState_GetThisThreadState") == 0) {
                this_thread = (void *(*)(void))found;
                return (void *)this_thread_late;
        }
        return found;
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

/* for Python */

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

unsigned int frames_line(int kind, const unsigned char *table, size_t size, int first, int at)
{
        return sp_python_line((enum sp_python_lines)kind, table, size, first, at);
}

int frames_sees(size_t address, size_t size)
{
        struct sp_sight sight;
        const unsigned char *seen = sp_sight_look(&sight, address, size);
        return seen && memcmp(seen, (const void *)address, size) == 0;
}

int frames_knows(const char *version, const void *runtime)
{
        return sp_python_layout_find(version, runtime) != NULL;
}
