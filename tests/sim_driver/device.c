/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Device -- how many there are, and what they say about themselves
 *
 *   SIM_DEVICES=n     2 if not set
 *   SIM_MEMORY=bytes  of each device, with K, M or G; 4G if not set
 *   SIM_RESERVE=bytes of it that cuMemGetInfo calls free, and nobody gets
 *
 * They describe themselves as an H200, as far as programs ask.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "memory.h"

#define NAME "Simulated H200"

static struct sim_device devices[SIM_DEVICES_MAX];
static int device_count;

static const struct {
        CUdevice_attribute attribute;
        int value;
} attributes[] = {
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
        {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
        {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
        {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
        {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
        {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
        {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
};

static size_t read_size(const char *text)
{
        char *end;
        size_t bytes = strtoull(text, &end, 0);

        switch (*end) {
        case 'G':
                return bytes << 30;
        case 'M':
                return bytes << 20;
        case 'K':
                return bytes << 10;
        default:
                return bytes;
        }
}

bool sim_devices_start(void)
{
        const char *count = getenv("SIM_DEVICES");
        const char *memory = getenv("SIM_MEMORY");
        const char *reserve = getenv("SIM_RESERVE");
        size_t bytes = memory ? read_size(memory) : (size_t)4 << 30;

        device_count = count ? atoi(count) : 2;
        if (device_count < 1)
                return false;
        if (device_count > SIM_DEVICES_MAX)
                device_count = SIM_DEVICES_MAX;
        for (int i = 0; i < device_count; i++) {
                devices[i].ordinal = i;
                devices[i].total_bytes = sim_round(bytes, SIM_PAGE);
                devices[i].reserve_bytes = reserve ? read_size(reserve) : 0;
        }
        if (!sim_space_start())
                sim_abort("no addresses for device memory");
        for (int i = 0; i < device_count; i++)
                sim_pool_start(&devices[i]);
        return true;
}

int sim_device_count(void)
{
        return device_count;
}

struct sim_device *sim_device(CUdevice ordinal)
{
        return ordinal >= 0 && ordinal < device_count ? &devices[ordinal] : NULL;
}

CUresult CUDAAPI cuDeviceGetCount(int *count)
{
        SIM_ENTER(cuDeviceGetCount);

        if (!count)
                return CUDA_ERROR_INVALID_VALUE;
        *count = device_count;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal)
{
        SIM_ENTER(cuDeviceGet);

        if (!device)
                return CUDA_ERROR_INVALID_VALUE;
        if (!sim_device(ordinal))
                return CUDA_ERROR_INVALID_DEVICE;
        *device = ordinal;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetName(char *name, int length, CUdevice device)
{
        SIM_ENTER(cuDeviceGetName);

        if (!name || length < 1)
                return CUDA_ERROR_INVALID_VALUE;
        if (!sim_device(device))
                return CUDA_ERROR_INVALID_DEVICE;
        snprintf(name, (size_t)length, NAME);
        return CUDA_SUCCESS;
}

static CUresult get_uuid(CUuuid *uuid, CUdevice device)
{
        if (!uuid)
                return CUDA_ERROR_INVALID_VALUE;
        if (!sim_device(device))
                return CUDA_ERROR_INVALID_DEVICE;
        memset(uuid, 0, sizeof(*uuid));
        memcpy(uuid->bytes, "simulated", 9);
        uuid->bytes[15] = (char)device;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
        SIM_ENTER(cuDeviceGetUuid);

        return get_uuid(uuid, device);
}

#if CUDA_VERSION >= 11040
CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
        SIM_ENTER(cuDeviceGetUuid_v2);

        return get_uuid(uuid, device);
}
#endif

CUresult CUDAAPI cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
        SIM_ENTER(cuDeviceTotalMem_v2);

        if (!bytes)
                return CUDA_ERROR_INVALID_VALUE;
        if (!sim_device(device))
                return CUDA_ERROR_INVALID_DEVICE;
        *bytes = sim_device(device)->total_bytes;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
        SIM_ENTER(cuDeviceGetAttribute);

        if (!value || (int)attribute < 1 || attribute >= CU_DEVICE_ATTRIBUTE_MAX)
                return CUDA_ERROR_INVALID_VALUE;
        if (!sim_device(device))
                return CUDA_ERROR_INVALID_DEVICE;
        *value = attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID ? device + 1 : 0;
        for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++) {
                if (attributes[i].attribute == attribute)
                        *value = attributes[i].value;
        }
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
        SIM_ENTER(cuDeviceComputeCapability);

        if (!major || !minor)
                return CUDA_ERROR_INVALID_VALUE;
        if (!sim_device(device))
                return CUDA_ERROR_INVALID_DEVICE;
        *major = 9;
        *minor = 0;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetPCIBusId(char *id, int length, CUdevice device)
{
        SIM_ENTER(cuDeviceGetPCIBusId);

        if (!id || length < 1)
                return CUDA_ERROR_INVALID_VALUE;
        if (!sim_device(device))
                return CUDA_ERROR_INVALID_DEVICE;
        snprintf(id, (size_t)length, "0000:%02X:00.0", (unsigned int)device + 1);
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetByPCIBusId(CUdevice *device, const char *id)
{
        SIM_ENTER(cuDeviceGetByPCIBusId);
        unsigned int bus;

        if (!device || !id || sscanf(id, "0000:%2x:00.0", &bus) != 1)
                return CUDA_ERROR_INVALID_VALUE;
        if (!sim_device((int)bus - 1))
                return CUDA_ERROR_INVALID_DEVICE;
        *device = (int)bus - 1;
        return CUDA_SUCCESS;
}
