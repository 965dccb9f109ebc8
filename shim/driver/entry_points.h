/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_ENTRY_POINTS_H
#define SP_ENTRY_POINTS_H

/*
 * Entry points -- what the shim exports, and the handler behind each export
 *
 * Everything here is made from entry_points.def: an index per function, the
 * prototypes of our exports and of their handlers. All have the driver's own
 * types, so a row with a wrong version, a wrong suffix or wrong parameters does
 * not compile.
 *
 * cuda.h renames functions (cuMemAlloc means cuMemAlloc_v2), which a table of
 * exported names cannot have. __CUDA_API_VERSION_INTERNAL is NVIDIA's switch for
 * that: no renames, and prototypes of every version. This file has to come
 * before any other include of cuda.h.
 */

#if defined(__cuda_cuda_h__) && !defined(__CUDA_API_VERSION_INTERNAL)
#error "include driver/entry_points.h (or driver/driver.h) before cuda.h"
#endif
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL 1
#endif

#include <cuda.h>
#include <cudaTypedefs.h>

#if CUDA_VERSION < 11080
#error "the CUDA headers are older than 11.8"
#endif

/* Headers before 13.0 keep a few names as macros of themselves. */
#undef cuCtxCreate_v3
#undef cuCtxCreate_v4

#include "driver/cuda_11.h"

#define SP_EXPORT __attribute__((visibility("default")))

/*
 * One gate per version in which a function of the table appeared. A gate lets
 * its row through if the headers know that version.
 */
#define SP_SINCE_2000(...)  __VA_ARGS__
#define SP_SINCE_2010(...)  __VA_ARGS__
#define SP_SINCE_2020(...)  __VA_ARGS__
#define SP_SINCE_2030(...)  __VA_ARGS__
#define SP_SINCE_3000(...)  __VA_ARGS__
#define SP_SINCE_3020(...)  __VA_ARGS__
#define SP_SINCE_4000(...)  __VA_ARGS__
#define SP_SINCE_4010(...)  __VA_ARGS__
#define SP_SINCE_5000(...)  __VA_ARGS__
#define SP_SINCE_5050(...)  __VA_ARGS__
#define SP_SINCE_6000(...)  __VA_ARGS__
#define SP_SINCE_6050(...)  __VA_ARGS__
#define SP_SINCE_7000(...)  __VA_ARGS__
#define SP_SINCE_8000(...)  __VA_ARGS__
#define SP_SINCE_9000(...)  __VA_ARGS__
#define SP_SINCE_9020(...)  __VA_ARGS__
#define SP_SINCE_10000(...) __VA_ARGS__
#define SP_SINCE_10010(...) __VA_ARGS__
#define SP_SINCE_10020(...) __VA_ARGS__
#define SP_SINCE_11000(...) __VA_ARGS__
#define SP_SINCE_11010(...) __VA_ARGS__
#define SP_SINCE_11020(...) __VA_ARGS__
#define SP_SINCE_11030(...) __VA_ARGS__
#define SP_SINCE_11040(...) __VA_ARGS__
#define SP_SINCE_11060(...) __VA_ARGS__
#define SP_SINCE_11070(...) __VA_ARGS__

/* With the headers of CUDA 11, by cuda_11.h. */
#define SP_SINCE_12000(...) __VA_ARGS__

#if CUDA_VERSION >= 12010
#define SP_SINCE_12010(...) __VA_ARGS__
#else
#define SP_SINCE_12010(...)
#endif

#if CUDA_VERSION >= 12020
#define SP_SINCE_12020(...) __VA_ARGS__
#else
#define SP_SINCE_12020(...)
#endif

#if CUDA_VERSION >= 12030
#define SP_SINCE_12030(...) __VA_ARGS__
#else
#define SP_SINCE_12030(...)
#endif

#if CUDA_VERSION >= 12040
#define SP_SINCE_12040(...) __VA_ARGS__
#else
#define SP_SINCE_12040(...)
#endif

#if CUDA_VERSION >= 12050
#define SP_SINCE_12050(...) __VA_ARGS__
#else
#define SP_SINCE_12050(...)
#endif

#if CUDA_VERSION >= 12060
#define SP_SINCE_12060(...) __VA_ARGS__
#else
#define SP_SINCE_12060(...)
#endif

#if CUDA_VERSION >= 12080
#define SP_SINCE_12080(...) __VA_ARGS__
#else
#define SP_SINCE_12080(...)
#endif

#if CUDA_VERSION >= 13000
#define SP_SINCE_13000(...) __VA_ARGS__
#else
#define SP_SINCE_13000(...)
#endif

#if CUDA_VERSION >= 13010
#define SP_SINCE_13010(...) __VA_ARGS__
#else
#define SP_SINCE_13010(...)
#endif

#if CUDA_VERSION >= 13020
#define SP_SINCE_13020(...) __VA_ARGS__
#else
#define SP_SINCE_13020(...)
#endif

#if CUDA_VERSION >= 13050
#define SP_SINCE_13050(...) __VA_ARGS__
#else
#define SP_SINCE_13050(...)
#endif

/* The rows of entry_points.def: each goes through its gate. */
#define SP_HOOK(api, symbol, since, suffix, params, raw_args, args)                                \
        SP_SINCE_##since(SP_EACH_HOOK(api, symbol, since, suffix, params, raw_args, args))
#define SP_RETRY(api, symbol, since, suffix, params, raw_args)                                     \
        SP_SINCE_##since(SP_EACH_RETRY(api, symbol, since, suffix, params, raw_args))
#define SP_SUBMIT(api, symbol, since, suffix, kind, params, raw_args, stream)                      \
        SP_SINCE_##since(SP_EACH_SUBMIT(api, symbol, since, suffix, kind, params, raw_args, stream))
#define SP_CALL(api, symbol, since, suffix)                                                        \
        SP_SINCE_##since(SP_EACH_CALL(api, symbol, since, suffix))

/* The driver's type of a row's function. */
#define SP_TYPE(api, since, suffix) __typeof__(*(PFN_##api##_v##since##suffix)0)

/* An index per row, in table order: SP_ENTRY_cuMemAllocAsync_ptsz. */
enum sp_entry {
#define SP_EACH_HOOK(api, symbol, since, suffix, params, raw_args, args) SP_ENTRY_##symbol##suffix,
#define SP_EACH_RETRY(api, symbol, since, suffix, params, raw_args)      SP_ENTRY_##symbol##suffix,
#define SP_EACH_SUBMIT(api, symbol, since, suffix, kind, params, raw_args, stream)                 \
        SP_ENTRY_##symbol##suffix,
#define SP_EACH_CALL(api, symbol, since, suffix) SP_ENTRY_##symbol##suffix,
#include "driver/entry_points.def"
        SP_ENTRY_COUNT
};

/* What the shim exports. */
#define SP_EACH_HOOK(api, symbol, since, suffix, params, raw_args, args)                           \
        SP_EXPORT extern SP_TYPE(api, since, suffix) symbol##suffix;
#define SP_EACH_RETRY(api, symbol, since, suffix, params, raw_args)                                \
        SP_EXPORT extern SP_TYPE(api, since, suffix) symbol##suffix;
#define SP_EACH_SUBMIT(api, symbol, since, suffix, kind, params, raw_args, stream)                 \
        SP_EXPORT extern SP_TYPE(api, since, suffix) symbol##suffix;
#include "driver/entry_points.def"

/* The handler behind each SP_HOOK row, one for the plain and the per-thread name. */
#define SP_EACH_HOOK(api, symbol, since, suffix, params, raw_args, args)                           \
        extern SP_TYPE(api, since, suffix) sp_on_##symbol;
#include "driver/entry_points.def"

#endif
