/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks -- the exported functions, all of them
 *
 * One body per row of entry_points.def. In the order of the questions it asks:
 *
 *   1. Has the shim begun? Normally yes, and this costs one load. Before that,
 *      find the driver and, if somebody initialised it unseen, begin now.
 *   2. Does the driver have the function? If not, say so as a driver would.
 *   3. Whose call is it: the handler's, or the driver's, untouched?
 *
 * What submits work has no handler: a launch has 5 ns to spare. It is noted in line, and called
 * once more if memory was short.
 *
 * The functions that find and start the driver always have a handler: they are
 * how the shim begins.
 */

#include <assert.h>
#include <stdbool.h>

#include "base/life.h"
#include "base/lock.h"
#include "driver/driver.h"
#include "route/arguments.h"
#include "route/order.h"
#include "route/perform.h"
#include "route/route.h"
#include "route/uses.h"
#include "track/record.h"
#include "track/stack.h"
#include "track/submit.h"

/* Stream 0 means one of two streams, by the variant of the function that was called; from the
 * handler on it is explicit. The two handles are NVIDIA's (cuda.h, CU_STREAM_LEGACY). */
#define legacy(stream) ((stream) ? (stream) : CU_STREAM_LEGACY)
#define own(stream)    ((stream) ? (stream) : CU_STREAM_PER_THREAD)

/* A launch names its stream in a structure of the program's, so it gets another one. */
static const CUlaunchConfig *launch_on(CUstream stream, const CUlaunchConfig *config,
                                       CUlaunchConfig *changed)
{
        if (!config || config->hStream)
                return config;
        *changed = *config;
        changed->hStream = stream;
        return changed;
}

#define legacy_launch(config) launch_on(CU_STREAM_LEGACY, config, &(CUlaunchConfig){0})
#define own_launch(config)    launch_on(CU_STREAM_PER_THREAD, config, &(CUlaunchConfig){0})

/* Rows in front of this one find and start the driver. */
#define STARTS(entry) ((entry) < SP_ENTRY_cuMemAlloc_v2)

/* Step 1 where the shim has not begun. Return: does the handler take the call? */
static SP_COLD bool prepare(bool starts)
{
        int count;

        if (!sp_driver_load())
                return false;
        if (starts)
                return true;
        /* Only an initialised driver can count its devices; it does so anywhere, also in a
         * capture. */
        return sp_life_state() == SP_LIFE_NEW && sp_driver.cuDeviceGetCount &&
               sp_driver.cuDeviceGetCount(&count) == CUDA_SUCCESS && sp_life_start();
}

/* Step 2 where the driver has nothing to call. The stub library of the CUDA toolkit answers the
 * first when there is no driver. */
static SP_COLD CUresult refuse(void)
{
        return sp_driver_is_loaded() ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_STUB_LIBRARY;
}

/* Only calls that obtain memory or give it back have their stack taken: nobody asks for that of
 * others. It is taken in a function of its own, so that the usual way has nothing to remember. */
#define BEGINS(symbol, with) (__builtin_strncmp(#symbol, with, sizeof(with) - 1) == 0)
#define KEEPS_STACK(symbol)                                                                        \
        ((BEGINS(symbol, "cuMem") && !BEGINS(symbol, "cuMemGet")) || BEGINS(symbol, "cuArray") ||  \
         BEGINS(symbol, "cuMipmapped") || BEGINS(symbol, "cuIpc"))

#include "route/record.def"

/* Of a submission: its row, or @otherwise if it has none. Then the name is no macro. */
#define SECOND(name, second, ...)          second
#define PICK(...)                          SECOND(__VA_ARGS__)
#define RECORD_OR(symbol, args, otherwise) PICK(RECORD_##symbol args, otherwise, 0)

/* Of calls for memory every one has its place asked for when there is a recording. */
#define IS_ATTENDED(symbol, args)                                                                  \
        (KEEPS_STACK(symbol) ? sp_stack_is_kept(sp_caller)                                         \
                             : sp_record_is_on && (RECORD_##symbol args).kind)

#define SP_EACH_HOOK(api, symbol, since, suffix, params, raw_args, args)                           \
        static SP_COLD CUresult attended_##symbol##suffix params                                   \
        {                                                                                          \
                struct sp_record_call line = RECORD_##symbol args;                                 \
                CUresult result;                                                                   \
                                                                                                   \
                if (KEEPS_STACK(symbol))                                                           \
                        sp_caller = sp_stack_take(sp_caller);                                      \
                if (sp_record_is_on)                                                               \
                        sp_record_begin(&line);                                                    \
                result = sp_on_##symbol args;                                                      \
                if (sp_record_is_on)                                                               \
                        sp_record_end(&line, result);                                              \
                return result;                                                                     \
        }                                                                                          \
        CUresult CUDAAPI symbol##suffix params                                                     \
        {                                                                                          \
                const bool starts = STARTS(SP_ENTRY_##symbol##suffix);                             \
                bool handled = sp_life_has_begun() || prepare(starts);                             \
                                                                                                   \
                assert(sp_lock_held() == SP_RANK_NONE);                                            \
                if (!sp_driver.symbol##suffix)                                                     \
                        return refuse();                                                           \
                sp_caller = __builtin_return_address(0);                                           \
                if (handled && IS_ATTENDED(symbol, args))                                          \
                        return attended_##symbol##suffix raw_args;                                 \
                return handled ? sp_on_##symbol args : sp_driver.symbol##suffix raw_args;          \
        }
#define SP_EACH_RETRY(api, symbol, since, suffix, params, raw_args)                                \
        CUresult CUDAAPI symbol##suffix params                                                     \
        {                                                                                          \
                bool handled = sp_life_has_begun() || prepare(false);                              \
                CUresult result;                                                                   \
                                                                                                   \
                assert(sp_lock_held() == SP_RANK_NONE);                                            \
                if (!sp_driver.symbol##suffix)                                                     \
                        return refuse();                                                           \
                sp_caller = __builtin_return_address(0);                                           \
                result = sp_driver.symbol##suffix raw_args;                                        \
                if (result == CUDA_ERROR_OUT_OF_MEMORY && handled && sp_relieve())                 \
                        result = sp_driver.symbol##suffix raw_args;                                \
                return result;                                                                     \
        }

#include "route/uses.def"

#include "route/arguments.def"

/* What a launch or a copy is given is looked at on request, before the driver hears of it, and so
 * is the order of all that is submitted. */
#define IS_LOOKED_AT_LAUNCH sp_launches_are_looked_at
#define IS_LOOKED_AT_COPY   sp_uses_are_looked_at
#define LOOK_LAUNCH(symbol, target)                                                                \
        do {                                                                                       \
                if (sp_arguments_are_looked_at)                                                    \
                        ARGUMENTS_##symbol(target);                                                \
        } while (0)
#define LOOK_COPY(symbol, target) USES_##symbol

/* The second try, and the one that is looked at, are functions of their own: the first one has
 * nothing to remember for them. */
#define SP_EACH_SUBMIT(api, symbol, since, suffix, kind, params, raw_args, target)                 \
        static inline CUresult submit_##symbol##suffix params                                      \
        {                                                                                          \
                struct sp_submitter *self = sp_submit_enter();                                     \
                CUresult result;                                                                   \
                                                                                                   \
                sp_submit_mark(target, SP_SUBMIT_##kind);                                          \
                result = sp_driver.symbol##suffix raw_args;                                        \
                sp_submit_leave(self);                                                             \
                return result;                                                                     \
        }                                                                                          \
        static SP_COLD CUresult resubmit_##symbol##suffix params                                   \
        {                                                                                          \
                return submit_##symbol##suffix raw_args;                                           \
        }                                                                                          \
        static SP_COLD CUresult looked_at_##symbol##suffix params                                  \
        {                                                                                          \
                const char *const called = #api;                                                   \
                const struct sp_record_call line = RECORD_OR(symbol, raw_args, WORK(target));      \
                struct sp_order_call call;                                                         \
                CUresult result;                                                                   \
                                                                                                   \
                if (sp_order_is_on)                                                                \
                        sp_order_begin(&call, called, target);                                     \
                LOOK_##kind(symbol, target);                                                       \
                result = resubmit_##symbol##suffix raw_args;                                       \
                if (result == CUDA_ERROR_OUT_OF_MEMORY && sp_relieve())                            \
                        result = resubmit_##symbol##suffix raw_args;                               \
                if (sp_order_is_on)                                                                \
                        sp_order_end(&call, result);                                               \
                if (sp_record_is_on)                                                               \
                        sp_record_end(&line, result);                                              \
                return result;                                                                     \
        }                                                                                          \
        CUresult CUDAAPI symbol##suffix params                                                     \
        {                                                                                          \
                CUresult result;                                                                   \
                                                                                                   \
                assert(sp_lock_held() == SP_RANK_NONE);                                            \
                if (!sp_life_has_begun() && !prepare(false))                                       \
                        return sp_driver.symbol##suffix ? sp_driver.symbol##suffix raw_args        \
                                                        : refuse();                                \
                if (!sp_driver.symbol##suffix)                                                     \
                        return refuse();                                                           \
                if (IS_LOOKED_AT_##kind) {                                                         \
                        sp_caller = __builtin_return_address(0);                                   \
                        return looked_at_##symbol##suffix raw_args;                                \
                }                                                                                  \
                result = submit_##symbol##suffix raw_args;                                         \
                if (result == CUDA_ERROR_OUT_OF_MEMORY && sp_relieve())                            \
                        return resubmit_##symbol##suffix raw_args;                                 \
                return result;                                                                     \
        }
#include "driver/entry_points.def"
