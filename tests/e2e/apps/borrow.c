/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Borrow -- what becomes of blocks that other processes have open
 *
 *   borrow share     two processes open every block; it is freed while they have it
 *   borrow stranger  a process that has only the driver tries to open them
 *   borrow orphan    the process that made them ends
 *   borrow busy      a block is closed while a kernel writes it
 *   borrow capture   a block is closed while a stream captures
 *
 * A second word: "filtered" takes pidfd_getfd() from all of them, as the default
 * profile of Docker does; with "watched" the borrowers have no pool.
 *
 * Owner and borrowers are processes of their own; the borrowers do as they are
 * told by letters, and answer each. Prints what was found, one line a thing.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cu.h"

#define MIB    ((size_t)1 << 20)
#define BLOCKS 7

static const size_t sizes[BLOCKS] = {512, 1000, 4096, 100000, 3 * MIB, 34 * MIB, 70 * MIB};

enum command { END, OPEN, COMPARE, WRITE, CLOSE, SPIN_AND_CLOSE, CAPTURE_AND_CLOSE };

struct letter {
        enum command command;
        int block; /* which, by number */
        CUipcMemHandle handle;
        uint64_t bytes;
        uint32_t value;
};

struct answer {
        CUresult result;
        uint32_t wrong; /* words that differ, or other things that are not as they should be */
};

struct borrower {
        pid_t process;
        int to, from;
};

static struct cu_kernels kernels;
static bool is_watched;
static uint32_t *mismatches;

static void start(void)
{
        cu_start(0);
        cu_load_kernels(&kernels);
        mismatches = cu_counter(1);
}

static void transfer(ssize_t got, size_t wanted)
{
        if (got == (ssize_t)wanted)
                return;
        fprintf(stderr, "the other process is gone\n");
        exit(99);
}

static void write_words(CUdeviceptr p, uint64_t bytes, uint32_t value)
{
        CU_OK(cu_fill(&kernels, CU_STREAM_LEGACY, p, bytes / 4, value));
        CU_OK(cu.CtxSynchronize());
}

static uint32_t differing_words(CUdeviceptr p, uint64_t bytes, uint32_t value)
{
        *mismatches = 0;
        CU_OK(cu_check(&kernels, CU_STREAM_LEGACY, p, bytes / 4, value,
                       (CUdeviceptr)(uintptr_t)mismatches));
        CU_OK(cu.CtxSynchronize());
        return *mismatches;
}

#define PIDFD_GETFD 438

static void filter(void)
{
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PIDFD_GETFD, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
                exit(77);
}

/* a borrower */

static CUdeviceptr opened[BLOCKS];

/* Twice, which is the same block at the same address; and it is as large as it was made. */
static struct answer open_block(const struct letter *letter)
{
        CUdeviceptr *p = &opened[letter->block], again = 0, base = 0;
        size_t size = 0;
        struct answer answer = {
                .result =
                        cu.IpcOpenMemHandle(p, letter->handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
        };

        if (answer.result != CUDA_SUCCESS)
                return answer;
        CU_OK(cu.IpcOpenMemHandle(&again, letter->handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
        CU_OK(cu.IpcCloseMemHandle(again));
        CU_OK(cu.MemGetAddressRange(&base, &size, *p + letter->bytes / 2));
        answer.wrong = (again != *p) + (base != *p) + (size != letter->bytes);
        answer.wrong += differing_words(*p, letter->bytes, letter->value);
        return answer;
}

/* The capture is not broken by it. */
static struct answer close_in_capture(CUdeviceptr p)
{
        struct answer answer;
        CUstream stream;
        CUgraph graph = NULL;

        CU_OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        answer.result = cu.IpcCloseMemHandle(p);
        answer.wrong = cu.StreamEndCapture(stream, &graph) != CUDA_SUCCESS || !graph;
        return answer;
}

static struct answer obey(const struct letter *letter)
{
        CUdeviceptr p = opened[letter->block];

        switch (letter->command) {
        case OPEN:
                return open_block(letter);
        case COMPARE:
                return (struct answer){0, differing_words(p, letter->bytes, letter->value)};
        case WRITE:
                write_words(p, letter->bytes, letter->value);
                return (struct answer){0};
        case SPIN_AND_CLOSE:
                CU_OK(cu_spin(&kernels, CU_STREAM_LEGACY, 50 * 1000 * 1000));
                CU_OK(cu_fill(&kernels, CU_STREAM_LEGACY, p, letter->bytes / 4, letter->value));
                return (struct answer){cu.IpcCloseMemHandle(p), 0};
        case CAPTURE_AND_CLOSE:
                return close_in_capture(p);
        default:
                /* The second time there is nothing to close. */
                return (struct answer){cu.IpcCloseMemHandle(p), cu.IpcCloseMemHandle(p) != 1};
        }
}

static int borrow(int from, int to)
{
        struct letter letter;

        alarm(60);
        if (is_watched)
                setenv("STREAMPOOL_MODE", "observe", 1);
        start();
        for (;;) {
                struct answer answer;

                transfer(read(from, &letter, sizeof(letter)), sizeof(letter));
                if (letter.command == END)
                        return 0;
                answer = obey(&letter);
                transfer(write(to, &answer, sizeof(answer)), sizeof(answer));
        }
}

/* Before this process has a driver. @as_stranger: it starts anew, with nothing loaded before the
 * driver. */
static struct borrower hire(char *self, bool as_stranger)
{
        struct borrower made;
        int there[2], back[2];
        char from[16], to[16];

        if (pipe(there) || pipe(back))
                exit(99);
        made = (struct borrower){fork(), there[1], back[0]};
        if (made.process)
                return made;
        close(there[1]);
        if (!as_stranger)
                exit(borrow(there[0], back[1]));
        unsetenv("LD_PRELOAD");
        snprintf(from, sizeof(from), "%d", there[0]);
        snprintf(to, sizeof(to), "%d", back[1]);
        execl(self, self, "obey", from, to, (char *)NULL);
        exit(98);
}

static struct answer tell(const struct borrower *borrower, struct letter letter)
{
        struct answer answer = {0};

        transfer(write(borrower->to, &letter, sizeof(letter)), sizeof(letter));
        if (letter.command != END)
                transfer(read(borrower->from, &answer, sizeof(answer)), sizeof(answer));
        return answer;
}

static int dismiss(const struct borrower *borrower)
{
        int status;

        tell(borrower, (struct letter){.command = END});
        waitpid(borrower->process, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

/* the owner */

static CUdeviceptr blocks[BLOCKS];
static struct letter letters[BLOCKS];

static void make_blocks(uint32_t value)
{
        for (int i = 0; i < BLOCKS; i++) {
                CU_OK(cu.MemAlloc(&blocks[i], sizes[i]));
                write_words(blocks[i], sizes[i], value + (uint32_t)i);
        }
}

static void export_blocks(uint32_t value)
{
        for (int i = 0; i < BLOCKS; i++) {
                CUipcMemHandle inside;

                letters[i] = (struct letter){.block = i, .bytes = sizes[i], .value = value + i};
                CU_OK(cu.IpcGetMemHandle(&letters[i].handle, blocks[i]));
                CU_OK(cu.IpcGetMemHandle(&inside, blocks[i] + sizes[i] - 1));
                if (memcmp(&inside, &letters[i].handle, sizeof(inside)) != 0)
                        printf("block %d has two handles\n", i);
        }
}

/* Every block; adds up. Any refusal is printed. */
static uint32_t tell_all(const struct borrower *borrower, enum command command, uint32_t value)
{
        uint32_t wrong = 0;

        for (int i = 0; i < BLOCKS; i++) {
                struct letter letter = letters[i];
                struct answer answer;

                letter.command = command;
                letter.value = value + (uint32_t)i;
                answer = tell(borrower, letter);
                wrong += answer.wrong;
                if (answer.result != CUDA_SUCCESS)
                        printf("block %d: %d to command %d\n", i, answer.result, command);
        }
        return wrong;
}

static void free_blocks(void)
{
        for (int i = 0; i < BLOCKS; i++)
                CU_OK(cu.MemFree(blocks[i]));
        CU_OK(cu.CtxSynchronize());
}

static int share(char *self)
{
        struct borrower first = hire(self, false), second = hire(self, false);
        CUdeviceptr p;
        uint32_t wrong = 0;

        start();
        make_blocks(100);
        export_blocks(100);
        printf("own %d\n", cu.IpcOpenMemHandle(&p, letters[0].handle, 1));
        printf("opened wrong %u %u\n", tell_all(&first, OPEN, 100), tell_all(&second, OPEN, 100));
        tell_all(&first, WRITE, 200);
        for (int i = 0; i < BLOCKS; i++)
                wrong += differing_words(blocks[i], sizes[i], 200 + (uint32_t)i);
        printf("written wrong %u %u\n", wrong, tell_all(&second, COMPARE, 200));
        free_blocks();
        make_blocks(300);
        printf("freed wrong %u %u\n", tell_all(&first, COMPARE, 200),
               tell_all(&second, COMPARE, 200));
        letters[0].command = OPEN;
        letters[0].block = 0;
        printf("closed wrong %u %u\n", tell_all(&first, CLOSE, 0), tell_all(&second, CLOSE, 0));
        printf("stale %d\n", tell(&first, letters[0]).result);
        wrong = 0;
        for (int i = 0; i < BLOCKS; i++)
                wrong += differing_words(blocks[i], sizes[i], 300 + (uint32_t)i);
        printf("own wrong %u\n", wrong);
        free_blocks();
        return dismiss(&first) + dismiss(&second);
}

static int deal_with_stranger(char *self)
{
        struct borrower stranger = hire(self, true);
        int refused = 0;

        start();
        make_blocks(100);
        export_blocks(100);
        for (int i = 0; i < BLOCKS; i++) {
                letters[i].command = OPEN;
                refused += tell(&stranger, letters[i]).result != CUDA_SUCCESS;
        }
        printf("refused %d\n", refused);
        free_blocks();
        return dismiss(&stranger);
}

/* The owner is a process of its own here, and is dismissed between two openings. */
static int be_orphaned(void)
{
        int letter_pipe[2], end_pipe[2], status;
        uint32_t wrong = 0;
        char go = 0;
        pid_t owner;

        if (pipe(letter_pipe) || pipe(end_pipe))
                return 99;
        owner = fork();
        if (!owner) {
                alarm(60);
                start();
                make_blocks(100);
                export_blocks(100);
                transfer(write(letter_pipe[1], letters, sizeof(letters)), sizeof(letters));
                transfer(read(end_pipe[0], &go, 1), 1);
                _exit(0);
        }
        start();
        transfer(read(letter_pipe[0], letters, sizeof(letters)), sizeof(letters));
        for (int i = 1; i < BLOCKS; i++)
                wrong += open_block(&letters[i]).wrong;
        transfer(write(end_pipe[1], &go, 1), 1);
        waitpid(owner, &status, 0);
        for (int i = 1; i < BLOCKS; i++) {
                wrong += differing_words(opened[i], sizes[i], 100 + (uint32_t)i);
                CU_OK(cu.IpcCloseMemHandle(opened[i]));
        }
        printf("orphaned wrong %u, another %d\n", wrong, open_block(&letters[0]).result);
        return 0;
}

static int capture(char *self)
{
        struct borrower borrower = hire(self, false);
        uint32_t wrong;

        start();
        make_blocks(100);
        export_blocks(100);
        wrong = tell_all(&borrower, OPEN, 100) + tell_all(&borrower, CAPTURE_AND_CLOSE, 0);
        wrong += tell_all(&borrower, OPEN, 100) + tell_all(&borrower, CLOSE, 0);
        printf("capture wrong %u\n", wrong);
        free_blocks();
        return dismiss(&borrower);
}

static int close_busy(char *self)
{
        struct borrower borrower = hire(self, false);
        uint32_t wrong = 0;

        start();
        make_blocks(100);
        export_blocks(100);
        wrong = tell_all(&borrower, OPEN, 100) + tell_all(&borrower, SPIN_AND_CLOSE, 200);
        for (int i = 0; i < BLOCKS; i++)
                wrong += differing_words(blocks[i], sizes[i], 200 + (uint32_t)i);
        printf("busy wrong %u\n", wrong);
        free_blocks();
        return dismiss(&borrower);
}

int main(int argc, char **argv)
{
        const char *what = argc > 1 ? argv[1] : "share";

        signal(SIGPIPE, SIG_IGN);
        if (!strcmp(what, "obey") && argc > 3)
                return borrow(atoi(argv[2]), atoi(argv[3]));
        if (argc > 2 && !strcmp(argv[2], "filtered"))
                filter();
        is_watched = argc > 2 && !strcmp(argv[2], "watched");
        if (!strcmp(what, "stranger"))
                return deal_with_stranger(argv[0]);
        if (!strcmp(what, "orphan"))
                return be_orphaned();
        if (!strcmp(what, "busy"))
                return close_busy(argv[0]);
        if (!strcmp(what, "capture"))
                return capture(argv[0]);
        return share(argv[0]);
}
