/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Python -- which lines of Python is the calling thread in?
 *
 * Frames are read without the interpreter lock (GIL). Extensions release it before
 * they call the driver, so whoever asks only with the GIL learns nothing; and taking
 * it here could deadlock with a lock that our caller holds. It is not needed:
 *
 *   1. A thread that is inside a native function, ours, runs no Python until that
 *      function returns, and no other thread runs this one's frames. So the chain of
 *      frames stands still. Others may look at it (sys._current_frames(), a
 *      debugger), and then write members that we do not read.
 *   2. Each frame holds a reference to its code object, and that to its names and
 *      tables, which never change. So these stay alive as long as the frame does.
 *   3. The one exception is the end of the interpreter. It waits for no daemon
 *      thread, frees the states of such threads, and leaves them blocked for ever in
 *      their next attempt to get the GIL. But before that it stops being initialized;
 *      and their frames, with the references that these hold, it forgets. So
 *      Py_IsInitialized() is asked right before the state is read, and after: if it
 *      says yes twice, what was read was true, and the frame is there for good. It
 *      would take a thread that loses its processor between the first question and
 *      the load that follows, and an allocator that returns the state's memory to the
 *      kernel before it runs again, to read what is no longer there.
 *   4. The state is that of PyGILState_GetThisThreadState(). A program that lets another
 *      thread run with it breaks PyGILState_Ensure(), which is what extensions use.
 *
 * What is called of the interpreter needs no GIL: Py_GetVersion(), Py_IsInitialized()
 * and PyGILState_GetThisThreadState(), which reads thread-specific storage.
 *
 * Structures differ from version to version (python_layout.c), and builds that call
 * themselves CPython may have been changed. So the first frames that are found are
 * read by the kernel throughout, and everything in them must be of the right type;
 * else there will never be frames in this process.
 */

#define _GNU_SOURCE

#include "track/python.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "driver/lookup.h"
#include "track/python_layout.h"
#include "track/python_sight.h"
#include "track/python_words.h"

#define LOOK_EVERY_NS 100000000
#define STEPS_MAX     (4 * SP_PYTHON_MAX) /* frames of the interpreter's own lie between others */

/* FRAME_OWNED_BY_GENERATOR, and the first of those that own no code (enum _frameowner) */
enum { OWNED_BY_GENERATOR = 1, OWNED_BY_INTERPRETER = 3 };

enum {
        ASLEEP,  /* nobody wants frames */
        WAITING, /* there is no interpreter yet */
        LOOKING, /* one thread looks whether there is one now */
        FOUND,   /* it was not read yet */
        TRUSTED, /* the layout is right */
        REFUSED, /* or not */
};

/* Written once, before FOUND. */
static struct {
        const struct sp_python_layout *layout;
        struct sp_python_types types;
        int (*is_initialized)(void);
        void *(*this_thread)(void);
        struct sp_python_code code;
} python;

/* Atomic: all three. */
static atomic_int stage;
static _Atomic(int64_t) next_look;
static _Atomic(unsigned long long) libraries_seen;

/* finding the interpreter */

struct library {
        unsigned long long added;
        char path[PATH_MAX];
};

static int find_library(struct dl_phdr_info *info, size_t size, void *argument)
{
        struct library *library = argument;
        const char *path = info->dlpi_name ? info->dlpi_name : "";
        const char *name = strrchr(path, '/');
        size_t length = strlen(path);

        (void)size;
        library->added = info->dlpi_adds;
        if (library->added == atomic_load_explicit(&libraries_seen, memory_order_relaxed))
                return 1;
        if (!name || strncmp(name + 1, "libpython3", 10) != 0 || length >= sizeof(library->path))
                return 0;
        memcpy(library->path, path, length + 1);
        return 1;
}

/* Debug builds have other structures; this is a function that only they have. */
static bool is_debug_build(void *handle)
{
        return sp_dlsym(handle, "_Py_NegativeRefcount");
}

static bool is_interpreters(const char *path)
{
        const char *slash = strrchr(path, '/');
        const char *name = slash ? slash + 1 : path;

        return strncmp(name, "python", 6) == 0 || strncmp(name, "libpython", 9) == 0;
}

/* The executable has no name here. In a program with an interpreter inside, code is the program's.
 */
static int find_code(struct dl_phdr_info *info, size_t size, void *argument)
{
        const char *path =
                info->dlpi_name && *info->dlpi_name ? info->dlpi_name : program_invocation_name;
        uintptr_t inside = *(uintptr_t *)argument;

        (void)size;
        for (int i = 0; i < info->dlpi_phnum; i++) {
                const ElfW(Phdr) *part = &info->dlpi_phdr[i];
                uintptr_t begin = info->dlpi_addr + part->p_vaddr;

                if (part->p_type != PT_LOAD || inside - begin >= part->p_memsz)
                        continue;
                if (is_interpreters(path))
                        python.code = (struct sp_python_code){begin, part->p_memsz};
                return 1;
        }
        return 0;
}

static void adopt(void *handle)
{
        const char *(*version)(void) = (const char *(*)(void))sp_dlsym(handle, "Py_GetVersion");
        uintptr_t inside = (uintptr_t)version;
        int outcome = REFUSED;

        python.is_initialized = (int (*)(void))sp_dlsym(handle, "Py_IsInitialized");
        python.this_thread = (void *(*)(void))sp_dlsym(handle, "PyGILState_GetThisThreadState");
        python.types.code = (uintptr_t)sp_dlsym(handle, "PyCode_Type");
        python.types.text = (uintptr_t)sp_dlsym(handle, "PyUnicode_Type");
        python.types.bytes = (uintptr_t)sp_dlsym(handle, "PyBytes_Type");
        if (version && python.is_initialized && python.this_thread && python.types.code &&
            python.types.text && python.types.bytes && !is_debug_build(handle)) {
                python.layout = sp_python_layout_find(version(), sp_dlsym(handle, "_PyRuntime"));
                if (python.layout)
                        outcome = FOUND;
        }
        dl_iterate_phdr(find_code, &inside);
        if (outcome == REFUSED)
                sp_log(SP_LOG_INFO, "no Python frames: this interpreter is not known (%.40s)",
                       version ? version() : "no version");
        atomic_store_explicit(&stage, outcome, memory_order_release);
}

/*
 * An interpreter is in the executable, in a library that everybody sees, or in one that was opened
 * for few. The last kind is looked for by its name, and only where libraries were added: asking the
 * loader for a symbol waits while another thread's dlopen() runs constructors.
 */
static void look(bool is_first)
{
        struct library library = {0};
        void *handle = NULL;
        int kept = errno;

        dl_iterate_phdr(find_library, &library);
        atomic_store_explicit(&libraries_seen, library.added, memory_order_relaxed);
        /* From now on it stays, whatever the program does. */
        if (library.path[0])
                handle = dlopen(library.path, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
        if (is_first && sp_dlsym(RTLD_DEFAULT, "Py_GetVersion"))
                adopt(RTLD_DEFAULT);
        else if (handle && sp_dlsym(handle, "Py_GetVersion"))
                adopt(handle);
        errno = kept;
}

/* Others do not wait for the one that looks. */
static void look_from(int from, bool is_first)
{
        int looking = LOOKING;

        if (!atomic_compare_exchange_strong(&stage, &from, LOOKING))
                return;
        look(is_first);
        atomic_compare_exchange_strong(&stage, &looking, WAITING);
}

void sp_python_start(void)
{
        look_from(ASLEEP, true);
}

static void look_again(void)
{
        struct timespec time;
        int64_t now;

        clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
        now = time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
        if (now < atomic_load_explicit(&next_look, memory_order_relaxed))
                return;
        atomic_store_explicit(&next_look, now + LOOK_EVERY_NS, memory_order_relaxed);
        look_from(WAITING, false);
}

/* reading frames */

/* Reads before it are made before reads behind it. Not a fence of C11: the thread sanitizer has
 * none, and nothing here is known to it. */
static void order_reads(void)
{
#if defined(__aarch64__)
        __asm__ volatile("dmb ishld" ::: "memory");
#else
        __asm__ volatile("" ::: "memory"); /* x86-64 keeps loads in order */
#endif
}

/* Was what this thread has read until now the interpreter's, and is what it reads next? */
static bool is_running(void)
{
        bool answer;

        order_reads();
        answer = python.is_initialized();
        order_reads();
        return answer;
}

struct link {
        uintptr_t previous, code, at;
        int owner; /* -1: this version has none */
};

/* In some versions the thread's state names a structure, in the stack of this thread or in the
 * state itself, which names the frame. Return: false if this cannot be read, or should not be. */
static bool innermost(struct sp_sight *sight, uintptr_t thread, uintptr_t *frame)
{
        const struct sp_python_layout *layout = python.layout;
        const unsigned char *seen;
        uintptr_t root;

        if (!is_running() ||
            !(seen = sp_sight_see(sight, thread, layout->thread_root + sizeof(root))))
                return false;
        root = sp_sight_word(seen, layout->thread_root);
        if (!is_running())
                return false;
        if (root && layout->root_frame >= 0) {
                size_t offset = (size_t)layout->root_frame;

                if (!(seen = sp_sight_see(sight, root, offset + sizeof(root))))
                        return false;
                root = sp_sight_word(seen, offset);
        }
        *frame = root;
        return true;
}

static bool read_link(struct sp_sight *sight, uintptr_t frame, struct link *link)
{
        const struct sp_python_layout *layout = python.layout;
        const unsigned char *seen = sp_sight_see(sight, frame, layout->frame_bytes);

        if (!seen)
                return false;
        link->previous = sp_sight_word(seen, layout->frame_previous);
        link->code = sp_sight_word(seen, layout->frame_code) & ~(uintptr_t)layout->frame_code_tag;
        if (layout->place == SP_PYTHON_AT_POINTER)
                link->at = sp_sight_word(seen, layout->frame_at);
        else
                link->at = (uintptr_t)sp_sight_number(seen, layout->frame_at);
        link->owner = layout->frame_owner ? seen[layout->frame_owner] : -1;
        return true;
}

/* Return: 1 with @frame written, 0 if Python does not show this one either, -1 if it is not one. */
static int read_code(struct sp_sight *sight, const struct link *link, struct sp_python_frame *frame)
{
        const struct sp_python_layout *layout = python.layout;
        const unsigned char *seen = sp_sight_see(sight, link->code, layout->code_bytes);
        intptr_t at = (intptr_t)link->at;

        if (!seen || sp_sight_word(seen, SP_PYTHON_TYPE) != python.types.code)
                return -1;
        if (layout->place == SP_PYTHON_AT_UNITS)
                at *= 2;
        if (layout->place == SP_PYTHON_AT_POINTER) {
                at = (intptr_t)(link->at - link->code - layout->code_start);
                /* The function is still being called (_PyFrame_IsIncomplete()). */
                if (link->owner != OWNED_BY_GENERATOR &&
                    at < 2 * sp_sight_number(seen, layout->code_first_traceable))
                        return 0;
        }
        if (at < -2 || at > INT32_MAX)
                return -1;
        *frame = (struct sp_python_frame){
                .code = (const void *)link->code,
                .at = (int32_t)at,
                .first_line = sp_sight_number(seen, layout->code_first_line),
                .file = (const void *)sp_sight_word(seen, layout->code_file),
        };
        return 1;
}

/* Return: how many frames; @is_whole: the chain was followed to its end or to @most. */
static unsigned int walk(struct sp_sight *sight, uintptr_t thread, struct sp_python_frame *frame,
                         unsigned int most, bool *is_whole)
{
        unsigned int count = 0;
        uintptr_t next;

        *is_whole = false;
        if (!innermost(sight, thread, &next))
                return 0;
        for (unsigned int steps = 0; next && count < most && steps < STEPS_MAX; steps++) {
                struct link link;
                int found = 0;

                if (!read_link(sight, next, &link))
                        return count;
                if (link.owner < OWNED_BY_INTERPRETER)
                        found = read_code(sight, &link, &frame[count]);
                if (found < 0)
                        return count;
                count += (unsigned int)found;
                next = link.previous;
        }
        *is_whole = !next || count == most;
        return count;
}

/* The first frames of all: is the layout right? Threads that come here at once agree. */
static __attribute__((noinline)) unsigned int
take_on_trial(uintptr_t thread, struct sp_python_frame *frame, unsigned int most)
{
        struct sp_sight sight;
        unsigned int count;
        bool is_whole;

        count = walk(&sight, thread, frame, most, &is_whole);
        if (!python.is_initialized() || (is_whole && count == 0))
                return 0;
        for (unsigned int i = 0; i < count && is_whole; i++)
                is_whole = sp_python_is_sound(python.layout, &python.types, &sight, &frame[i]);
        if (!is_whole)
                sp_log(SP_LOG_INFO, "no Python frames: this interpreter is not like others of its "
                                    "version, or cannot be read");
        atomic_store_explicit(&stage, is_whole ? TRUSTED : REFUSED, memory_order_release);
        return is_whole ? count : 0;
}

static int stage_now(void)
{
        int seen = atomic_load_explicit(&stage, memory_order_acquire);

        if (seen == WAITING) {
                look_again();
                seen = atomic_load_explicit(&stage, memory_order_acquire);
        }
        return seen;
}

struct sp_python_code sp_python_code(void)
{
        return stage_now() >= FOUND ? python.code : (struct sp_python_code){0};
}

unsigned int sp_python_take(struct sp_python_frame *frame, unsigned int most)
{
        int seen = stage_now();
        uintptr_t thread;
        bool is_whole;

        /* Before it is initialized the interpreter has no key for threads. */
        if ((seen != FOUND && seen != TRUSTED) || !python.is_initialized())
                return 0;
        thread = (uintptr_t)python.this_thread();
        if (!thread)
                return 0;
        if (seen == FOUND)
                return take_on_trial(thread, frame, most);
        return walk(NULL, thread, frame, most, &is_whole);
}

bool sp_python_words(const struct sp_python_frame *frame, struct sp_python_words *words)
{
        return atomic_load_explicit(&stage, memory_order_acquire) == TRUSTED &&
               python.is_initialized() &&
               sp_python_spell(python.layout, &python.types, frame, words);
}
