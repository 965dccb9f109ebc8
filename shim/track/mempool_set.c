/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is set on a memory pool -- by the options, and by the program
 *
 * A value is copied from the driver's pool to the model's until the driver says
 * the same before and after. Who sets a value first notes that there is one, and
 * then looks for the model's pool; who makes that one first publishes it, and
 * then looks for notes.
 */

#include "track/mempool_set.h"

#include "base/config.h"
#include "base/log.h"
#include "track/backing.h"
#include "track/bracket.h"
#include "track/mempool.h"
#include "track/state.h"

/* Is the attribute's value an int? The others have 64 bits (cuda.h). */
static bool is_policy(CUmemPool_attribute attribute)
{
        return attribute == CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES ||
               attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC ||
               attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

/* the options */

static const CUmemPool_attribute settable[] = {
        CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES,
        CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
        CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES,
        CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
};
#define SETTABLE (sizeof(settable) / sizeof(settable[0]))

static enum sp_switch policy_option(CUmemPool_attribute attribute)
{
        const struct sp_config *config = sp_config();

        switch (attribute) {
        case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
                return config->pool_follow;
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
                return config->pool_opportunistic;
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
                return config->pool_internal;
        default:
                return SP_SWITCH_UNSET;
        }
}

/* Return: false if no option says what the attribute is to be. */
static bool read_option(int ordinal, CUmemPool_attribute attribute, union sp_mempool_value *value)
{
        struct sp_amount threshold = sp_config()->pool_threshold;
        enum sp_switch policy = policy_option(attribute);
        size_t total = 0;

        if (policy != SP_SWITCH_UNSET) {
                value->policy = policy == SP_SWITCH_ON;
                return true;
        }
        if (attribute != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD || !threshold.is_given)
                return false;
        if (threshold.share && sp_driver.cuDeviceTotalMem_v2)
                sp_driver.cuDeviceTotalMem_v2(&total, ordinal);
        value->bytes = sp_amount_bytes(threshold, total);
        return true;
}

bool sp_mempool_is_forced(int ordinal, CUmemPool_attribute attribute, union sp_mempool_value *value)
{
        return sp_config()->pool_force && read_option(ordinal, attribute, value);
}

void sp_mempool_start(CUmemoryPool handle, int ordinal)
{
        for (unsigned int i = 0; i < SETTABLE; i++) {
                union sp_mempool_value value;
                CUstreamCaptureMode mode;
                CUresult result;

                if (!read_option(ordinal, settable[i], &value))
                        continue;
                mode = sp_bracket_open();
                result = sp_driver.cuMemPoolSetAttribute(handle, settable[i], &value);
                sp_bracket_close(mode);
                if (result == CUDA_SUCCESS)
                        sp_mempool_was_set(handle, settable[i]);
                else
                        sp_log(SP_LOG_WARNING, "attribute %d of a memory pool could not be set: %d",
                               (int)settable[i], (int)result);
        }
}

/* from the driver's pool to the model's */

static bool ask(CUmemoryPool handle, CUmemPool_attribute attribute, uint64_t *number)
{
        CUstreamCaptureMode mode = sp_bracket_open();
        union sp_mempool_value value;
        CUresult result = sp_driver.cuMemPoolGetAttribute(handle, attribute, &value);

        sp_bracket_close(mode);
        *number = is_policy(attribute) ? (uint64_t)value.policy : value.bytes;
        return result == CUDA_SUCCESS;
}

static void set_in_model(spm_pool model, CUmemPool_attribute attribute, uint64_t number)
{
        spm_pool_set_attribute(sp_model_enter(), model, (enum spm_pool_attribute)attribute, number);
        sp_model_leave();
}

static void copy_attribute(CUmemoryPool handle, spm_pool model, CUmemPool_attribute attribute)
{
        uint64_t number, again;
        bool known = ask(handle, attribute, &again);

        while (known) {
                number = again;
                set_in_model(model, attribute, number);
                known = ask(handle, attribute, &again) && again != number;
        }
}

void sp_mempool_was_set(CUmemoryPool handle, CUmemPool_attribute attribute)
{
        bool tunes = is_policy(attribute);
        bool is_threshold = attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        spm_pool model;

        if (tunes || is_threshold)
                sp_mempool_note(handle, tunes ? SP_MEMPOOL_TUNED : SP_MEMPOOL_THRESHOLD);
        model = sp_mempool_model(handle);
        if (!model)
                return;
        if (tunes || is_threshold)
                copy_attribute(handle, model, attribute);
        else
                set_in_model(model, attribute, 0); /* a high mark, which is what it can be set to */
}

/* access */

static bool ask_access(CUmemoryPool handle, int peer, CUmemAccess_flags *flags)
{
        CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = peer};

        return sp_driver.cuMemPoolGetAccess &&
               sp_driver.cuMemPoolGetAccess(flags, handle, &location) == CUDA_SUCCESS;
}

static enum spm_access access_of(CUmemAccess_flags flags)
{
        return flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? SPM_ACCESS_READ_WRITE
               : flags == CU_MEM_ACCESS_FLAGS_PROT_READ    ? SPM_ACCESS_READ
                                                           : SPM_ACCESS_NONE;
}

/* For what is mapped and what will be. */
static bool allow(spm_pool model, int peer, CUmemAccess_flags flags)
{
        enum spm_status status =
                spm_pool_set_access(sp_model_enter(), model, peer, access_of(flags));
        CUstreamCaptureMode mode;
        CUresult result;

        sp_model_leave();
        if (status != SPM_OK)
                return status == SPM_E_INVALID_DEVICE; /* its own device, which has all */
        mode = sp_bracket_open();
        result = sp_backing_grant(model, peer, flags);
        sp_bracket_close(mode);
        return result == CUDA_SUCCESS;
}

static void copy_access(CUmemoryPool handle, spm_pool model, int peer)
{
        CUmemAccess_flags flags, again;
        bool known = ask_access(handle, peer, &again);

        while (known) {
                flags = again;
                if (!allow(model, peer, flags)) {
                        sp_log(SP_LOG_WARNING,
                               "device %d cannot be let into a pool: it is the driver's now", peer);
                        sp_mempool_note(handle, SP_MEMPOOL_NATIVE);
                        return;
                }
                known = ask_access(handle, peer, &again) && again != flags;
        }
}

void sp_mempool_was_shared(CUmemoryPool handle, int peer)
{
        spm_pool model;

        sp_mempool_note(handle, SP_MEMPOOL_SHARED);
        model = sp_mempool_model(handle);
        if (model)
                copy_access(handle, model, peer);
}

/* all of it */

void sp_mempool_take_over(CUmemoryPool handle, spm_pool model)
{
        unsigned int notes = sp_mempool_note(handle, 0);
        int devices = 0;

        for (unsigned int i = 0; i < SETTABLE; i++)
                if (notes & (is_policy(settable[i]) ? SP_MEMPOOL_TUNED : SP_MEMPOOL_THRESHOLD))
                        copy_attribute(handle, model, settable[i]);
        if (notes & SP_MEMPOOL_SHARED)
                sp_driver.cuDeviceGetCount(&devices);
        for (int peer = 0; peer < devices; peer++)
                copy_access(handle, model, peer);
}
