/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_TRACK_VMM_H
#define SP_TRACK_VMM_H

/*
 * VMM -- memory that the program maps itself, kept mapped between two uses
 *
 * A program without a cache may make, map, unmap and release physical memory for
 * every array (JAX does: 120 us of driver calls each). So what it gives back in
 * the usual way is kept as it is, and given out again to whom asks for the same.
 *
 * A pair is physical memory that is mapped, whole, in the whole of one reservation.
 * What the driver has of it, and what the program has, are two things:
 *
 *   the program has         it is      and it came there by
 *   memory, range, mapping  in use     cuMemMap
 *   memory, range           idle       cuMemUnmap
 *   one of them             idle       cuMemRelease, cuMemAddressFree; cuMemCreate,
 *                                      cuMemAddressReserve
 *   nothing                 idle       the other one
 *
 * and the driver is told of none of these steps. In any other case, whatever it
 * is, what the program believes of the pair is made true first (it is settled),
 * and the driver asked: so the driver refuses what is wrong, and no wrong call needs
 * to be understood here.
 *
 * Kept is what nobody else can know: memory of a device, of up to 32 MiB, that was
 * never exported, retained or bound. That it may be exported, which is a property
 * that JAX asks for, does not matter: it was not. Properties are equal when all
 * their bytes are.
 *
 * Access is the driver's per device, and of a pair that is used again it stays
 * what it was, until the program asks about it, or shares the memory. Between
 * cuMemMap and cuMemSetAccess it is therefore not refused.
 *
 * How much is kept, oldest first to go: 64 MiB a device (what another process may
 * be waiting for is more), and no more than what the program has given back since
 * its cuMemCreate memory was at its peak, and 16 MiB; without these, where there is
 * a limit, or growth is tight. So it never holds more, or hardly more, than without us.
 * Until it goes it counts against a limit. Memory that has been idle for
 * STREAMPOOL_DECAY goes, too.
 *
 * Threads: any, at any time. No lock is held in a driver call; who names memory
 * or addresses that another thread settles at the moment waits until that is done.
 * The ledger is told under our lock, so that both always say the same.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/driver.h"

/* Without the driver: true if the call is answered, with CUDA_SUCCESS. For calls whose other
 * arguments are 0. */

bool sp_vmm_create(CUmemGenericAllocationHandle *handle, size_t size,
                   const CUmemAllocationProp *prop);
bool sp_vmm_reserve(CUdeviceptr *base, size_t size, size_t alignment);
bool sp_vmm_map(CUdeviceptr base, size_t size, CUmemGenericAllocationHandle handle);
bool sp_vmm_set_access(CUdeviceptr base, size_t size, const CUmemAccessDesc *access, size_t count);
bool sp_vmm_unmap(CUdeviceptr base, size_t size);
bool sp_vmm_release(CUmemGenericAllocationHandle handle);
bool sp_vmm_free(CUdeviceptr base, size_t size);

/* before the driver is asked */

/** sp_vmm_begin_create() - makes room for @size bytes: what is kept goes that would pass the peak.
 */
void sp_vmm_begin_create(int device, size_t size);
void sp_vmm_end_create(int device, size_t size);

/** sp_vmm_settle() - what was given back of it is unmapped. */
void sp_vmm_settle(CUmemGenericAllocationHandle handle);

/** sp_vmm_settle_released() - the same, if it was released. */
void sp_vmm_settle_released(CUmemGenericAllocationHandle handle);
void sp_vmm_settle_range(CUdeviceptr base, size_t size);

/** sp_vmm_forget() - the same, and what is mapped is never kept: somebody else can know it. */
void sp_vmm_forget(CUmemGenericAllocationHandle handle);
void sp_vmm_forget_range(CUdeviceptr base, size_t size);

/** sp_vmm_forget_reservation() - the range is about to be freed. */
void sp_vmm_forget_reservation(CUdeviceptr base, size_t size);

/** sp_vmm_show_access() - others have the access that the program gave them since it mapped. */
void sp_vmm_show_access(CUdeviceptr address);

/* after the driver has done it */

void sp_vmm_created(CUmemGenericAllocationHandle handle, size_t size,
                    const CUmemAllocationProp *prop);
void sp_vmm_reserved(CUdeviceptr base, size_t size);

/** sp_vmm_mapped() - from the beginning of the memory. */
void sp_vmm_mapped(CUdeviceptr base, size_t size, CUmemGenericAllocationHandle handle);
void sp_vmm_access_set(CUdeviceptr base, size_t size, const CUmemAccessDesc *access, size_t count);
void sp_vmm_unmapped(CUdeviceptr base, size_t size);

/* what is kept */

/** sp_vmm_kept() - bytes on @device that the program has given back. */
uint64_t sp_vmm_kept(int device);

/** sp_vmm_trim() - gives back what exceeds @keep; the bytes given back. */
uint64_t sp_vmm_trim(int device, uint64_t keep);

/** sp_vmm_tick() - a tenth of STREAMPOOL_DECAY has passed. */
void sp_vmm_tick(void);

#endif
