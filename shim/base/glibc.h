/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_BASE_GLIBC_H
#define SP_BASE_GLIBC_H

/*
 * glibc -- old names for functions that moved, so that the shim loads anywhere
 *
 * A library built on glibc 2.34 or later asks for dlopen@GLIBC_2.34, because
 * libdl and libpthread were merged into libc then; a process with an older glibc
 * would not start with it preloaded. The function is the same one under its first
 * version too, so every file of the shim asks for that: the build includes this
 * before anything else. A name that a file does not use leaves no trace there.
 *
 * The library that had the name before the merge must then be named as needed;
 * shim/meson.build does. tests/static/check_exports.py finds what is missing here.
 *
 * dlsym() is not in the list: the shim exports it and may not call it.
 */

#ifdef __x86_64__
#define SP_GLIBC_FIRST "GLIBC_2.2.5"
#define SP_GLIBC_DLADDR1 "GLIBC_2.3.3"
#elif defined(__aarch64__)
#define SP_GLIBC_FIRST "GLIBC_2.17"
#define SP_GLIBC_DLADDR1 "GLIBC_2.17"
#endif

#ifdef SP_GLIBC_FIRST
#define SP_GLIBC_OLD(name, was, version) __asm__(".symver " #name "," #was "@" version)
SP_GLIBC_OLD(dladdr, dladdr, SP_GLIBC_FIRST);
SP_GLIBC_OLD(dladdr1, dladdr1, SP_GLIBC_DLADDR1);
SP_GLIBC_OLD(dlclose, dlclose, SP_GLIBC_FIRST);
SP_GLIBC_OLD(dlerror, dlerror, SP_GLIBC_FIRST);
SP_GLIBC_OLD(dlinfo, dlinfo, SP_GLIBC_DLADDR1);
SP_GLIBC_OLD(dlopen, dlopen, SP_GLIBC_FIRST);
SP_GLIBC_OLD(dlvsym, dlvsym, SP_GLIBC_FIRST);
SP_GLIBC_OLD(pthread_key_create, pthread_key_create, SP_GLIBC_FIRST);
SP_GLIBC_OLD(pthread_getspecific, pthread_getspecific, SP_GLIBC_FIRST);
SP_GLIBC_OLD(pthread_setspecific, pthread_setspecific, SP_GLIBC_FIRST);
SP_GLIBC_OLD(pthread_once, pthread_once, SP_GLIBC_FIRST);
/* The C23 readers of numbers, since 2.38: they differ in 0b prefixes only. */
SP_GLIBC_OLD(__isoc23_strtol, strtol, SP_GLIBC_FIRST);
SP_GLIBC_OLD(__isoc23_strtoul, strtoul, SP_GLIBC_FIRST);
SP_GLIBC_OLD(__isoc23_strtoull, strtoull, SP_GLIBC_FIRST);
#endif

#endif
