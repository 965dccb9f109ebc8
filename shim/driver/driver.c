/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver -- the real functions of libcuda
 *
 * No lock is held and nothing is "once" while the loader works: a constructor
 * that it runs may call one of our hooks, on this thread or on one that waits
 * for us (D9). Every thread that finds the driver missing therefore resolves all
 * functions for itself, into its own copy, and the first to finish publishes.
 * Publishing only copies, and only the others wait for it, for a bounded time:
 * a child forked in its middle must not wait for ever.
 *
 * The library gets RTLD_NODELETE, so addresses survive the program's dlclose().
 */

#define _GNU_SOURCE

#include "driver/driver.h"

#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/log.h"
#include "driver/lookup.h"

#define PATIENCE 10000 /* turns of sched_yield() */

enum { EMPTY, PUBLISHING, READY };

struct sp_driver sp_driver;

static const char usual_name[] = "libcuda.so.1";

/* Atomic. */
static atomic_uint stage;

/* Written once, before READY. The loader's own string: it lives as long as the library. */
static const char *path = "";

const struct sp_entry_info sp_entry_info[SP_ENTRY_COUNT] = {
#define SP_EACH_HOOK(api, symbol, since, suffix, params, raw_args, args)                           \
        {#api, #symbol #suffix, since, SP_ROW_HOOK},
#define SP_EACH_RETRY(api, symbol, since, suffix, params, raw_args)                                \
        {#api, #symbol #suffix, since, SP_ROW_RETRY},
#define SP_EACH_SUBMIT(api, symbol, since, suffix, kind, params, raw_args, stream)                 \
        {#api, #symbol #suffix, since, SP_ROW_SUBMIT},
#define SP_EACH_CALL(api, symbol, since, suffix) {#api, #symbol #suffix, since, SP_ROW_CALL},
#include "driver/entry_points.def"
};

bool sp_driver_is_loaded(void)
{
        return atomic_load_explicit(&stage, memory_order_acquire) == READY;
}

const char *sp_driver_path(void)
{
        return sp_driver_is_loaded() ? path : "";
}

void *sp_driver_address(enum sp_entry entry)
{
        void *address;

        /* One pointer per row, in the order of the rows. */
        _Static_assert(sizeof(struct sp_driver) == SP_ENTRY_COUNT * sizeof(void *),
                       "struct sp_driver holds nothing else");
        memcpy(&address, (const char *)&sp_driver + entry * sizeof(void *), sizeof(address));
        return address;
}

/* publishing */

static void resolve(void *handle, struct sp_driver *driver)
{
        for (int i = 0; i < SP_ENTRY_COUNT; i++) {
                void *address = sp_dlsym(handle, sp_entry_info[i].symbol);

                memcpy((char *)driver + i * sizeof(void *), &address, sizeof(address));
        }
}

static bool publish(const struct sp_driver *driver, const char *found_at)
{
        unsigned int expected = EMPTY;

        if (atomic_compare_exchange_strong(&stage, &expected, PUBLISHING)) {
                sp_driver = *driver;
                path = found_at;
                sp_lookup_fill();
                atomic_store_explicit(&stage, READY, memory_order_release);
                return true;
        }
        for (int turn = 0; turn < PATIENCE && !sp_driver_is_loaded(); turn++)
                sched_yield();
        return sp_driver_is_loaded();
}

/* recognising */

static bool is_named_libcuda(const struct link_map *map)
{
        const char *slash = strrchr(map->l_name, '/');
        const char *base = slash ? slash + 1 : map->l_name;

        return strncmp(base, "libcuda.so", strlen("libcuda.so")) == 0;
}

static struct link_map *map_of(const void *address)
{
        struct link_map *map = NULL;
        Dl_info info;

        if (!address || !dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP))
                return NULL;
        return map;
}

/* Our own library is never the driver, whatever it was renamed to. */
static bool may_be_driver(const struct link_map *map)
{
        return map && map != map_of(&sp_driver) && is_named_libcuda(map);
}

bool sp_driver_contains(const void *address)
{
        const struct link_map *map = sp_driver_is_loaded() ? map_of(address) : NULL;

        return map && map->l_name == path;
}

static bool take(void *handle)
{
        struct sp_driver driver;
        struct link_map *map;

        if (!handle)
                return false;
        if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !may_be_driver(map)) {
                dlclose(handle);
                return false;
        }
        resolve(handle, &driver);
        /* The handle stays open for ever. */
        return publish(&driver, map->l_name);
}

/* A driver can consist of two libraries, of which the outer one looks up what it was asked for in
 * the inner one (WSL: libcuda.so.1 and libcuda.so.1.1). The inner one is none of our business. */
static bool is_inner(const struct link_map *map)
{
        void *outer = dlopen(usual_name, RTLD_NOW | RTLD_NOLOAD);
        bool differs = outer && outer != (const void *)map;

        if (outer)
                dlclose(outer);
        return differs;
}

bool sp_driver_adopt(const void *address)
{
        struct link_map *map = map_of(address);

        if (sp_driver_is_loaded())
                return true;
        if (!may_be_driver(map) || is_inner(map))
                return false;
        /* Not a copy in a namespace of its own (dlmopen): we do not find it from ours. */
        return take(dlopen(map->l_name, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE));
}

bool sp_driver_load(void)
{
        if (sp_driver_is_loaded())
                return true;
        if (take(dlopen(usual_name, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE)))
                return true;
        if (take(dlopen(usual_name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)))
                return true;
        sp_log(SP_LOG_DEBUG, "there is no %s", usual_name);
        return false;
}
