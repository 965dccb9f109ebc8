/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Overlap -- does a copy write where it reads?
 *
 * NVIDIA's runtime does not allow it (cuda_runtime_api.h: the memory areas of cudaMemcpyAsync and
 * cudaMemcpy2D "may not overlap", and of cudaMemcpy3D that is "undefined behavior"), and for that
 * it calls the driver, whose own pages are silent. In which order the bytes are moved is not known,
 * so what is read where both are may be the old bytes or the new ones.
 *
 * It is certain from the call alone. Nothing is said of a copy of memory to where it is, byte for
 * byte, which leaves the same in any order, and nothing where the driver will refuse.
 */

#include "route/uses.h"

#define STEPS_MAX 1000 /* from row to row */

/* figures */

/* The first byte that is touched at @address or behind it; UINT64_MAX if there is none. */
static uint64_t next_at(const struct sp_use *use, uint64_t span, uint64_t address)
{
        uint64_t offset;

        if (address <= use->address)
                return use->address;
        offset = address - use->address;
        if (offset >= span)
                return UINT64_MAX;
        offset = sp_use_next(use, offset);
        return offset > UINT64_MAX - use->address ? UINT64_MAX : use->address + offset;
}

uint64_t sp_use_meet(const struct sp_use *one, const struct sp_use *other)
{
        uint64_t one_span = sp_use_span(one), other_span = sp_use_span(other);
        uint64_t at = one->address;

        if (!one_span || !other_span)
                return 0;
        for (unsigned int steps = 0; steps < STEPS_MAX && at != UINT64_MAX; steps++) {
                uint64_t behind = next_at(other, other_span, at);

                if (behind == at)
                        return at;
                at = next_at(one, one_span, behind);
                if (behind == at && at != UINT64_MAX)
                        return at;
        }
        return 0;
}

/* looking */

/* Where it is known that the call does something: at an address of the device, or of anything. */
static bool is_there(const struct sp_use *use, struct sp_finding *finding)
{
        CUdeviceptr base;
        size_t bytes;
        CUresult result;

        switch (sp_ledger_pooled(use->address, finding)) {
        case SP_POOLED_LIVE:
                return true;
        case SP_POOLED_FREE:
                return false;
        default:
                break;
        }
        if (use->side == SP_SIDE_HOST)
                return true;
        result = sp_use_ask(use->address, &base, &bytes);
        if (result == CUDA_SUCCESS)
                (void)sp_ledger_block(base, finding);
        return result == CUDA_SUCCESS || use->side == SP_SIDE_UNIFIED;
}

static bool is_same_place(const struct sp_use *to, const struct sp_use *from)
{
        return to->address == from->address && (to->rows == 1 || to->pitch == from->pitch) &&
               (to->slices == 1 || to->slice == from->slice);
}

void sp_use_look_overlap(const char *called, const struct sp_use *to, const struct sp_use *from)
{
        struct sp_finding finding = {
                .address = to->address,
                .function = called,
                .times = 1,
                .touched = sp_use_times(sp_use_times(to->width, to->rows), to->slices),
                .is_write = true,
                .source = from->address,
                .shared = sp_use_meet(to, from),
        };

        if (!finding.shared || is_same_place(to, from) || !sp_route_may_act() ||
            !is_there(to, &finding))
                return;
        finding.kind = SP_FINDING_OVERLAP;
        finding.site = sp_use_site();
        sp_ledger_add_finding(&finding);
}
