/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_GLIBC_H
#define SP_GLIBC_H

/*
 * C library -- which glibc may load this library?
 *
 * Included in front of every source of the shim. A library that is built on a
 * new distribution asks for the newest version of each function, and a program
 * in an older container then does not start at all ("GLIBC_2.34 not found").
 * glibc 2.34 moved libdl and libpthread into libc under new versions, 2.38 gave
 * strtol() a new name; the old ones are still there, and are what we ask for.
 * Nothing newer than 2.28 is allowed; a test reads the finished library.
 *
 * The old versions live in libdl.so.2 where libc does not have them, so the
 * library names both. dlsym() is not here: the shim exports it and may not call
 * it. A name that a file does not use leaves no trace there.
 */

#if defined(__x86_64__)
#define SP_GLIBC_FIRST  "GLIBC_2.2.5"
#define SP_GLIBC_DLINFO "GLIBC_2.3.3"
#elif defined(__aarch64__)
#define SP_GLIBC_FIRST  "GLIBC_2.17"
#define SP_GLIBC_DLINFO "GLIBC_2.17"
#else
#error "the shim knows x86-64 and aarch64"
#endif

#ifndef __ASSEMBLER__

#define SP_GLIBC_USE(name, old, version) __asm__(".symver " #name "," #old "@" version)

SP_GLIBC_USE(dlopen, dlopen, SP_GLIBC_FIRST);
SP_GLIBC_USE(dlclose, dlclose, SP_GLIBC_FIRST);
SP_GLIBC_USE(dlerror, dlerror, SP_GLIBC_FIRST);
SP_GLIBC_USE(dlvsym, dlvsym, SP_GLIBC_FIRST);
SP_GLIBC_USE(dladdr, dladdr, SP_GLIBC_FIRST);
SP_GLIBC_USE(dladdr1, dladdr1, SP_GLIBC_DLINFO);
SP_GLIBC_USE(dlinfo, dlinfo, SP_GLIBC_DLINFO);

/* The new ones differ only in reading "0b1". */
SP_GLIBC_USE(__isoc23_strtol, strtol, SP_GLIBC_FIRST);
SP_GLIBC_USE(__isoc23_strtoul, strtoul, SP_GLIBC_FIRST);
SP_GLIBC_USE(__isoc23_strtoll, strtoll, SP_GLIBC_FIRST);
SP_GLIBC_USE(__isoc23_strtoull, strtoull, SP_GLIBC_FIRST);

#endif

#endif
