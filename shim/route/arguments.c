/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Arguments -- is a kernel given the address of memory that was freed?
 *
 * Of what a kernel does with its arguments nothing is seen, so what is found here
 * is told as what it is: an argument, and no proven access. To be wrong would be
 * worse than to miss one, so this is looked at, and nothing else:
 *
 *   - Parameters of exactly eight bytes. Words inside of larger structures may be
 *     padding, or places that nobody uses, in which an old address is no mistake.
 *   - Values that are inside of a block that was freed, as long as its free is
 *     remembered, and where nothing is now. An address behind the end of a block,
 *     or in memory of a pool that no block is known to have had, says nothing.
 *   - The end of a block that lives is no address of the freed block that begins
 *     there, if the kernel is given an address in the block that lives, too.
 *
 * What is not seen: addresses that a kernel finds in memory or in constants,
 * kernels in graphs, launches while anything captures, and the parameters of
 * functions that the driver does not describe. A number of eight bytes that by
 * chance is an address of a freed block is taken for it. The order is that of the
 * calls, as for copies (route/uses.c).
 *
 * Arguments are read where the driver reads them, moments before it does.
 */

#include "route/arguments.h"

#include <string.h>

#include "base/config.h"
#include "base/log.h"
#include "route/order.h"
#include "route/uses.h"
#include "track/signature.h"

/* Most numbers are no addresses: no device has memory in the first 4 GiB, where unified addressing
 * leaves room for what has 32 bits, and none where no processor can reach. */
#define LOWEST  ((uint64_t)1 << 32)
#define HIGHEST ((uint64_t)1 << 57)

bool sp_arguments_are_looked_at;
bool sp_launches_are_looked_at;

void sp_arguments_start(void)
{
        if (!(sp_config()->check & SP_CHECK_ARGUMENTS))
                return;
        sp_arguments_are_looked_at = sp_signature_is_told();
        if (!sp_arguments_are_looked_at)
                sp_log(SP_LOG_WARNING, "STREAMPOOL_CHECK=arguments: this driver, or the shim's "
                                       "CUDA headers, cannot describe the parameters of kernels "
                                       "(CUDA 12.4); no arguments are looked at");
}

/* reading */

/* One launch, and the values of its parameters of eight bytes. */
struct launch {
        const char *called;
        CUfunction function;
        CUstream stream;
        struct sp_signature signature;
        uint64_t value[SP_SIGNATURE_WORDS]; /* 0 where there is none */
};

static void read_each(struct launch *launch, void *const *params)
{
        for (unsigned int i = 0; i < launch->signature.count; i++) {
                const void *from = params[launch->signature.word[i].number - 1];

                launch->value[i] = 0;
                if (from)
                        memcpy(&launch->value[i], from, sizeof(launch->value[i]));
        }
}

struct buffer {
        const char *bytes;
        size_t size;
};

/* Pairs of a name and a value. Behind a name that is not known, nothing is. */
static struct buffer buffer_of(void *const *extra)
{
        struct buffer buffer = {0};

        for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
                if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
                        buffer.bytes = extra[1];
                else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1])
                        memcpy(&buffer.size, extra[1], sizeof(buffer.size));
                else
                        break;
        }
        return buffer;
}

static void read_buffer(struct launch *launch, struct buffer buffer)
{
        for (unsigned int i = 0; i < launch->signature.count; i++) {
                size_t offset = launch->signature.word[i].offset;

                launch->value[i] = 0;
                if (buffer.bytes && buffer.size >= offset + sizeof(launch->value[i]))
                        memcpy(&launch->value[i], buffer.bytes + offset, sizeof(launch->value[i]));
        }
}

/* looking */

/* Where the live block begins that ends at @end; 0 if there is none. */
static uint64_t start_of_block_before(uint64_t end)
{
        struct sp_finding live = {0};
        CUdeviceptr base;
        size_t bytes;

        switch (sp_ledger_pooled(end - 1, &live)) {
        case SP_POOLED_LIVE:
                return live.block.address + live.block.bytes == end ? live.block.address : 0;
        case SP_POOLED_FREE:
                return 0;
        default:
                return sp_use_ask(end - 1, &base, &bytes) == CUDA_SUCCESS && base + bytes == end
                               ? base
                               : 0;
        }
}

/* A range is often given by where it begins and where it ends. */
static bool is_end_of_given(const struct launch *launch, uint64_t value)
{
        uint64_t start = start_of_block_before(value);

        for (unsigned int i = 0; start && i < launch->signature.count; i++) {
                if (launch->value[i] - start < value - start)
                        return true;
        }
        return false;
}

static bool is_freed(const struct launch *launch, uint64_t value, struct sp_finding *finding)
{
        CUdeviceptr base;
        size_t bytes;

        switch (sp_ledger_pooled(value, finding)) {
        case SP_POOLED_LIVE:
                /* No mistake by itself. */
                if (sp_order_is_on)
                        sp_order_use(launch->stream, value, 0, SPM_TOUCH_ARGUMENT);
                return false;
        case SP_POOLED_FREE:
                return finding->has_block;
        default:
                return sp_use_is_nothing(sp_use_ask(value, &base, &bytes)) &&
                       sp_ledger_was_freed(value, finding);
        }
}

static void look_at(const struct launch *launch, unsigned int i)
{
        uint64_t value = launch->value[i];
        struct sp_finding finding = {
                .address = value,
                .function = launch->called,
                .times = 1,
                .argument = launch->signature.word[i].number,
        };

        if (value < LOWEST || value >= HIGHEST || !is_freed(launch, value, &finding) ||
            is_end_of_given(launch, value))
                return;
        finding.kind = SP_FINDING_ARGUMENT_AFTER_FREE;
        finding.kernel = sp_signature_name(launch->function);
        finding.site = sp_use_site();
        sp_ledger_add_finding(&finding);
}

void sp_argument_look(const char *called, CUfunction function, CUstream stream, void **params,
                      void **extra)
{
        struct launch launch;

        /* With both the driver refuses, and with none there is nothing to look at. */
        if (!function || !params == !extra || !sp_route_may_act() ||
            !sp_signature_of(function, &launch.signature))
                return;
        launch.called = called;
        launch.function = function;
        launch.stream = stream;
        if (params)
                read_each(&launch, params);
        else
                read_buffer(&launch, buffer_of(extra));
        for (unsigned int i = 0; i < launch.signature.count; i++)
                look_at(&launch, i);
}
