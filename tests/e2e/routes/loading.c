/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading and closing libraries
 *
 *   loading runpath    a plugin that only the RUNPATH of this program finds
 *   loading deepbind   a plugin that passes us by, beside a program that does not
 *   loading unseen     such a plugin initialises the driver, and we do not see it
 *   loading second     a second copy of the driver, in a namespace of its own
 *   loading second-first  the same, before the driver itself
 *   loading closing    the driver, opened, used and closed a thousand times
 */

#define _GNU_SOURCE

#include "routes.h"

static void *driver;
static void *context;

static void make_current(void)
{
        CHECK(((int (*)(void **, int))dlsym(driver, "cuDevicePrimaryCtxRetain"))(&context, 0) == 0,
              "retain");
        CHECK(((int (*)(void *))dlsym(driver, "cuCtxSetCurrent"))(context) == 0, "set current");
}

static void start(void)
{
        driver = dlopen("libcuda.so.1", RTLD_NOW);
        CHECK(((init_function)dlsym(driver, "cuInit"))(0) == 0, "cuInit");
        make_current();
}

static void use(void *library)
{
        alloc_function alloc = (alloc_function)dlsym(library, "cuMemAlloc_v2");
        free_function free_it = (free_function)dlsym(library, "cuMemFree_v2");
        uint64_t pointer = 0;

        CHECK(alloc(&pointer, 3000) == 0 && pointer, "alloc");
        CHECK(free_it(pointer) == 0, "free");
}

static void check_runpath(void)
{
        void *plugin = dlopen("libroutes_plugin.so", RTLD_NOW);

        CHECK(plugin, "%s", dlerror());
        if (plugin)
                CHECK(is_ours(((void *(*)(void))dlsym(plugin, "plugin_function"))()),
                      "the plugin's calls are not ours");
}

static void check_deepbind(void)
{
        void *plugin = dlopen("libroutes_plugin.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
        alloc_function plugin_alloc = (alloc_function)dlsym(plugin, "plugin_alloc");
        free_function plugin_free = (free_function)dlsym(plugin, "plugin_free");
        free_function our_free = (free_function)dlsym(driver, "cuMemFree_v2");
        void *bound = ((void *(*)(void))dlsym(plugin, "plugin_function"))();
        uint64_t pointers[2] = {0, 0};

        CHECK(!is_ours(bound), "the plugin was to pass us by");
        for (int i = 0; i < 100; i++) {
                use(driver);
                CHECK(plugin_alloc(&pointers[0], 5000) == 0, "alloc in the plugin");
                CHECK(plugin_alloc(&pointers[1], 5000) == 0, "alloc in the plugin");
                use(driver);
                CHECK(plugin_free(pointers[0]) == 0, "free in the plugin");
                CHECK(our_free(pointers[1]) == 0, "free of what we never saw");
        }
}

static void check_unseen(void)
{
        void *plugin = dlopen("libroutes_plugin.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
        uint64_t pointer = 7;

        driver = dlopen("libcuda.so.1", RTLD_NOW);
        CHECK(((alloc_function)dlsym(driver, "cuMemAlloc_v2"))(&pointer, 1) == 3, "too early");
        CHECK(((init_function)dlsym(plugin, "plugin_init"))(0) == 0, "cuInit in the plugin");
        make_current();
        use(driver);
}

static void check_second(void)
{
        void *copy = dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW);
        const char *const names[] = {"cuInit", "cuMemAlloc_v2", "cuMemFree_v2",
                                     "cuGetProcAddress_v2"};
        void *found = NULL;
        gpa2_function ask;

        CHECK(copy, "%s", dlerror());
        if (!copy)
                return;
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                CHECK(dlsym(copy, names[i]) == bare_dlsym(copy, names[i]), "%s", names[i]);
                CHECK(!is_ours(dlsym(copy, names[i])), "%s of the copy is not ours", names[i]);
                CHECK(is_ours(dlsym(driver, names[i])), "%s of the driver is", names[i]);
        }
        ask = (gpa2_function)dlsym(copy, "cuGetProcAddress_v2");
        CHECK(ask("cuMemAlloc", &found, 13000, 0, NULL) == 0, "the copy answers");
        CHECK(found == bare_dlsym(copy, "cuMemAlloc_v2"), "with its own address");
        use(driver);
}

/* The copy comes first: it must not be taken for the driver. */
static void check_second_first(void)
{
        void *copy = dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW);

        CHECK(copy && dlsym(copy, "cuInit") == bare_dlsym(copy, "cuInit"), "cuInit of the copy");
        start();
        CHECK(is_ours(dlsym(driver, "cuMemAlloc_v2")), "the driver is not ours");
}

static void check_closing(void)
{
        dlclose(driver);
        for (int i = 0; i < 1000; i++) {
                void *again = dlopen("libcuda.so.1", RTLD_NOW);

                CHECK(is_ours(dlsym(again, "cuMemAlloc_v2")), "round %d", i);
                use(again);
                dlclose(again);
        }
}

int main(int argc, char **argv)
{
        const char *what = argc > 1 ? argv[1] : "";

        if (strcmp(what, "second-first") == 0) {
                check_second_first();
                return RESULT();
        }
        if (strcmp(what, "unseen") == 0) {
                check_unseen();
                return RESULT();
        }
        start();
        if (strcmp(what, "runpath") == 0)
                check_runpath();
        else if (strcmp(what, "deepbind") == 0)
                check_deepbind();
        else if (strcmp(what, "second") == 0)
                check_second();
        else if (strcmp(what, "closing") == 0)
                check_closing();
        else
                return 2;
        return RESULT();
}
