/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Space -- addresses, and the bytes behind them
 *
 * Device addresses are addresses of this process: one large arena without
 * access, always asked for at the same place so that runs repeat, taken
 * elsewhere if that place is taken. The memory of a device is a file without a
 * name, mapped into the arena piece by piece; offsets in it are never short,
 * the device's size is a counter. Mapping the file and not private memory is
 * what lets one piece have two addresses, or be opened by another process.
 */

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include "memory.h"

#define ARENA_HINT 0x200000000000ull
#if defined(__SANITIZE_THREAD__)
#define ARENA_BYTES ((uint64_t)2 << 40) /* ThreadSanitizer leaves no more than 5 TiB */
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ARENA_BYTES ((uint64_t)2 << 40)
#endif
#endif
#ifndef ARENA_BYTES
#define ARENA_BYTES ((uint64_t)32 << 40)
#endif
#define ARENA_LEAST ((uint64_t)64 << 30)
#define FILE_BYTES  ((uint64_t)1 << 46)

static struct sim_extents arena;

/* By ordinal. */
static int files[SIM_DEVICES_MAX];
static uint64_t lengths[SIM_DEVICES_MAX]; /* of the files; they never shrink */
static struct sim_extents offsets[SIM_DEVICES_MAX];

/* In one piece, or where the kernel has put too much in between, as it can under ThreadSanitizer,
 * in several. */
static bool start_arena(void)
{
        uint64_t bytes = ARENA_BYTES, total = 0;

        while (bytes >= ARENA_LEAST && total < ARENA_BYTES) {
                void *base = mmap((void *)ARENA_HINT, bytes, PROT_NONE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
                uint64_t first, skipped;

                if (base == MAP_FAILED) {
                        bytes -= bytes / 8;
                        continue;
                }
                first = sim_round((uint64_t)base, SIM_PAGE);
                skipped = first - (uint64_t)base;
                sim_extents_give(&arena, first, (bytes - skipped) / SIM_PAGE * SIM_PAGE);
                total += bytes;
        }
        return total;
}

bool sim_space_start(void)
{
        for (int i = 0; i < sim_device_count(); i++) {
                files[i] = memfd_create("sim-device", MFD_CLOEXEC);
                if (files[i] < 0)
                        return false;
                sim_extents_give(&offsets[i], 0, FILE_BYTES);
        }
        return start_arena();
}

bool sim_space_take(uint64_t bytes, uint64_t align, uint64_t *base)
{
        return sim_extents_take(&arena, sim_round(bytes, SIM_PAGE),
                                align > SIM_PAGE ? align : SIM_PAGE, base);
}

bool sim_space_take_at(uint64_t base, uint64_t bytes)
{
        return !(base % SIM_PAGE) && sim_extents_take_at(&arena, base, sim_round(bytes, SIM_PAGE));
}

void sim_space_give(uint64_t base, uint64_t bytes)
{
        sim_extents_give(&arena, base, sim_round(bytes, SIM_PAGE));
}

bool sim_physical_fits(const struct sim_device *device, uint64_t bytes)
{
        size_t taken = device->used_bytes + device->reserve_bytes;

        return bytes <= device->total_bytes && taken <= device->total_bytes - bytes;
}

void sim_physical_reclaim(struct sim_device *device)
{
        sim_memory_reap();
        sim_pool_reclaim(device);
}

CUresult sim_physical_take(struct sim_device *device, uint64_t bytes, uint64_t *offset)
{
        struct sim_extents *free = &offsets[device->ordinal];
        uint64_t *length = &lengths[device->ordinal];

        if (!sim_physical_fits(device, bytes))
                sim_physical_reclaim(device);
        if (!sim_physical_fits(device, bytes) || !sim_extents_take(free, bytes, SIM_PAGE, offset))
                return CUDA_ERROR_OUT_OF_MEMORY;
        if (*offset + bytes > *length) {
                *length = *offset + bytes;
                if (ftruncate(files[device->ordinal], (off_t)*length))
                        sim_abort("no room for a device's file of %llu bytes",
                                  (unsigned long long)*length);
        }
        device->used_bytes += bytes;
        if (device->high_bytes < device->used_bytes)
                device->high_bytes = device->used_bytes;
        return CUDA_SUCCESS;
}

void sim_physical_give(struct sim_device *device, uint64_t offset, uint64_t bytes)
{
        if (fallocate(files[device->ordinal], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      (off_t)offset, (off_t)bytes))
                sim_abort("device memory cannot be given back to the host");
        sim_extents_give(&offsets[device->ordinal], offset, bytes);
        device->used_bytes -= bytes;
}

void sim_physical_leave(struct sim_device *device, uint64_t bytes)
{
        device->used_bytes -= bytes;
}

int sim_physical_file(const struct sim_device *device)
{
        return files[device->ordinal];
}

int sim_open_file(int process, int file)
{
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/fd/%d", process, file);
        return open(path, O_RDWR | O_CLOEXEC);
}

void sim_space_map_file(uint64_t base, int file, uint64_t offset, uint64_t bytes)
{
        void *mapped =
                mmap((void *)base, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, file, (off_t)offset);

        if (mapped == MAP_FAILED)
                sim_abort("the host maps no more pages (%llu bytes)", (unsigned long long)bytes);
}

void sim_space_map(uint64_t base, const struct sim_device *device, uint64_t offset, uint64_t bytes)
{
        sim_space_map_file(base, files[device->ordinal], offset, bytes);
}

void sim_space_protect(uint64_t base, uint64_t bytes, int protection)
{
        if (mprotect((void *)base, bytes, protection))
                sim_abort("the host refuses access to %llx", (unsigned long long)base);
}

void sim_space_unmap(uint64_t base, uint64_t bytes)
{
        void *mapped = mmap((void *)base, bytes, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

        if (mapped == MAP_FAILED)
                sim_abort("the host cannot hide %llx", (unsigned long long)base);
}
