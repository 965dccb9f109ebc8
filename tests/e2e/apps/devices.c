/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices -- two devices at once: whose memory is it, and does it come back there?
 */
#include <stdio.h>

#include "cu.h"

#define DEVICES 2
#define BYTES   ((size_t)1 << 20)
#define WORDS   (BYTES / 4)

struct device {
        CUcontext context;
        CUstream stream;
        struct cu_kernels kernels;
};

static struct device devices[DEVICES];
static int wrong;

static int where(CUdeviceptr p)
{
        int ordinal = -1;

        CU_OK(cu.PointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
        return ordinal;
}

static void open_device(int i)
{
        struct device *device = &devices[i];

        device->context = cu_start(i);
        cu_load_kernels(&device->kernels);
        CU_OK(cu.StreamCreate(&device->stream, CU_STREAM_NON_BLOCKING));
}

/* One round: memory of each device, used there, freed while the other device is current. */
static void round_trip(uint32_t value)
{
        CUdeviceptr p[DEVICES], q[DEVICES];

        for (int i = 0; i < DEVICES; i++) {
                struct device *device = &devices[i];

                CU_OK(cu.CtxSetCurrent(device->context));
                CU_OK(cu.MemAlloc(&p[i], BYTES));
                cu_owned(p[i], BYTES);
                CU_OK(cu_fill(&device->kernels, device->stream, p[i], WORDS, value));
                wrong += where(p[i]) != i;
        }
        for (int i = 0; i < DEVICES; i++) {
                /* The stream says which device, not what is current. */
                CU_OK(cu.MemAllocAsync(&q[i], BYTES, devices[i].stream));
                cu_owned(q[i], BYTES);
                wrong += where(q[i]) != i;
        }
        for (int i = 0; i < DEVICES; i++) {
                struct device *device = &devices[i];
                uint32_t back = 0;

                CU_OK(cu.CtxSetCurrent(device->context));
                CU_OK(cu_copy(&device->kernels, device->stream, q[i], p[i], WORDS));
                CU_OK(cu.MemcpyDtoHAsync(&back, q[i] + BYTES - 4, 4, device->stream));
                CU_OK(cu.StreamSynchronize(device->stream));
                wrong += back != value;
                CU_OK(cu.CtxSetCurrent(devices[!i].context));
                cu_disowned(p[i]);
                CU_OK(cu.MemFree(p[i]));
                cu_disowned(q[i]);
                CU_OK(cu.MemFreeAsync(q[i], device->stream));
                wrong += cu.MemFree(p[i]) != CUDA_ERROR_INVALID_VALUE;
        }
}

int main(void)
{
        int count = 0;

        cu_load();
        CU_OK(cu.Init(0));
        CU_OK(cu.DeviceGetCount(&count));
        if (count < DEVICES) {
                printf("one device\n");
                return 77;
        }
        for (int i = 0; i < DEVICES; i++)
                open_device(i);
        for (uint32_t i = 1; i <= 20; i++)
                round_trip(i);
        CU_OK(cu.DevicePrimaryCtxReset(1));
        CU_OK(cu.CtxSetCurrent(devices[0].context));
        for (int i = 0; i < 10; i++) {
                CUdeviceptr p;

                CU_OK(cu.MemAlloc(&p, BYTES));
                wrong += where(p) != 0;
                CU_OK(cu.MemFree(p));
        }
        open_device(1);
        round_trip(99);
        printf("wrong %d\n", wrong);
        return 0;
}
