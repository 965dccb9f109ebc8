/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_ROUTE_MEMORY_H
#define SP_ROUTE_MEMORY_H

/*
 * Memory -- what calls about device memory have in common, in a stream's order or not
 *
 * What the pool serves is the model's to remember (track/held.h), what the driver
 * serves the ledger's. Around every free of the latter its entry is taken before
 * anything else, because the address can be in another thread's hands before the
 * call returns (E2).
 */

#include <stdbool.h>
#include <streampool/model.h>

#include "driver/driver.h"
#include "route/guard.h"
#include "route/perform.h"
#include "track/ledger.h"

/* A free that the pool does not answer. */
struct sp_freeing {
        CUdeviceptr address;
        const char *function;
        bool known; /* @entry holds the ledger's entry, which was taken */
        struct sp_ledger_entry entry;
};

/** sp_memory_fault() - is the allocation made to fail (fault.h)? As the driver leaves it then (3D).
 */
CUresult sp_memory_fault(enum sp_kind kind, const char *function, CUdeviceptr *pointer,
                         size_t size);

/** sp_memory_serve() - from @pool; what a guard wants behind it is served along, or else nobody is
 * refused for that. @magazine: of this thread, or NULL. */
static inline bool sp_memory_serve(spm_pool pool, spm_stream stream, size_t size,
                                   struct spm_magazine *magazine, struct spm_allocation *block)
{
        size_t extra = sp_guard_extra();

        return sp_serve(pool, stream, size, extra, magazine, block) ||
               (extra && sp_serve(pool, stream, size, 0, magazine, block));
}

/** sp_memory_give_back() - a free, to the model, and what it asks for: one event for every batch.
 * @full: a magazine that has not taken it, or NULL. Return: SPM_E_FOREIGN for what is not the
 * pool's. */
enum spm_status sp_memory_give_back(CUdeviceptr address, enum spm_free_kind kind, spm_stream stream,
                                    struct spm_magazine *full, struct spm_allocation *block);

/** sp_memory_refuse() - no live block: the driver would not know it, or die of it. */
CUresult sp_memory_refuse(CUdeviceptr address, const char *function) SP_COLD;

/** sp_memory_refuse_as() - the driver would refuse it just now with @result: the block stays,
 * unless the driver is gone for good. */
CUresult sp_memory_refuse_as(CUdeviceptr address, const char *function, CUresult result) SP_COLD;

/** sp_freeing_begin() - the ledger's entry is taken. @function: a literal */
struct sp_freeing sp_freeing_begin(CUdeviceptr address, const char *function);

/** sp_freeing_mirror() - what the driver has freed is free in the model's mirror, too. */
void sp_freeing_mirror(const struct sp_freeing *freeing, CUresult result, enum spm_free_kind kind,
                       spm_stream stream);

/** sp_freeing_end() - it ended with @result, the driver's, or ours that refused it. */
void sp_freeing_end(const struct sp_freeing *freeing, CUresult result);

#endif
