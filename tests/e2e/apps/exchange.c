/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exchange -- blocks given to another process by their handles
 *
 *   exchange [ROUNDS]
 *
 * This process fills a block, exports it, and another process opens it, compares
 * every word, writes it anew and closes it; then this process compares. Every
 * other handle is asked for by an address inside the block. Prints, for large and
 * for small blocks, how many were exported, how many refused, and words that
 * differed.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cu.h"

#define MIB ((size_t)1 << 20)

struct letter {
        CUipcMemHandle handle;
        uint64_t words; /* 0: the end */
        uint32_t value;
};

static struct cu_kernels kernels;
static uint32_t *mismatches;
static int to_other[2], from_other[2];

static void start(void)
{
        cu_start(0);
        cu_load_kernels(&kernels);
        mismatches = cu_counter(1);
}

static void expect_bytes(ssize_t got, size_t wanted)
{
        if (got == (ssize_t)wanted)
                return;
        fprintf(stderr, "the other process is gone\n");
        exit(99);
}

static void write_words(CUdeviceptr p, uint64_t words, uint32_t value)
{
        CU_OK(cu_fill(&kernels, CU_STREAM_LEGACY, p, words, value));
        CU_OK(cu.CtxSynchronize());
}

static uint32_t differing_words(CUdeviceptr p, uint64_t words, uint32_t value)
{
        *mismatches = 0;
        CU_OK(cu_check(&kernels, CU_STREAM_LEGACY, p, words, value,
                       (CUdeviceptr)(uintptr_t)mismatches));
        CU_OK(cu.CtxSynchronize());
        return *mismatches;
}

/* The other process. */
static int import(void)
{
        struct letter letter;

        alarm(60);
        close(to_other[1]); /* so that the end of the first process is seen */
        close(from_other[0]);
        start();
        for (;;) {
                CUdeviceptr p;
                uint32_t differing;

                expect_bytes(read(to_other[0], &letter, sizeof(letter)), sizeof(letter));
                if (!letter.words)
                        return 0;
                CU_OK(cu.IpcOpenMemHandle(&p, letter.handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
                differing = differing_words(p, letter.words, letter.value);
                write_words(p, letter.words, letter.value + 1);
                CU_OK(cu.IpcCloseMemHandle(p));
                expect_bytes(write(from_other[1], &differing, 4), 4);
        }
}

struct tally {
        int exported, refused, disagreeing;
        uint64_t differing;
};

static void exchange(struct tally *tally, CUdeviceptr p, size_t bytes, uint32_t value)
{
        struct letter letter = {.words = bytes / 4, .value = value};
        unsigned int capable = 7;
        uint32_t differing;
        CUresult result;

        CU_OK(cu.PointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p));
        result = cu.IpcGetMemHandle(&letter.handle, value % 4 ? p + bytes / 2 : p);
        tally->disagreeing += capable != (result == CUDA_SUCCESS);
        if (result) {
                tally->refused++;
                return;
        }
        tally->exported++;
        expect_bytes(write(to_other[1], &letter, sizeof(letter)), sizeof(letter));
        expect_bytes(read(from_other[0], &differing, 4), 4);
        tally->differing += differing + differing_words(p, letter.words, value + 1);
}

static void run(const char *name, const size_t *sizes, int count, int rounds)
{
        struct tally tally = {0};

        for (int round = 0; round < rounds; round++) {
                CUdeviceptr p[8];

                for (int i = 0; i < count; i++) {
                        CU_OK(cu.MemAlloc(&p[i], sizes[i]));
                        write_words(p[i], sizes[i] / 4, (uint32_t)(100 * round + 2 * i));
                }
                for (int i = 0; i < count; i++)
                        exchange(&tally, p[i], sizes[i], (uint32_t)(100 * round + 2 * i));
                for (int i = 0; i < count; i++)
                        CU_OK(cu.MemFree(p[i]));
        }
        printf("%s exported %d refused %d disagreeing %d differing %llu\n", name, tally.exported,
               tally.refused, tally.disagreeing, (unsigned long long)tally.differing);
}

int main(int argc, char **argv)
{
        static const size_t large[] = {34 * MIB, 70 * MIB, 40 * MIB};
        static const size_t small[] = {1000, 4096, 100000, 400};
        int rounds = argc > 1 ? atoi(argv[1]) : 2, status;
        const struct letter end = {.words = 0};
        pid_t other;

        signal(SIGPIPE, SIG_IGN);
        if (pipe(to_other) || pipe(from_other))
                return 99;
        other = fork(); /* before either of them has a driver */
        if (!other)
                return import();
        close(to_other[0]); /* so that neither waits for a dead one */
        close(from_other[1]);
        start();
        run("large", large, 3, rounds);
        run("small", small, 4, rounds);
        expect_bytes(write(to_other[1], &end, sizeof(end)), sizeof(end));
        waitpid(other, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}
