/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Control user -- a program that talks to the shim if it is there
 *
 *   control_user absent|present
 *
 * Links neither the shim nor the driver.
 */

#include <streampool/streampool.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define EXPECT(condition)                                                                          \
        do {                                                                                       \
                if (!(condition)) {                                                                \
                        printf("line %d: not so: %s\n", __LINE__, #condition);                     \
                        return 1;                                                                  \
                }                                                                                  \
        } while (0)

enum { BYTES = 3 << 20 };

static int (*init)(unsigned int);
static int (*get_device)(int *, int);
static int (*retain)(void **, int);
static int (*set_current)(void *);
static int (*alloc)(unsigned long long *, size_t);
static int (*release)(unsigned long long);

static bool find_driver(void)
{
        void *driver = dlopen("libcuda.so.1", RTLD_NOW);

        if (!driver)
                return false;
        *(void **)&init = dlsym(driver, "cuInit");
        *(void **)&get_device = dlsym(driver, "cuDeviceGet");
        *(void **)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
        *(void **)&set_current = dlsym(driver, "cuCtxSetCurrent");
        *(void **)&alloc = dlsym(driver, "cuMemAlloc_v2");
        *(void **)&release = dlsym(driver, "cuMemFree_v2");
        return init && get_device && retain && set_current && alloc && release;
}

static int talk(void)
{
        struct streampool_figures figures = {.size = sizeof(figures)};
        unsigned long long pointer;
        void *context;
        int device;

        EXPECT(strcmp(streampool_version(), STREAMPOOL_VERSION) == 0);
        EXPECT(!streampool_get_figures(&figures));
        streampool_reset_peaks();
        streampool_write_report();
        EXPECT(streampool_set_layout("direct", -1, NULL, 0) == STREAMPOOL_NOTHING);
        EXPECT(find_driver());
        EXPECT(init(0) == 0 && get_device(&device, 0) == 0 && retain(&context, device) == 0);
        EXPECT(set_current(context) == 0 && alloc(&pointer, BYTES) == 0);
        EXPECT(streampool_get_figures(&figures));
        EXPECT(figures.live == BYTES && figures.live_allocations == 1 && figures.findings == 0);
        EXPECT(figures.requested == BYTES && figures.reserved >= BYTES);
        EXPECT(release(pointer) == 0 && streampool_get_figures(&figures));
        EXPECT(figures.live == 0 && figures.live_high == BYTES);
        EXPECT(figures.requested == 0 && figures.requested_high == BYTES);
        streampool_reset_peaks();
        EXPECT(streampool_get_figures(&figures));
        EXPECT(figures.live_high == 0 && figures.requested_high == 0);
        EXPECT(streampool_set_layout("direct", -1, NULL, 0) == STREAMPOOL_OK);
        EXPECT(streampool_persistent_enter(-1) == STREAMPOOL_OK);
        EXPECT(streampool_persistent_leave(-1) == STREAMPOOL_OK);
        puts("report now");
        fflush(stdout);
        streampool_write_report();
        return 0;
}

int main(int count, char **arguments)
{
        bool is_present = count == 2 && strcmp(arguments[1], "present") == 0;

        EXPECT(!streampool_version == !is_present);
        EXPECT(!streampool_get_figures == !is_present);
        EXPECT(!streampool_reset_peaks == !is_present);
        EXPECT(!streampool_write_report == !is_present);
        EXPECT(!streampool_set_layout == !is_present);
        EXPECT(!streampool_persistent_enter == !is_present);
        EXPECT(!streampool_persistent_leave == !is_present);
        return is_present ? talk() : 0;
}
