/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Block -- the life of one block: taken, filled, watched, handed on, freed
 *
 * Every call that may allocate, write or free is used in every combination that
 * is correct. How a block will be freed is drawn when it is made: it may be
 * another thread that does it, whose own draws must not depend on that.
 */
#include "torture.h"

#include <string.h>

/* Few sizes, so that what was freed is what the next one asks for. */
static size_t pick_bytes(struct worker *w)
{
        static const size_t usual[] = {512,
                                       4096,
                                       4096,
                                       16384,
                                       65536,
                                       65536,
                                       65536,
                                       (size_t)1 << 18,
                                       (size_t)1 << 18,
                                       (size_t)1 << 20,
                                       (size_t)3 << 20};
        unsigned which = pick(w, sizeof(usual) / sizeof(usual[0]) + 1);

        if (pick(w, 2) && w->given)
                return w->given;
        if (which < sizeof(usual) / sizeof(usual[0]))
                return usual[which];
        return 256 + pick(w, 1u << 18) / 4 * 4;
}

static CUdeviceptr counter(const struct worker *w)
{
        return (CUdeviceptr)(uintptr_t)w->shared->mismatches;
}

/* Nanoseconds. Where many streams work, each of them may take its time. */
static unsigned pick_duration(struct worker *w, unsigned longest)
{
        return pick(w, w->phase.kind == SEVERAL ? longest * 4 : longest);
}

void watch(struct worker *w, CUstream stream, CUdeviceptr p, uint64_t words, uint32_t value)
{
        static const unsigned longest[] = {1000, 20000, 20000, 200000};
        unsigned duration = pick_duration(w, longest[pick(w, 4)]);

        w->checks++;
        CU_OK(cu_watch(&w->shared->kernels, stream, p, words, value, duration, counter(w)));
}

void check(struct worker *w, CUstream stream, CUdeviceptr p, uint64_t words, uint32_t value)
{
        w->checks++;
        CU_OK(cu_check(&w->shared->kernels, stream, p, words, value, counter(w)));
}

/* ---- writing ---- */

static void copy_in(struct worker *w, struct block *block, CUstream stream)
{
        size_t bytes = block->words * 4;

        for (uint64_t i = 0; i < block->words; i++)
                w->page[i] = block->value;
        if (stream)
                CU_OK(cu.MemcpyHtoDAsync(block->p, w->page, bytes, stream));
        else
                CU_OK(cu.MemcpyHtoD(block->p, w->page, bytes));
}

/* The words of another block, if there is one that is large enough. */
static bool copy_over(struct worker *w, struct block *block, CUstream stream)
{
        struct block *from = &w->slots[pick(w, SLOTS)];

        if (from == block || !from->p || from->words < block->words)
                return false;
        follow(w, stream, from);
        block->value = from->value;
        CU_OK(cu.MemcpyDtoDAsync(block->p, from->p, block->words * 4, stream));
        used(from, stream);
        return true;
}

/* Calls that wait for the device are rare: the host is to run ahead of it. */
static void fill(struct worker *w, struct block *block)
{
        unsigned way = pick(w, 128);
        bool small = block->words <= PAGE_WORDS;
        bool sync = way < 6 && legacy_is_allowed(w);
        CUstream stream = sync ? CU_STREAM_LEGACY : stream_for_new_block(w);

        follow(w, stream, block);
        if (sync && way == 0 && small)
                copy_in(w, block, NULL);
        else if (sync)
                CU_OK(cu.MemsetD32(block->p, block->value, block->words));
        else if (way < 16 && small)
                copy_in(w, block, stream);
        else if (way < 32)
                CU_OK(cu.MemsetD32Async(block->p, block->value, block->words, stream));
        else if (way >= 48 || !copy_over(w, block, stream))
                CU_OK(cu_fill(&w->shared->kernels, stream, block->p, block->words, block->value));
        used(block, stream);
}

/* ---- using ---- */

static void look(struct worker *w, struct block *block)
{
        uint32_t word = 0;

        follow(w, CU_STREAM_LEGACY, block);
        CU_OK(cu.MemcpyDtoH(&word, block->p + pick(w, (unsigned)block->words) * (size_t)4, 4));
        used(block, CU_STREAM_LEGACY);
        w->checks++;
        if (word != block->value)
                w->shared->host_mismatches++;
}

static void use(struct worker *w, struct block *block)
{
        unsigned way = pick(w, 256);
        CUstream stream = pick(w, 3) ? block->last : stream_nth(w, pick(w, 1u << 20));

        if (way == 0 && legacy_is_allowed(w)) {
                look(w, block);
                return;
        }
        follow(w, stream, block);
        if (way < 64) {
                CU_OK(cu_add(&w->shared->kernels, stream, block->p, block->words, 3));
                block->value += 3;
        }
        if (way < 96)
                check(w, stream, block->p, block->words, block->value);
        else
                watch(w, stream, block->p, block->words, block->value);
        used(block, stream);
}

/* Somebody else's word in a block that is watched. */
static void plant(struct worker *w, struct block *block)
{
        CUstream stream;

        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        follow(w, stream, block);
        CU_OK(cu_watch(&w->shared->kernels, block->last, block->p, block->words, block->value,
                       500000, counter(w)));
        CU_OK(cu_fill(&w->shared->kernels, stream, block->p, 1, ~block->value));
        used(block, block->last);
        CU_OK(cu.StreamSynchronize(stream));
        CU_OK(cu.StreamDestroy(stream));
}

void block_take(struct worker *w, struct block *block)
{
        CUevent event = block->event;
        CUstream stream = stream_nth(w, pick(w, 1u << 20));
        size_t bytes = pick_bytes(w);

        *block = (struct block){.words = bytes / 4,
                                .value = w->serial++,
                                .async = pick(w, w->phase.kind == SEVERAL ? 2 : 4) == 0,
                                .event = event,
                                .fate = pick(w, 1u << 30)};
        if (!event)
                CU_OK(cu.EventCreate(&block->event, CU_EVENT_DISABLE_TIMING));
        if (block->async)
                CU_OK(cu.MemAllocAsync(&block->p, bytes, stream));
        else
                CU_OK(cu.MemAlloc(&block->p, bytes));
        cu_owned(block->p, bytes);
        w->made++;
        if (block->async)
                used(block, stream);
        fill(w, block);
        watch(w, block->last, block->p, block->words, block->value);
        if (w->shared->planted && w->made % 64 == 0)
                plant(w, block);
}

/* ---- freeing ---- */

/* Whatever waits in the mail is ours now, and what we have waits there. */
static void swap_by_mail(struct worker *w, struct block *block)
{
        struct block *letter = &w->shared->mail[block->fate / 2048 % LETTERS], old;

        mark(block);
        block->last = NULL; /* another thread may not know that stream, or mean another by it */
        pthread_mutex_lock(&w->shared->mail_lock);
        old = *letter;
        *letter = *block;
        *block = old;
        pthread_mutex_unlock(&w->shared->mail_lock);
}

static void wait_for(struct block *block)
{
        if (block->last && block->fate % 2) {
                CU_OK(cu.StreamSynchronize(block->last));
                return;
        }
        mark(block);
        CU_OK(cu.EventSynchronize(block->event));
}

void block_give(struct worker *w, struct block *block)
{
        unsigned way = block->fate / 2 % 64;
        CUstream stream;
        CUdeviceptr p;

        w->given = block->words * 4;
        /* A late write of an earlier owner is seen by whoever looks last. */
        if (block->last && block->fate / 128 % 2)
                check(w, block->last, block->p, block->words, block->value);
        if (block->fate / 256 % 8 == 0)
                swap_by_mail(w, block);
        p = block->p;
        if (!p)
                return;
        block->p = 0;
        w->freed++;
        if (block->async ? way == 0 : way < 40) {
                /* In use or not, cuMemFree takes memory of its own kind; of the other, idle only.
                 */
                if (block->async || way == 0)
                        wait_for(block);
                cu_disowned(p);
                CU_OK(cu.MemFree(p));
                return;
        }
        stream = stream_nth(w, block->fate / 16384);
        if (block->last && way % 4)
                stream = block->last;
        follow(w, stream, block);
        cu_disowned(p);
        CU_OK(cu.MemFreeAsync(p, stream));
}

void mail_empty(struct worker *w)
{
        for (int i = 0; i < LETTERS; i++) {
                struct block *block = &w->shared->mail[i];

                block->fate |= 256; /* not by mail again */
                if (block->p)
                        block_give(w, block);
                if (block->event)
                        CU_OK(cu.EventDestroy(block->event));
        }
}

/* ---- a round ---- */

/* A stream falls behind the others: what only they have finished is not finished. */
static void delay(struct worker *w)
{
        CUstream stream = stream_nth(w, pick(w, 1u << 20));

        CU_OK(cu_spin(&w->shared->kernels, stream, pick_duration(w, 1000000)));
}

static void synchronise(struct worker *w)
{
        unsigned chance = pick(w, 600);

        if (chance < 4) {
                CU_OK(cu.StreamSynchronize(stream_nth(w, pick(w, 1u << 20))));
        } else if (chance == 4) {
                /* Refused, and the end of all captures, while one is open. */
                pthread_rwlock_wrlock(&w->shared->captures);
                CU_OK(cu.CtxSynchronize());
                pthread_rwlock_unlock(&w->shared->captures);
        } else if (chance < 10 && w->phase.kind == SEVERAL) {
                stream_renew(w);
        }
}

void block_round(struct worker *w)
{
        struct block *block = &w->slots[pick(w, SLOTS)];

        w->rounds++;
        if (block->p)
                block_give(w, block);
        if (!pick(w, 48))
                delay(w);
        block_take(w, block);
        if (!pick(w, 2))
                use(w, block);
        if (pick(w, 2))
                block_give(w, block);
        if (w->phase.captures && !pick(w, 32))
                replay_begin(w);
        if (w->replay.exec && !pick(w, 8))
                replay_launch(w);
        synchronise(w);
}
