/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Context -- which context, on which device, and with which pools
 *
 * A record is made outside the lock, because that takes driver calls, and then
 * told to the model and published under it; of two threads that make the same
 * one the second drops its own, of which the model has not heard.
 */

#include "track/context.h"

#include <sched.h>
#include <stdlib.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/occasion.h"
#include "track/mempool.h"
#include "track/pools.h"
#include "track/state.h"

/* Guarded by: table_lock. Both lists only grow, newest first. */
static struct sp_context *_Atomic contexts;
static struct sp_device *_Atomic devices;

/* Guarded by: table_lock. Ends under way, and how many there were. */
static struct sp_ending *endings;
static atomic_uint endings_begun;
static atomic_bool has_unseen_green; /* one that had no record when it was said to be green */
static struct sp_lock table_lock = SP_LOCK_INIT(SP_RANK_CONTEXT);

atomic_uint sp_primaries_down;

struct sp_context *sp_context_each(struct sp_context *context)
{
        return context ? context->next : atomic_load(&contexts);
}

struct sp_device *sp_device_each(struct sp_device *device)
{
        return device ? device->next : atomic_load(&devices);
}

struct sp_device *sp_device_of_ordinal(int ordinal)
{
        struct sp_device *device = NULL;

        while ((device = sp_device_each(device)) && device->ordinal != ordinal)
                ;
        return device;
}

/* devices */

static bool has(CUdevice ordinal, CUdevice_attribute attribute)
{
        int value = 0;

        return sp_driver.cuDeviceGetAttribute &&
               sp_driver.cuDeviceGetAttribute(&value, attribute, ordinal) == CUDA_SUCCESS && value;
}

static bool has_vmm_calls(void)
{
        return sp_driver.cuMemCreate && sp_driver.cuMemRelease && sp_driver.cuMemAddressReserve &&
               sp_driver.cuMemAddressFree && sp_driver.cuMemMap && sp_driver.cuMemUnmap &&
               sp_driver.cuMemSetAccess;
}

static struct sp_device *make_device(CUdevice ordinal)
{
        struct sp_device *device = calloc(1, sizeof(*device));

        if (!device)
                return NULL;
        device->ordinal = ordinal;
        if (sp_driver.cuDeviceTotalMem_v2)
                sp_driver.cuDeviceTotalMem_v2(&device->total_bytes, ordinal);
        device->has_vmm = has_vmm_calls() &&
                          has(ordinal, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
        device->has_rdma_vmm =
                has(ordinal, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
        device->has_shareable_vmm =
                sp_driver.cuMemExportToShareableHandle &&
                has(ordinal, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
        if (!sp_driver.cuDeviceGetDefaultMemPool ||
            !has(ordinal, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) ||
            sp_driver.cuDeviceGetDefaultMemPool(&device->default_pool, ordinal) != CUDA_SUCCESS)
                device->default_pool = NULL;
        sp_pools_prepare_async(device);
        return device;
}

static void discard_device(struct sp_device *device)
{
        sp_range_leave(&device->range);
        free(device);
}

static struct sp_device *device_of(CUdevice ordinal)
{
        struct sp_device *device = sp_device_of_ordinal(ordinal), *made;

        if (device)
                return device;
        made = make_device(ordinal);
        if (!made)
                return NULL;
        sp_lock_take(&table_lock);
        device = sp_device_of_ordinal(ordinal);
        if (!device) {
                device = made;
                sp_pools_make_async(device);
                device->next = atomic_load(&devices);
                atomic_store(&devices, device);
                made = NULL;
        }
        sp_lock_drop(&table_lock);
        if (made)
                discard_device(made);
        else
                sp_mempool_start_default(device);
        return device;
}

/* contexts */

static unsigned long long id_of(CUcontext handle)
{
        unsigned long long id = 0;

        /* Without ids (drivers before 12.0) the hooked destroy and reset calls tell lives apart.
         * With them, 0 is none: the context is gone. */
        if (sp_driver.cuCtxGetId && sp_driver.cuCtxGetId(handle, &id) != CUDA_SUCCESS)
                id = 0;
        return id;
}

static struct sp_context *find(CUcontext handle, unsigned long long id)
{
        struct sp_context *context = NULL;

        while ((context = sp_context_each(context)))
                if (context->handle == handle && context->id == id &&
                    !atomic_load_explicit(&context->gone, memory_order_acquire))
                        break;
        return context;
}

/*
 * Where the host has no memory for all of it, nothing remains. What a program launches on is not
 * always followed (captures, before the start), so every context may have streams that wait for its
 * legacy one unheard of: each thread has one by itself (H6).
 */
static bool add_to_model(struct sp_context *context)
{
        struct spm_model *model = sp_model_enter();
        bool done = spm_context_add(model, context->device->ordinal, &context->model) == SPM_OK &&
                    spm_context_hide(model, context->model) == SPM_OK &&
                    spm_stream_add(model, context->model, SPM_STREAM_LEGACY, &context->legacy) ==
                            SPM_OK;
        struct spm_actions none;

        sp_model_leave();
        if (done && sp_pools_make_sync(context))
                return true;
        spm_context_remove(sp_model_enter(), context->model, &none);
        sp_model_leave();
        return false;
}

/* Retaining an active primary context and releasing it again changes nothing. */
static bool is_primary(CUcontext handle, CUdevice ordinal)
{
        unsigned int flags;
        int active = 0;
        CUcontext primary = NULL;

        if (sp_driver.cuDevicePrimaryCtxGetState(ordinal, &flags, &active) != CUDA_SUCCESS ||
            !active || sp_driver.cuDevicePrimaryCtxRetain(&primary, ordinal) != CUDA_SUCCESS)
                return false;
        if (sp_driver.cuDevicePrimaryCtxRelease_v2)
                sp_driver.cuDevicePrimaryCtxRelease_v2(ordinal);
        else
                sp_driver.cuDevicePrimaryCtxRelease(ordinal);
        return primary == handle;
}

static void discard(struct sp_context *context)
{
        if (!context)
                return;
        sp_range_leave(&context->range);
        free(context);
}

static struct sp_context *make_context(CUcontext handle, unsigned long long id)
{
        struct sp_context *context = calloc(1, sizeof(*context));
        CUcontext popped;
        CUdevice ordinal;
        CUresult result;

        if (!context)
                return NULL;
        context->handle = handle;
        context->id = id;
        sp_stamper_init(&context->stamper, handle);
        result = sp_driver.cuCtxPushCurrent_v2(handle);
        if (result == CUDA_SUCCESS) {
                size_t unused, total;

                /* A primary context that was reset can be pushed and asked for its id and device,
                 * but not for this; and this is legal while something captures. */
                result = sp_driver.cuMemGetInfo_v2(&unused, &total);
                if (result == CUDA_SUCCESS)
                        result = sp_driver.cuCtxGetDevice(&ordinal);
                sp_driver.cuCtxPopCurrent_v2(&popped);
        }
        context->device = result == CUDA_SUCCESS ? device_of(ordinal) : NULL;
        if (!context->device) {
                discard(context);
                return NULL;
        }
        sp_pools_prepare_sync(context);
        context->is_primary = is_primary(handle, ordinal);
        atomic_store(&context->forward_only,
                     !context->is_primary && atomic_load(&has_unseen_green));
        return context;
}

/* Each side first counts itself and then looks at the other, so one of them sees the other. */
bool sp_context_enter(struct sp_context *context)
{
        atomic_fetch_add(&context->users, 1);
        if (!atomic_load(&context->ending) && !atomic_load(&context->gone))
                return true;
        sp_context_leave(context);
        return false;
}

void sp_context_leave(struct sp_context *context)
{
        atomic_fetch_sub(&context->users, 1);
}

void sp_context_begin_end(struct sp_context *context)
{
        atomic_fetch_add(&context->ending, 1);
        sp_epoch_end();
        while (atomic_load(&context->users))
                sched_yield();
}

bool sp_context_finish_end(struct sp_context *context, bool ended)
{
        bool first = ended && !atomic_exchange(&context->gone, true);

        atomic_fetch_sub(&context->ending, 1);
        return first;
}

void sp_ending_begin(struct sp_ending *ending)
{
        sp_lock_take(&table_lock);
        ending->next = endings;
        endings = ending;
        atomic_fetch_add(&endings_begun, 1);
        sp_lock_drop(&table_lock);
}

void sp_ending_finish(struct sp_ending *ending)
{
        struct sp_ending **at = &endings;

        sp_lock_take(&table_lock);
        while (*at != ending)
                at = &(*at)->next;
        *at = ending->next;
        sp_lock_drop(&table_lock);
}

static bool may_be_ending_locked(const struct sp_context *context)
{
        const struct sp_ending *ending = endings;

        while (ending && (ending->handle ? ending->handle != context->handle
                                         : ending->ordinal != context->device->ordinal))
                ending = ending->next;
        return ending;
}

/* Only a driver that says so: a question that fails for another reason answers nothing. */
bool sp_context_lives(const struct sp_context *context)
{
        unsigned long long id = 0;
        CUresult result = CUDA_SUCCESS;

        if (!context)
                return false;
        if (sp_driver.cuCtxGetId)
                result = sp_driver.cuCtxGetId(context->handle, &id);
        if (result == CUDA_SUCCESS)
                return id == context->id;
        return result != CUDA_ERROR_INVALID_CONTEXT && result != CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

struct sp_context *sp_context_of(CUcontext handle)
{
        unsigned int begun = atomic_load(&endings_begun);
        unsigned long long id = id_of(handle);
        struct sp_context *context = find(handle, id), *made;

        if (context || (!id && sp_driver.cuCtxGetId))
                return context;
        made = make_context(handle, id);
        if (!made)
                return NULL;
        sp_lock_take(&table_lock);
        context = find(handle, id);
        if (!context && begun == atomic_load(&endings_begun) && !may_be_ending_locked(made) &&
            add_to_model(made)) {
                context = made;
                context->next = atomic_load(&contexts);
                atomic_store(&contexts, context);
                if (context->is_primary && atomic_exchange(&context->device->primary_down, false))
                        atomic_fetch_sub(&sp_primaries_down, 1);
                made = NULL;
        }
        sp_lock_drop(&table_lock);
        discard(made);
        return context;
}

struct sp_context *sp_context_find(CUcontext handle)
{
        return find(handle, id_of(handle));
}

void sp_context_note_green(CUcontext handle)
{
        struct sp_context *context = sp_context_of(handle);

        if (context)
                atomic_store(&context->forward_only, true);
        else
                atomic_store(&has_unseen_green, true);
}

bool sp_context_may_be_green(void)
{
        return atomic_load(&has_unseen_green);
}

/*
 * What this thread saw last: its id need not be asked for again while no context has begun to end.
 * Thread-local, so that it is right without a lock; initial-exec, so that reading it never
 * allocates.
 */
struct seen {
        CUcontext handle;
        struct sp_context *context;
        unsigned int endings;
};
static _Thread_local struct seen seen __attribute__((tls_model("initial-exec")));

struct sp_context *sp_context_current(void)
{
        struct sp_context *context;
        unsigned int begun;
        CUcontext handle = NULL;

        if (sp_driver.cuCtxGetCurrent(&handle) != CUDA_SUCCESS || !handle)
                return NULL;
        begun = atomic_load(&endings_begun);
        if (handle == seen.handle && seen.endings == begun && !atomic_load(&seen.context->gone))
                return seen.context;
        context = sp_context_of(handle);
        if (context)
                seen = (struct seen){handle, context, begun};
        return context;
}

struct sp_context *sp_context_by_model(spm_context model)
{
        struct sp_context *context = NULL;

        while ((context = sp_context_each(context)) && context->model != model)
                ;
        return context;
}

struct sp_context *sp_context_by_pool(spm_pool pool)
{
        struct sp_context *context = NULL;

        while ((context = sp_context_each(context)) && context->sync_pool != pool)
                ;
        return context;
}

/* Codes after which a context only ever fails: cuda.h calls them unrecoverable ("the process must
 * be terminated and relaunched"), or it is gone. */
static bool is_sticky(CUresult result)
{
        switch ((int)result) {
        case CUDA_ERROR_DEINITIALIZED:
        case CUDA_ERROR_ECC_UNCORRECTABLE:
        case CUDA_ERROR_NVLINK_UNCORRECTABLE:
        case CUDA_ERROR_ILLEGAL_ADDRESS:
        case CUDA_ERROR_LAUNCH_TIMEOUT:
        case CUDA_ERROR_CONTEXT_IS_DESTROYED:
        case CUDA_ERROR_ASSERT:
        case CUDA_ERROR_HARDWARE_STACK_ERROR:
        case CUDA_ERROR_ILLEGAL_INSTRUCTION:
        case CUDA_ERROR_MISALIGNED_ADDRESS:
        case CUDA_ERROR_INVALID_ADDRESS_SPACE:
        case CUDA_ERROR_INVALID_PC:
        case CUDA_ERROR_LAUNCH_FAILED:
        case CUDA_ERROR_EXTERNAL_DEVICE:
                return true;
        default:
                return false;
        }
}

void sp_context_note_result(struct sp_context *context, CUresult result)
{
        if (!context || result == CUDA_SUCCESS || !is_sticky(result))
                return;
        /* Destroyed by another thread: that thread says so. */
        if (atomic_load(&context->ending) || atomic_load(&context->gone))
                return;
        if (!atomic_exchange(&context->poisoned, true)) {
                sp_epoch_end();
                sp_occasion_ask(SP_OCCASION_ERROR);
                sp_log(SP_LOG_WARNING,
                       "context %llu failed with %d: its memory is left to the driver", context->id,
                       (int)result);
        }
}
