/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Use hooks -- does each launch, copy and set look at what it is given, and nothing else?
 *
 * The hooks themselves. The n-th argument of each call is n times PAGE, so that
 * what is looked at says which arguments it comes from. A function that is in no line of the list
 * below has nothing to look at.
 */

#include "entry/hooks.c"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"

#define PAGE 0x1000

/* Of launches: the function, the stream, and the arguments in both ways. Of the others:
 * w: writes, r: reads; D, U, H: the side; the argument that is the address; + the pages, or
 * bytes. */
static const struct {
        const char *symbol;
        const char *looked_at;
} wanted[] = {
        {"cuLaunchKernel", "arguments 1 9 10 11 "},
        {"cuLaunchCooperativeKernel", "arguments 1 9 10 0 "},
        {"cuMemcpy", "wU1+3 rU2+3 "},
        {"cuMemcpyAsync", "wU1+3 rU2+3 "},
        {"cuMemcpyWithAttributesAsync", "wU1+3 rU2+3 "},
        {"cuMemcpyPeer", "wU1+5 rU3+5 "},
        {"cuMemcpyPeerAsync", "wU1+5 rU3+5 "},
        {"cuMemcpyBatchAsync", "list 1 2 3 4 "},
        {"cuMemcpyBatchAsync_v2", "list 1 2 3 4 "},
        {"cuMemcpyHtoD_v2", "wD1+3 rH2+3 "},
        {"cuMemcpyHtoDAsync_v2", "wD1+3 rH2+3 "},
        {"cuMemcpyDtoH_v2", "wH1+3 rD2+3 "},
        {"cuMemcpyDtoHAsync_v2", "wH1+3 rD2+3 "},
        {"cuMemcpyDtoD_v2", "wD1+3 rD2+3 "},
        {"cuMemcpyDtoDAsync_v2", "wD1+3 rD2+3 "},
        {"cuMemcpyDtoA_v2", "rD3+4 "},
        {"cuMemcpyAtoD_v2", "wD1+4 "},
        {"cuMemcpyHtoA_v2", "rH3+4 "},
        {"cuMemcpyHtoAAsync_v2", "rH3+4 "},
        {"cuMemcpyAtoH_v2", "wH1+4 "},
        {"cuMemcpyAtoHAsync_v2", "wH1+4 "},
        {"cuMemcpy2D_v2", "2d 1 "},
        {"cuMemcpy2DAsync_v2", "2d 1 "},
        {"cuMemcpy2DUnaligned_v2", "2d 1 "},
        {"cuMemcpy3D_v2", "3d 1 "},
        {"cuMemcpy3DAsync_v2", "3d 1 "},
        {"cuMemcpy3DPeer", "peer 1 "},
        {"cuMemcpy3DPeerAsync", "peer 1 "},
        {"cuMemsetD8_v2", "wD1+3 "},
        {"cuMemsetD8Async", "wD1+3 "},
        {"cuMemsetD16_v2", "wD1+6 "},
        {"cuMemsetD16Async", "wD1+6 "},
        {"cuMemsetD32_v2", "wD1+12 "},
        {"cuMemsetD32Async", "wD1+12 "},
        {"cuMemsetD2D8_v2", "rows 1 2 4 5 "},
        {"cuMemsetD2D8Async", "rows 1 2 4 5 "},
        {"cuMemsetD2D16_v2", "rows 1 2 8 5 "},
        {"cuMemsetD2D16Async", "rows 1 2 8 5 "},
        {"cuMemsetD2D32_v2", "rows 1 2 16 5 "},
        {"cuMemsetD2D32Async", "rows 1 2 16 5 "},
        {"cuStreamWaitValue32", "rU2+4b "},
        {"cuStreamWaitValue32_v2", "rU2+4b "},
        {"cuStreamWaitValue64", "rU2+8b "},
        {"cuStreamWaitValue64_v2", "rU2+8b "},
        {"cuStreamWriteValue32", "wU2+4b "},
        {"cuStreamWriteValue32_v2", "wU2+4b "},
        {"cuStreamWriteValue64", "wU2+8b "},
        {"cuStreamWriteValue64_v2", "wU2+8b "},
};

/* A hook with more arguments than it takes: they are ignored. */
typedef CUresult (*hook)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                         uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

struct row {
        const char *api;
        const char *symbol;
        const char *name;
        void (*hook)(void);
};

static const struct row rows[] = {
#define SP_EACH_SUBMIT(api, symbol, since, suffix, kind, params, raw_args, target)                 \
        {#api, #symbol, #symbol #suffix, (void (*)(void))symbol##suffix},
#include "driver/entry_points.def"
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* who looks */

static const struct row *current;
static char looked_at[100];
static unsigned int driver_calls, looks_behind;

static void note(const char *called, const char *format, unsigned int a, unsigned int b,
                 unsigned int c, unsigned int d)
{
        size_t used = strlen(looked_at);

        snprintf(looked_at + used, sizeof(looked_at) - used, format, a, b, c, d);
        looks_behind += driver_calls != 0;
        cr_expect_str_eq(called, current->api, "%s is called %s", current->name, called);
        cr_expect_neq(sp_caller, NULL, "%s", current->name);
}

#define PAGES(number) ((unsigned int)((uint64_t)(uintptr_t)(number) / PAGE))

void __wrap_sp_use_row(const char *called, enum sp_side side, bool is_write, uint64_t address,
                       size_t bytes);
void __wrap_sp_use_row(const char *called, enum sp_side side, bool is_write, uint64_t address,
                       size_t bytes)
{
        char format[] = "wD%u+%u ";
        char bytes_format[] = "wD%u+%ub ";
        char *chosen = bytes < PAGE ? bytes_format : format;

        chosen[0] = is_write ? 'w' : 'r';
        chosen[1] = "DUH"[side];
        note(called, chosen, PAGES(address), bytes < PAGE ? (unsigned int)bytes : PAGES(bytes), 0,
             0);
}

void __wrap_sp_use_copy(const char *called, enum sp_side to_side, uint64_t to,
                        enum sp_side from_side, uint64_t from, size_t bytes);
void __wrap_sp_use_copy(const char *called, enum sp_side to_side, uint64_t to,
                        enum sp_side from_side, uint64_t from, size_t bytes)
{
        __wrap_sp_use_row(called, to_side, true, to, bytes);
        __wrap_sp_use_row(called, from_side, false, from, bytes);
}

void __wrap_sp_use_rows(const char *called, uint64_t address, size_t pitch, size_t width,
                        size_t count);
void __wrap_sp_use_rows(const char *called, uint64_t address, size_t pitch, size_t width,
                        size_t count)
{
        note(called, "rows %u %u %u %u ", PAGES(address), PAGES(pitch), PAGES(width), PAGES(count));
}

void __wrap_sp_use_list(const char *called, const CUdeviceptr *to, const CUdeviceptr *from,
                        const size_t *sizes, size_t count);
void __wrap_sp_use_list(const char *called, const CUdeviceptr *to, const CUdeviceptr *from,
                        const size_t *sizes, size_t count)
{
        note(called, "list %u %u %u %u ", PAGES(to), PAGES(from), PAGES(sizes), PAGES(count));
}

#define BOX(sort, type, word)                                                                      \
        void __wrap_sp_use_##sort(const char *called, const type *copy);                           \
        void __wrap_sp_use_##sort(const char *called, const type *copy)                            \
        {                                                                                          \
                note(called, word " %u ", PAGES(copy), 0, 0, 0);                                   \
        }
BOX(2d, CUDA_MEMCPY2D, "2d")
BOX(3d, CUDA_MEMCPY3D, "3d")
BOX(3d_peer, CUDA_MEMCPY3D_PEER, "peer")

void __wrap_sp_argument_look(const char *called, CUfunction function, CUstream stream,
                             void **params, void **extra);
void __wrap_sp_argument_look(const char *called, CUfunction function, CUstream stream,
                             void **params, void **extra)
{
        note(called, "arguments %u %u %u %u ", PAGES(function), PAGES(stream), PAGES(params),
             PAGES(extra));
}

/* the driver, and the program */

static CUresult answer(void)
{
        driver_calls++;
        return CUDA_SUCCESS;
}

static bool tell(CUstream handle)
{
        (void)handle;
        return true;
}

static void start(void)
{
        sp_submit_tell = tell;
#define SP_EACH_SUBMIT(api, symbol, since, suffix, kind, params, raw_args, target)                 \
        sp_driver.symbol##suffix = (SP_TYPE(api, since, suffix) *)(void (*)(void))answer;
#include "driver/entry_points.def"
        sp_config_load();
        cr_assert(sp_life_begin());
        sp_life_settle(true);
}

TestSuite(use_hooks, .init = start);

static void call(const struct row *row)
{
        current = row;
        driver_calls = 0;
        looks_behind = 0;
        looked_at[0] = '\0';
        sp_caller = NULL;
        cr_expect_eq(((hook)row->hook)(1 * PAGE, 2 * PAGE, 3 * PAGE, 4 * PAGE, 5 * PAGE, 6 * PAGE,
                                       7 * PAGE, 8 * PAGE, 9 * PAGE, 10 * PAGE, 11 * PAGE),
                     CUDA_SUCCESS);
        cr_expect_eq(driver_calls, 1, "%s: %u calls", row->name, driver_calls);
}

static const char *wanted_of(const struct row *row)
{
        for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
                if (strcmp(wanted[i].symbol, row->symbol) == 0)
                        return wanted[i].looked_at;
        return "";
}

Test(use_hooks, look_at_what_is_read_and_written_before_the_driver_does)
{
        unsigned int looking = 0;

        sp_uses_are_looked_at = sp_arguments_are_looked_at = sp_launches_are_looked_at = true;
        for (const struct row *row = rows; row < rows + ROWS; row++) {
                call(row);
                cr_expect_str_eq(looked_at, wanted_of(row), "%s: %s, and not %s", row->name,
                                 looked_at, wanted_of(row));
                cr_expect_eq(looks_behind, 0, "%s looks behind the driver", row->name);
                looking += looked_at[0] != '\0';
        }
        cr_expect_geq(looking, 80, "only %u", looking);
}

Test(use_hooks, look_at_nothing_unless_asked_to)
{
        for (const struct row *row = rows; row < rows + ROWS; row++) {
                call(row);
                cr_expect_str_empty(looked_at, "%s: %s", row->name, looked_at);
        }
}
