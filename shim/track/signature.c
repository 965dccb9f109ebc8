/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Signature -- which parameters of a kernel have the size of an address?
 *
 * A launch takes a CUfunction or a CUkernel, and does not say which. The driver is
 * asked by cuFuncGetParamInfo first, which answers a kernel with "invalid handle";
 * only then it is asked by cuKernelGetParamInfo. So neither is given what the
 * driver itself has not told apart. Past the last parameter both answer "invalid
 * value". Any other answer is about something else, and is not remembered.
 *
 * What is remembered is of one generation: the next one begins before a module, a
 * library or a context ends, whose handles may be given out again. A table that is full is emptied:
 * what is in use is soon there again.
 */

#include "track/signature.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/table.h"

#define FUNCTIONS  4096
#define PARAMETERS 4096 /* of one kernel; the driver's limit is in bytes */
#define NAMES      256  /* of different kernels, in findings */
#define NAME_MAX   1024

struct known {
        CUfunction function;
        unsigned int generation;
        unsigned int count;
        UT_hash_handle hh;
        struct sp_signature_word word[];
};

static struct sp_lock lock = SP_LOCK_INIT(SP_RANK_KERNEL);

/* Guarded by: lock. */
static struct known *functions;
static const char *names[NAMES];

/* Atomic. */
static atomic_uint generation;

/* what is remembered */

static void drop_locked(struct known *known)
{
        HASH_DEL(functions, known);
        free(known);
}

static bool find_locked(CUfunction function, unsigned int now, struct sp_signature *signature)
{
        struct known *known;

        HASH_FIND_PTR(functions, &function, known);
        if (!known)
                return false;
        if (known->generation != now) {
                drop_locked(known);
                return false;
        }
        signature->count = known->count;
        memcpy(signature->word, known->word, known->count * sizeof(known->word[0]));
        return true;
}

static void make_room_locked(void)
{
        struct known *known, *next;

        if (HASH_COUNT(functions) < FUNCTIONS)
                return;
        HASH_ITER (hh, functions, known, next) {
                drop_locked(known);
        }
}

/* Another thread may have added it meanwhile, of this generation or of the one before. */
static void add_locked(struct known *added)
{
        struct known *known;

        HASH_FIND_PTR(functions, &added->function, known);
        if (known)
                drop_locked(known);
        make_room_locked();
        HASH_ADD_PTR(functions, function, added);
        if (!added->hh.tbl)
                free(added);
}

static void remember(CUfunction function, unsigned int now, const struct sp_signature *signature)
{
        size_t bytes = signature->count * sizeof(signature->word[0]);
        struct known *added = malloc(sizeof(*added) + bytes);

        if (!added)
                return;
        added->function = function;
        added->generation = now;
        added->count = signature->count;
        memcpy(added->word, signature->word, bytes);
        sp_lock_take(&lock);
        add_locked(added);
        sp_lock_drop(&lock);
}

void sp_signature_forget(void)
{
        atomic_fetch_add(&generation, 1);
}

/* what the driver says */

#if CUDA_VERSION >= 12040
bool sp_signature_is_told(void)
{
        return sp_driver.cuFuncGetParamInfo != NULL;
}

static CUresult ask(CUfunction function, bool is_kernel, size_t index, size_t *offset, size_t *size)
{
        return is_kernel ? sp_driver.cuKernelGetParamInfo((CUkernel)function, index, offset, size)
                         : sp_driver.cuFuncGetParamInfo(function, index, offset, size);
}

static void add_word(struct sp_signature *signature, size_t index, size_t offset)
{
        if (signature->count == SP_SIGNATURE_WORDS || offset > UINT16_MAX)
                return;
        signature->word[signature->count++] = (struct sp_signature_word){
                .number = (uint16_t)(index + 1),
                .offset = (uint16_t)offset,
        };
}

static bool describe(CUfunction function, struct sp_signature *signature)
{
        size_t index = 0, offset, size;
        CUresult result = ask(function, false, 0, &offset, &size);
        bool is_kernel = result == CUDA_ERROR_INVALID_HANDLE && sp_driver.cuKernelGetParamInfo;

        if (is_kernel)
                result = ask(function, true, 0, &offset, &size);
        signature->count = 0;
        while (result == CUDA_SUCCESS && index < PARAMETERS) {
                if (size == sizeof(CUdeviceptr))
                        add_word(signature, index, offset);
                result = ask(function, is_kernel, ++index, &offset, &size);
        }
        return result == CUDA_SUCCESS || result == CUDA_ERROR_INVALID_VALUE;
}

static const char *name_of(CUfunction function)
{
        const char *name = NULL;
        CUresult result = CUDA_ERROR_NOT_SUPPORTED;

        if (sp_driver.cuFuncGetName)
                result = sp_driver.cuFuncGetName(&name, function);
        if (result == CUDA_ERROR_INVALID_HANDLE && sp_driver.cuKernelGetName)
                result = sp_driver.cuKernelGetName(&name, (CUkernel)function);
        return result == CUDA_SUCCESS ? name : NULL;
}
#else
bool sp_signature_is_told(void)
{
        return false;
}

static bool describe(CUfunction function, struct sp_signature *signature)
{
        (void)function, (void)signature;
        return false;
}

static const char *name_of(CUfunction function)
{
        (void)function;
        return NULL;
}
#endif

bool sp_signature_of(CUfunction function, struct sp_signature *signature)
{
        unsigned int now = atomic_load(&generation);
        bool found;

        sp_lock_take(&lock);
        found = find_locked(function, now, signature);
        sp_lock_drop(&lock);
        if (found)
                return true;
        if (!sp_signature_is_told() || !describe(function, signature))
                return false;
        remember(function, now, signature);
        return true;
}

/* names */

/* Equal names are one, and stay: findings point to them. */
static const char *keep_locked(const char *name)
{
        size_t i = 0;

        while (i < NAMES && names[i] && strncmp(names[i], name, NAME_MAX) != 0)
                i++;
        if (i == NAMES)
                return NULL;
        if (!names[i])
                names[i] = strndup(name, NAME_MAX);
        return names[i];
}

const char *sp_signature_name(CUfunction function)
{
        const char *name = name_of(function);
        const char *kept;

        if (!name)
                return NULL;
        sp_lock_take(&lock);
        kept = keep_locked(name);
        sp_lock_drop(&lock);
        return kept;
}
