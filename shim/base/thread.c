/* SPDX-License-Identifier: Apache-2.0 */

/* Thread -- what is done when a thread of the program ends */

#include "base/thread.h"

bool sp_thread_at_end(void (*end)(void *argument), void *argument)
{
        /* Of the C library since 2.18, which has no header for it. */
        extern int __cxa_thread_atexit_impl(void (*function)(void *), void *given, void *library);
        extern void *__dso_handle __attribute__((visibility("hidden")));

        return __cxa_thread_atexit_impl(end, argument, &__dso_handle) == 0;
}
