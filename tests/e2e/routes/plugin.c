/* SPDX-License-Identifier: Apache-2.0 */
/* For loading.c: a library that is linked with libcuda and allocates for itself. */

#include <stddef.h>
#include <stdint.h>

int cuInit(unsigned int flags);
int cuMemAlloc_v2(uint64_t *pointer, size_t size);
int cuMemFree_v2(uint64_t pointer);
int plugin_init(unsigned int flags);
int plugin_alloc(uint64_t *pointer, size_t size);
int plugin_free(uint64_t pointer);
void *plugin_function(void);

int plugin_init(unsigned int flags)
{
        return cuInit(flags);
}

int plugin_alloc(uint64_t *pointer, size_t size)
{
        return cuMemAlloc_v2(pointer, size);
}

int plugin_free(uint64_t pointer)
{
        return cuMemFree_v2(pointer);
}

void *plugin_function(void)
{
        return (void *)cuMemAlloc_v2;
}
