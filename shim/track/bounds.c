/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bounds -- how far does the stack of this thread reach?
 *
 * The functions that know are looked up, because glibc has moved them from library to
 * library. A process without them has one thread, with the stack of a program.
 */

#define _GNU_SOURCE

#include "track/bounds.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "driver/lookup.h"

struct functions {
        int (*get_attributes)(pthread_t thread, pthread_attr_t *attributes);
        int (*get_stack)(const pthread_attr_t *attributes, void **bottom, size_t *size);
};

static bool look_up(struct functions *functions)
{
        void *attributes = sp_dlsym(RTLD_DEFAULT, "pthread_getattr_np");
        void *stack = sp_dlsym(RTLD_DEFAULT, "pthread_attr_getstack");

        memcpy(&functions->get_attributes, &attributes, sizeof(attributes));
        memcpy(&functions->get_stack, &stack, sizeof(stack));
        return attributes && stack;
}

struct sp_bounds sp_bounds_find(void)
{
        struct sp_bounds bounds = {0};
        struct functions functions;
        pthread_attr_t attributes;
        void *bottom;
        size_t size;

        if (!look_up(&functions) || functions.get_attributes(pthread_self(), &attributes))
                return bounds;
        if (!functions.get_stack(&attributes, &bottom, &size)) {
                bounds.bottom = (uintptr_t)bottom;
                bounds.top = (uintptr_t)bottom + size;
        }
        pthread_attr_destroy(&attributes);
        return bounds;
}

bool sp_bounds_have_room(size_t bytes)
{
        struct sp_bounds bounds = sp_bounds_find();
        uintptr_t here = (uintptr_t)__builtin_frame_address(0);

        if (!bounds.top)
                return syscall(SYS_gettid) == getpid();
        return here >= bounds.bottom && here < bounds.top && here - bounds.bottom >= bytes;
}
