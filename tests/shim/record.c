/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Record -- what becomes a line, in which order, and what is lost
 *
 * The lines are read from the file. Their times are left out.
 */

#define _GNU_SOURCE

#include "track/record.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/begin.h"
#include "track/record_file.h"
#include "track/state.h"

#define STREAM ((CUstream)0x5000)
#define OTHER  ((CUstream)0x6000)

void *__real_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset);

static char path[64];
static bool is_host_full;

void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
        return is_host_full ? MAP_FAILED : __real_mmap64(at, size, protection, flags, fd, offset);
}

static void start(void)
{
        snprintf(path, sizeof(path), "/tmp/streampool-test-record.%d", (int)getpid());
        setenv("STREAMPOOL_RECORD", path, 1);
        setenv("STREAMPOOL_REPORT", "none", 1);
        begin_on(0);
        cr_assert(sp_record_is_on);
}

static void stop(void)
{
        unlink(path);
}

TestSuite(record, .init = start, .fini = stop);

/* calls */

static void call(struct sp_record_call call, CUresult result)
{
        sp_record_begin(&call);
        sp_record_end(&call, result);
}

static void alloc(CUdeviceptr p, size_t bytes, CUresult result)
{
        call((struct sp_record_call){.kind = 'a', .out = &p, .number = bytes}, result);
}

static void alloc_on(CUstream stream, CUdeviceptr p)
{
        call((struct sp_record_call){.kind = 'A', .out = &p, .number = 8, .stream = stream},
             CUDA_SUCCESS);
}

static void give_back(CUdeviceptr p, CUresult result)
{
        call((struct sp_record_call){.kind = 'f', .handle = p}, result);
}

static void give_back_many(void)
{
        for (int i = 0; i < 3 * SP_RECORD_LINES; i++)
                give_back(0, CUDA_SUCCESS);
}

static void end_stream(CUstream stream, CUresult result)
{
        call((struct sp_record_call){.kind = '-', .handle = (uintptr_t)stream}, result);
}

/* @lines: what the file has behind the head, without times. */
static void expect_lines(const char *lines)
{
        static char got[1 << 16];
        char line[256], rest[256];
        size_t length = 0;
        FILE *file;

        sp_record_flush();
        file = fopen(path, "r");
        cr_assert(file && fgets(line, sizeof(line), file));
        cr_expect_str_eq(line, "# streampool recording 1\n");
        while (fgets(line, sizeof(line), file)) {
                cr_assert_eq(sscanf(line + 1, line[0] == 'k' ? "%255[^\n]" : " %*u%255[^\n]", rest),
                             1, "%s", line);
                length += (size_t)snprintf(got + length, sizeof(got) - length, "%c%s\n", line[0],
                                           rest);
        }
        fclose(file);
        cr_expect_str_eq(got, lines);
}

Test(record, an_allocation_says_what_came_of_it)
{
        alloc(0x1000, 64, CUDA_SUCCESS);
        alloc(0x2000, 128, CUDA_ERROR_OUT_OF_MEMORY);
        call((struct sp_record_call){.kind = 'a'}, CUDA_ERROR_INVALID_VALUE);
        expect_lines("a 0 1000 64 0\na 0 0 128 2\na 0 0 0 1\n");
}

Test(record, a_free_that_fails_has_no_line)
{
        alloc(0x1000, 64, CUDA_SUCCESS);
        give_back(0x1000, CUDA_ERROR_INVALID_CONTEXT);
        give_back(0x1000, CUDA_SUCCESS);
        give_back(0, CUDA_SUCCESS);
        expect_lines("a 0 1000 64 0\nf 0 1000\nf 0 0\n");
}

Test(record, a_free_is_in_front_of_what_came_while_it_lasted)
{
        struct sp_record_call free = {.kind = 'f', .handle = 0x1000};

        sp_record_begin(&free);
        alloc(0x1000, 64, CUDA_SUCCESS);
        sp_record_end(&free, CUDA_SUCCESS);
        expect_lines("f 0 1000\na 0 1000 64 0\n");
}

Test(record, a_free_that_fails_too_late_keeps_its_line)
{
        struct sp_record_call free = {.kind = 'f', .handle = 0x1000};

        sp_record_begin(&free);
        sp_record_flush();
        alloc(0x2000, 64, CUDA_SUCCESS);
        sp_record_end(&free, CUDA_ERROR_INVALID_VALUE);
        expect_lines("f 0 1000\na 0 2000 64 0\n");
}

Test(record, launches_in_a_row_are_one_line)
{
        for (int i = 0; i < 3000; i++)
                sp_record_work(CU_STREAM_LEGACY, CUDA_SUCCESS);
        sp_record_work(CU_STREAM_LEGACY, CUDA_ERROR_LAUNCH_FAILED);
        alloc(0x1000, 64, CUDA_SUCCESS);
        sp_record_work(CU_STREAM_LEGACY, CUDA_SUCCESS);
        sp_record_work(CU_STREAM_PER_THREAD, CUDA_SUCCESS);
        sp_record_work(CU_STREAM_PER_THREAD, CUDA_SUCCESS);
        expect_lines("k 0 3000\na 0 1000 64 0\nk 0 1\n"
                     "+ 0 8000000000000000 0\nk 8000000000000000 2\n");
}

Test(record, a_stream_is_made_before_it_is_used_and_once)
{
        CUstream made = OTHER;

        call((struct sp_record_call){.kind = '+', .out = &made}, CUDA_SUCCESS);
        alloc_on(OTHER, 0x1000);
        alloc_on(STREAM, 0x2000);
        sp_record_work(STREAM, CUDA_SUCCESS);
        end_stream(STREAM, CUDA_SUCCESS);
        end_stream(STREAM, CUDA_SUCCESS);
        expect_lines("+ 0 6000 0\nA 0 1000 8 0 6000\n"
                     "+ 0 5000 1\nA 0 2000 8 0 5000\nk 5000 1\n- 0 5000\n");
}

Test(record, a_stream_that_could_not_be_destroyed_is_still_known)
{
        sp_record_work(STREAM, CUDA_SUCCESS);
        end_stream(STREAM, CUDA_ERROR_INVALID_CONTEXT);
        alloc_on(STREAM, 0x1000);
        end_stream(STREAM, CUDA_SUCCESS);
        expect_lines("+ 0 5000 1\nk 5000 1\nA 0 1000 8 0 5000\n- 0 5000\n");
}

static void *allocate(void *unused)
{
        alloc_on(CU_STREAM_PER_THREAD, 0x1000);
        return unused;
}

Test(record, threads_have_numbers_and_streams_of_their_own)
{
        pthread_t thread;

        allocate(NULL);
        for (int i = 0; i < 2; i++) {
                pthread_create(&thread, NULL, allocate, NULL);
                pthread_join(thread, NULL);
        }
        allocate(NULL);
        expect_lines("+ 0 8000000000000000 0\nA 0 1000 8 0 8000000000000000\n"
                     "+ 1 8000000000000001 0\nA 1 1000 8 0 8000000000000001\n"
                     "+ 2 8000000000000002 0\nA 2 1000 8 0 8000000000000002\n"
                     "A 0 1000 8 0 8000000000000000\n");
}

Test(record, waits_that_fail_and_questions)
{
        call((struct sp_record_call){.kind = 's', .stream = CU_STREAM_LEGACY}, CUDA_SUCCESS);
        call((struct sp_record_call){.kind = 's', .stream = CU_STREAM_LEGACY},
             CUDA_ERROR_LAUNCH_FAILED);
        call((struct sp_record_call){.kind = 'Q', .stream = CU_STREAM_LEGACY},
             CUDA_ERROR_NOT_READY);
        call((struct sp_record_call){.kind = 'q', .handle = 0xabc}, CUDA_SUCCESS);
        expect_lines("s 0 0\nQ 0 0 600\nq 0 abc 0\n");
}

Test(record, what_may_be_captured_is_left_out)
{
        atomic_fetch_add(&sp_captures, 1);
        alloc_on(STREAM, 0x1000);
        sp_record_work(STREAM, CUDA_SUCCESS);
        alloc(0x2000, 64, CUDA_SUCCESS);
        atomic_fetch_sub(&sp_captures, 1);
        give_back(0x2000, CUDA_SUCCESS);
        expect_lines("a 0 2000 64 0\nf 0 2000\n");
}

Test(record, a_stream_for_which_there_is_no_memory_is_not_used)
{
        is_host_full = true;
        sp_record_work(STREAM, CUDA_SUCCESS);
        alloc(0x1000, 64, CUDA_SUCCESS);
        is_host_full = false;
        sp_record_work(STREAM, CUDA_SUCCESS);
        expect_lines("a 0 1000 64 0\n+ 0 5000 1\nk 5000 1\n");
}

Test(record, errno_stays_as_it_is)
{
        errno = 77;
        give_back_many();
        unlink(path);
        give_back_many();
        sp_record_finish();
        cr_expect_eq(errno, 77);
}

Test(record, nothing_comes_behind_the_end)
{
        alloc(0x1000, 64, CUDA_SUCCESS);
        sp_record_finish();
        give_back_many();
        expect_lines("a 0 1000 64 0\n");
}

Test(record, a_child_leaves_the_file_alone)
{
        pid_t child;

        alloc(0x1000, 64, CUDA_SUCCESS);
        child = fork();
        if (child == 0) {
                give_back_many();
                sp_record_flush();
                sp_record_finish();
                _exit(0);
        }
        cr_assert_eq(waitpid(child, NULL, 0), child);
        expect_lines("a 0 1000 64 0\n");
}

static void *cancelled(void *unused)
{
        pthread_cancel(pthread_self());
        give_back_many();
        pthread_testcancel();
        return unused;
}

Test(record, a_thread_that_is_cancelled_holds_no_lock, .timeout = 20)
{
        pthread_t thread;
        void *result;

        pthread_create(&thread, NULL, cancelled, NULL);
        pthread_join(thread, &result);
        cr_expect_eq(result, PTHREAD_CANCELED);
        give_back(0, CUDA_SUCCESS);
}

/* the file */

Test(record_file, is_made_where_the_process_was)
{
        char folder[] = "/tmp/streampool-test-XXXXXX", name[64];
        struct sp_record_file file;

        cr_assert(mkdtemp(folder) && chdir(folder) == 0);
        cr_assert(sp_record_file_make(&file, "a"));
        cr_assert_eq(chdir("/"), 0);
        cr_expect(sp_record_file_add(&file, "b\n", 2));
        cr_expect_eq(file.bytes, 2);
        snprintf(name, sizeof(name), "%s/a", folder);
        cr_expect_str_eq(file.path, name);
        cr_expect_eq(unlink(name), 0);
        rmdir(folder);
}

Test(record_file, that_is_not_there_any_more_ends)
{
        struct sp_record_file file;

        snprintf(path, sizeof(path), "/tmp/streampool-test-file.%d", (int)getpid());
        cr_assert(sp_record_file_make(&file, path));
        cr_assert(sp_record_file_add(&file, "a\n", 2));
        unlink(path);
        cr_expect_not(sp_record_file_add(&file, "b\n", 2));
        cr_expect_neq(access(path, F_OK), 0, "it is not made again");
        cr_expect_eq(file.bytes, 2);
        cr_assert(sp_record_file_make(&file, path));
        cr_expect(sp_record_file_add(&file, "c\n", 2));
        unlink(path);
}
