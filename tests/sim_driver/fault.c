/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Fault -- what was called, and what is made to fail
 *
 * Counters are an atomic array beside sim_exports, found through a hash of the
 * symbol that is built once. Faults are few, so they are a short list under its
 * own small lock, which is taken only while one is waiting.
 *
 *   SIM_FAIL=symbol:nth:code,...  the nth call of the symbol answers the code
 *   SIM_LOG=path                  one line a call: its symbol
 *   SIM_CALLS=path                counts at exit: symbol, tab, calls
 *   SIM_JITTER=nanoseconds        every fourth call or so waits up to that long before it begins
 *
 * Jitter is for races between what a caller asks and what it then does: on a quiet machine the
 * moment between two calls is too short for another thread to get in.
 */

#include "fault.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "control.h"
#include "exports.h"
#include "sim.h"

#define ROWS_MAX   1024
#define SLOTS      4096 /* a power of two, several times the rows */
#define FAULTS_MAX 64
#define NO_ROW     (-1)
#define ANY_ROW    (-2)

struct fault {
        int row;           /* ANY_ROW: any symbol */
        unsigned int left; /* calls until it fires; 0: unused */
        int code;
};

static atomic_ullong calls[ROWS_MAX];
static short slots[SLOTS]; /* row + 1; written once under `once` */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int log_file = -1;
static unsigned int jitter_ns;
static pid_t process;

/* Guarded by fault_lock; fault_count also read without it, to pass quickly. */
static pthread_mutex_t fault_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fault faults[FAULTS_MAX];
static atomic_int fault_count;

static unsigned int hash(const char *symbol)
{
        unsigned int value = 2166136261u;

        while (*symbol)
                value = (value ^ (unsigned char)*symbol++) * 16777619u;
        return value;
}

static void read_faults(void);

static void start(void)
{
        const char *path = getenv("SIM_LOG");

        for (int row = 0; row < sim_export_count && row < ROWS_MAX; row++) {
                unsigned int at = hash(sim_exports[row].symbol);

                while (slots[at % SLOTS])
                        at++;
                slots[at % SLOTS] = (short)(row + 1);
        }
        process = getpid();
        jitter_ns = getenv("SIM_JITTER") ? (unsigned int)atoi(getenv("SIM_JITTER")) : 0;
        if (path)
                log_file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        read_faults();
}

/* The row of a symbol, or NO_ROW. */
static int find(const char *symbol)
{
        unsigned int at = hash(symbol);

        for (; slots[at % SLOTS]; at++) {
                int row = slots[at % SLOTS] - 1;

                if (!strcmp(sim_exports[row].symbol, symbol))
                        return row;
        }
        return NO_ROW;
}

static void log_call(const char *symbol)
{
        char line[128];
        int length = snprintf(line, sizeof(line), "%s\n", symbol);

        if (length > 0 && write(log_file, line, (size_t)length) != length)
                log_file = -1;
}

static void wait_a_moment(void)
{
        /* Per thread because it is a thread's own sequence. */
        static __thread unsigned int seed;
        struct timespec nap = {0};

        if (!seed)
                seed = (unsigned int)sim_thread();
        nap.tv_nsec = rand_r(&seed) % 4 ? 0 : rand_r(&seed) % jitter_ns;
        if (nap.tv_nsec)
                nanosleep(&nap, NULL);
}

int sim_fault_count(const char *symbol)
{
        int row;

        pthread_once(&once, start);
        row = find(symbol);
        if (row == NO_ROW) {
                fprintf(stderr, "sim: %s is called but not in exports.tsv\n", symbol);
                abort();
        }
        atomic_fetch_add_explicit(&calls[row], 1, memory_order_relaxed);
        if (log_file >= 0)
                log_call(symbol);
        if (jitter_ns)
                wait_a_moment();
        return row;
}

int sim_fault_due(int row)
{
        int code = 0;

        if (!atomic_load_explicit(&fault_count, memory_order_acquire))
                return 0;
        pthread_mutex_lock(&fault_lock);
        for (int i = 0; i < FAULTS_MAX; i++) {
                struct fault *fault = &faults[i];

                if (!fault->left || (fault->row != row && fault->row != ANY_ROW))
                        continue;
                if (--fault->left)
                        continue;
                atomic_fetch_sub(&fault_count, 1);
                if (!code)
                        code = fault->code;
        }
        pthread_mutex_unlock(&fault_lock);
        return code;
}

static void add_fault(const char *symbol, unsigned int nth, int code)
{
        int row = strcmp(symbol, "*") ? find(symbol) : ANY_ROW;

        if (row == NO_ROW || !nth) {
                fprintf(stderr, "sim: cannot make call %u of %s fail\n", nth, symbol);
                abort();
        }
        pthread_mutex_lock(&fault_lock);
        for (int i = 0; i < FAULTS_MAX; i++) {
                if (faults[i].left)
                        continue;
                faults[i] = (struct fault){.row = row, .left = nth, .code = code};
                atomic_fetch_add(&fault_count, 1);
                break;
        }
        pthread_mutex_unlock(&fault_lock);
}

static void read_faults(void)
{
        const char *text = getenv("SIM_FAIL");
        char symbol[64];
        unsigned int nth;
        int code, used;

        while (text && *text) {
                if (sscanf(text, "%63[^:]:%u:%d%n", symbol, &nth, &code, &used) != 3) {
                        fprintf(stderr, "sim: SIM_FAIL is not symbol:nth:code,...: %s\n", text);
                        abort();
                }
                add_fault(symbol, nth, code);
                text += used;
                text += *text == ',';
        }
}

void sim_fail(const char *symbol, unsigned int nth, int code)
{
        pthread_once(&once, start);
        add_fault(symbol, nth, code);
}

void sim_fail_none(void)
{
        pthread_mutex_lock(&fault_lock);
        memset(faults, 0, sizeof(faults));
        atomic_store(&fault_count, 0);
        pthread_mutex_unlock(&fault_lock);
}

uint64_t sim_calls(const char *symbol)
{
        int row;

        pthread_once(&once, start);
        row = find(symbol);
        return row == NO_ROW ? 0 : atomic_load(&calls[row]);
}

uint64_t sim_calls_all(void)
{
        uint64_t sum = 0;

        for (int row = 0; row < ROWS_MAX; row++)
                sum += atomic_load(&calls[row]);
        return sum;
}

void sim_calls_reset(void)
{
        for (int row = 0; row < ROWS_MAX; row++)
                atomic_store(&calls[row], 0);
}

/* A fork child has its parent's counts and must not write them again. */
static __attribute__((destructor)) void write_calls(void)
{
        const char *path = getenv("SIM_CALLS");
        FILE *file;

        if (!path || process != getpid())
                return;
        file = fopen(path, "we");
        if (!file)
                return;
        for (int row = 0; row < sim_export_count && row < ROWS_MAX; row++) {
                unsigned long long count = atomic_load(&calls[row]);

                if (count)
                        fprintf(file, "%s\t%llu\n", sim_exports[row].symbol, count);
        }
        fclose(file);
}
