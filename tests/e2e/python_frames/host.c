/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Host -- a program that has no Python in it until it opens it for itself
 *
 *     host FRAMES LIBPYTHON
 *
 * The library of python.c starts before there is an interpreter, and must find the
 * one that comes later, in a library whose names nobody else sees. Says the words of
 * the frames that it took.
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define METH_NOARGS 4

/* PyMethodDef, of the stable ABI */
struct method {
        const char *name;
        void *(*function)(void *, void *);
        int flags;
        const char *doc;
};

static const char program[] = "class Of:\n"
                              "    def method(self):\n"
                              "        return (\n"
                              "            take())\n"
                              "[Of().method() for _ in range(1)]\n"
                              "take()\n";

static long (*frames_words)(char *, size_t, unsigned int);
static void *none;
static void (*keep)(void *);

static void *find(void *library, const char *name)
{
        void *found = dlsym(library, name);

        if (!found) {
                fprintf(stderr, "host: there is no %s\n", name);
                exit(1);
        }
        return found;
}

static void *take(void *self, void *arguments)
{
        char text[4096];
        long length = frames_words(text, sizeof(text), 64);

        (void)self;
        (void)arguments;
        if (length < 0)
                printf("%ld", length);
        for (long i = 0; i < length; i++)
                putchar(text[i] ? text[i] : ' ');
        putchar('\n');
        fflush(stdout);
        keep(none);
        return none;
}

static void run_python(void *python)
{
        static struct method method = {"take", take, METH_NOARGS, NULL};
        void *(*new_function)(struct method *, void *, void *) =
                (void *(*)(struct method *, void *, void *))find(python, "PyCFunction_NewEx");
        void *(*add_module)(const char *) =
                (void *(*)(const char *))find(python, "PyImport_AddModule");
        int (*set)(void *, const char *, void *) =
                (int (*)(void *, const char *, void *))find(python, "PyObject_SetAttrString");
        int (*run)(const char *, void *) =
                (int (*)(const char *, void *))find(python, "PyRun_SimpleStringFlags");

        none = find(python, "_Py_NoneStruct");
        keep = (void (*)(void *))find(python, "Py_IncRef");
        ((void (*)(int))find(python, "Py_InitializeEx"))(0);
        if (set(add_module("__main__"), "take", new_function(&method, NULL, NULL)) != 0 ||
            run(program, NULL) != 0)
                exit(1);
        /* With no interpreter there are no frames, and nothing happens. */
        ((int (*)(void))find(python, "Py_FinalizeEx"))();
        if (frames_words(NULL, 0, 64) != 0)
                exit(1);
}

int main(int count, char **arguments)
{
        void *frames, *python;

        if (count != 3 || !(frames = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL))) {
                fprintf(stderr, "host: %s\n", count == 3 ? dlerror() : "FRAMES LIBPYTHON");
                return 2;
        }
        ((void (*)(void))find(frames, "frames_start"))();
        frames_words = (long (*)(char *, size_t, unsigned int))find(frames, "frames_words");
        if (frames_words(NULL, 0, 64) != 0)
                return 1;
        if (!(python = dlopen(arguments[2], RTLD_NOW | RTLD_LOCAL))) {
                fprintf(stderr, "host: %s\n", dlerror());
                return 2;
        }
        /* What is new is looked for ten times a second. */
        usleep(200000);
        run_python(python);
        return 0;
}
