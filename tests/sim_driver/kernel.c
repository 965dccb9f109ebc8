/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Kernel -- the few kernels that the simulated device can run
 *
 * `prepare` turns arguments into work: its duration, the bytes it touches, the
 * effect. The effect reads the same words.
 */

#include "kernel.h"

#include <string.h>

#define WORD sizeof(uint64_t)

static uint32_t *elements(uint64_t word)
{
        return (uint32_t *)(uintptr_t)word;
}

/* ---- effects ---- */

static void fill(const struct sim_work *work)
{
        for (uint64_t i = 0; i < work->word[1]; i++)
                elements(work->word[0])[i] = (uint32_t)work->word[2];
}

static void add(const struct sim_work *work)
{
        for (uint64_t i = 0; i < work->word[1]; i++)
                elements(work->word[0])[i] += (uint32_t)work->word[2];
}

static uint32_t mismatches(const struct sim_work *work)
{
        uint32_t count = 0;

        for (uint64_t i = 0; i < work->word[1]; i++)
                count += elements(work->word[0])[i] != (uint32_t)work->word[2];
        return count;
}

static void check(const struct sim_work *work)
{
        *elements(work->word[3]) += mismatches(work);
}

static void watch(const struct sim_work *work)
{
        *elements(work->word[4]) += mismatches(work);
}

static void copy(const struct sim_work *work)
{
        memmove(elements(work->word[0]), elements(work->word[1]), work->word[2] * 4);
}

static void visit(const struct sim_work *work)
{
        unsigned char *byte = (unsigned char *)(uintptr_t)work->word[0];
        unsigned char *last = byte + work->word[1] - 1;

        if (work->word[2])
                *elements(work->word[4]) += *byte != work->word[2] || *last != work->word[2];
        *byte = *last = (unsigned char)work->word[3];
}

static void second(const struct sim_work *work)
{
        *elements(work->word[1]) = (uint32_t)work->word[2];
}

/* ---- waiting ---- */

static bool hold_is_over(const struct sim_work *work)
{
        return __atomic_load_n(elements(work->word[0]), __ATOMIC_ACQUIRE) >=
               (uint32_t)work->word[1];
}

/* Asked first when the kernel begins, and then again and again. */
static bool meet_is_over(const struct sim_work *work)
{
        __atomic_store_n(elements(work->word[0]), (uint32_t)work->word[2], __ATOMIC_RELEASE);
        return __atomic_load_n(elements(work->word[1]), __ATOMIC_ACQUIRE) >=
               (uint32_t)work->word[2];
}

/* ---- arguments to work ---- */

static void prepare_spin(struct sim_work *work)
{
        work->duration_ns = work->word[0];
}

static void prepare_fill(struct sim_work *work)
{
        work->effect = fill;
        work->duration_ns = sim_cost(work->word[1] * 4);
        sim_work_touch(work, work->word[0], work->word[1] * 4, SIM_WRITE);
}

static void prepare_add(struct sim_work *work)
{
        work->effect = add;
        work->duration_ns = sim_cost(work->word[1] * 4);
        sim_work_touch(work, work->word[0], work->word[1] * 4, SIM_READ | SIM_WRITE);
}

static void prepare_check(struct sim_work *work)
{
        work->effect = check;
        work->duration_ns = sim_cost(work->word[1] * 4);
        sim_work_touch(work, work->word[0], work->word[1] * 4, SIM_READ);
        sim_work_touch(work, work->word[3], 4, SIM_READ | SIM_WRITE);
}

static void prepare_watch(struct sim_work *work)
{
        work->effect = watch;
        work->kind = SIM_WORK_WATCH;
        work->duration_ns = work->word[3];
        sim_work_touch(work, work->word[0], work->word[1] * 4, SIM_READ);
        sim_work_touch(work, work->word[4], 4, SIM_READ | SIM_WRITE);
}

static void prepare_copy(struct sim_work *work)
{
        work->effect = copy;
        work->duration_ns = sim_cost(work->word[2] * 4);
        sim_work_touch(work, work->word[0], work->word[2] * 4, SIM_WRITE);
        sim_work_touch(work, work->word[1], work->word[2] * 4, SIM_READ);
}

static void prepare_hold(struct sim_work *work)
{
        work->kind = SIM_WORK_POLLED;
        work->holds = hold_is_over;
        sim_work_touch(work, work->word[0], 4, SIM_READ);
}

static void prepare_meet(struct sim_work *work)
{
        work->kind = SIM_WORK_POLLED;
        work->holds = meet_is_over;
        sim_work_touch(work, work->word[0], 4, SIM_WRITE);
        sim_work_touch(work, work->word[1], 4, SIM_READ);
}

static void prepare_visit(struct sim_work *work)
{
        work->effect = visit;
        work->duration_ns = sim_cost(work->word[1] / 512);
        sim_work_touch(work, work->word[0], work->word[1], SIM_READ | SIM_WRITE);
        sim_work_touch(work, work->word[4], 4, SIM_READ | SIM_WRITE);
}

static void prepare_second(struct sim_work *work)
{
        work->effect = second;
        work->duration_ns = sim_cost(4);
        sim_work_touch(work, work->word[1], 4, SIM_WRITE);
}

static void prepare_look(struct sim_work *work)
{
        work->duration_ns = sim_cost(0);
}

static const struct sim_kernel kernels[] = {
        {"spin", 1, {8}, prepare_spin},
        {"fill", 3, {8, 8, 4}, prepare_fill},
        {"add", 3, {8, 8, 4}, prepare_add},
        {"check", 4, {8, 8, 4, 8}, prepare_check},
        {"watch", 5, {8, 8, 4, 8, 8}, prepare_watch},
        {"copy", 3, {8, 8, 8}, prepare_copy},
        {"hold", 4, {8, 4, 8, 8}, prepare_hold},
        {"meet", 5, {8, 8, 4, 8, 8}, prepare_meet},
        {"visit", 5, {8, 8, 4, 4, 8}, prepare_visit},
        {"second", 2, {16, 4}, prepare_second},
        {"look", 2, {4, 8}, prepare_look},
};

const struct sim_kernel *sim_kernel_nth(unsigned int index)
{
        return index < sizeof(kernels) / sizeof(*kernels) ? &kernels[index] : NULL;
}

const struct sim_kernel *sim_kernel_find(const char *name)
{
        const struct sim_kernel *kernel;

        for (unsigned int i = 0; (kernel = sim_kernel_nth(i)); i++)
                if (!strcmp(kernel->name, name))
                        return kernel;
        return NULL;
}

/* The other way of passing arguments: one buffer, laid out like a C struct without its last
 * padding. */
static void *find_extra(void **extra, const void *what)
{
        for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2)
                if (*extra == what)
                        return extra[1];
        return NULL;
}

/* Measured on an H200: of more bytes than the kernel has it says that it has no room. */
static bool is_too_large(const size_t *size, size_t bytes)
{
        return size && *size > bytes;
}

bool sim_kernel_parameter(const struct sim_kernel *kernel, size_t index, size_t *offset,
                          size_t *bytes)
{
        size_t end = 0;

        if (index >= kernel->count)
                return false;
        for (size_t i = 0; i <= index; i++) {
                size_t alignment = kernel->bytes[i] < WORD ? kernel->bytes[i] : WORD;

                *bytes = kernel->bytes[i];
                *offset = (end + alignment - 1) / alignment * alignment;
                end = *offset + *bytes;
        }
        return true;
}

CUresult sim_kernel_work(struct sim_work *work, CUfunction handle, void **parameters, void **extra)
{
        const struct sim_kernel *kernel = ((struct sim_function *)handle)->kernel;
        const unsigned char *buffer = find_extra(extra, CU_LAUNCH_PARAM_BUFFER_POINTER);
        size_t offset = 0, bytes = 0, word = 0;

        if (!parameters == !buffer)
                return CUDA_ERROR_INVALID_VALUE;
        *work = (struct sim_work){.name = kernel->name};
        for (size_t i = 0; sim_kernel_parameter(kernel, i, &offset, &bytes); i++) {
                memcpy(&work->word[word], parameters ? parameters[i] : buffer + offset, bytes);
                word += (bytes + WORD - 1) / WORD;
        }
        if (is_too_large(find_extra(extra, CU_LAUNCH_PARAM_BUFFER_SIZE), offset + bytes))
                return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
        kernel->prepare(work);
        return CUDA_SUCCESS;
}
