/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conformance -- what a driver answers, written down as text
 *
 *   conformance [--jobs N]            all cases, N processes at once
 *   conformance [--jobs N] GROUP...   the cases of these groups, or single cases
 *   conformance --list                name, flags and reason of every case
 *   conformance --run CASE...         (internal) these cases, in this process
 */
#include "conformance.h"
#include "runner.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CASES_MAX        256
#define SECONDS_PER_CASE 60

struct conf_common conf;

static const struct conf_case *cases[CASES_MAX];
static int case_count;

static const struct conf_case *const groups[] = {
        conf_lookup, conf_memory, conf_async,   conf_misuse,    conf_query,
        conf_kinds,  conf_vmm,    conf_pool,    conf_pool_life, conf_reuse,
        conf_order,  conf_graph,  conf_capture, conf_context,   conf_process,
};

void conf_say(const char *format, ...)
{
        va_list arguments;

        putchar(' ');
        va_start(arguments, format);
        vprintf(format, arguments);
        va_end(arguments);
        fflush(stdout);
}

CUresult conf_code(const char *call, CUresult result)
{
        conf_say("%s=%d", call, (int)result);
        return result;
}

/* threads */

struct thread_work {
        CUcontext context;
        void (*work)(void *argument);
        void *argument;
};

static void *thread_main(void *argument)
{
        const struct thread_work *work = argument;

        if (work->context)
                CU_OK(cu.CtxSetCurrent(work->context));
        work->work(work->argument);
        return NULL;
}

void conf_on_thread(CUcontext context, void (*work)(void *), void *argument)
{
        struct thread_work all = {.context = context, .work = work, .argument = argument};
        pthread_t thread;

        if (pthread_create(&thread, NULL, thread_main, &all)) {
                fprintf(stderr, "no thread\n");
                exit(99);
        }
        pthread_join(thread, NULL);
}

/* the process that runs cases */

void conf_cold_start(void)
{
        conf.context = cu_start(0);
        CU_OK(cu.DeviceGet(&conf.device, 0));
        cu_load_kernels(&conf.kernels);
        CU_OK(cu.StreamCreate(&conf.n1, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.StreamCreate(&conf.n2, CU_STREAM_NON_BLOCKING));
        CU_OK(cu.StreamCreate(&conf.b1, CU_STREAM_DEFAULT));
        CU_OK(cu.StreamCreate(&conf.b2, CU_STREAM_DEFAULT));
}

static int run_here(void)
{
        bool alone = cases[0]->flags & (CONF_ALONE | CONF_COLD);

        cu_load();
        if (!(cases[0]->flags & CONF_COLD))
                conf_cold_start();
        for (int i = 0; i < case_count; i++) {
                printf("%s", cases[i]->name);
                fflush(stdout);
                alarm(SECONDS_PER_CASE);
                cases[i]->run();
                alarm(0);
                if (!alone)
                        CU_OK(cu.CtxSynchronize());
                printf("\n");
                fflush(stdout);
        }
        return 0;
}

/* the command line */

static void list_cases(void)
{
        for (int i = 0; i < case_count; i++) {
                const char *verb = cases[i]->flags & CONF_KILLS     ? "kills"
                                   : cases[i]->flags & CONF_DIFFERS ? "differs"
                                                                    : "same";

                printf("%s\t%s\t%s\n", cases[i]->name, verb, cases[i]->why ? cases[i]->why : "");
        }
}

/* Whether the command line asks for @one: by its name, by its group, or by nothing at all. */
static bool is_wanted(const struct conf_case *one, int argc, char **argv)
{
        for (int i = 0; i < argc; i++) {
                size_t length = strlen(argv[i]);

                if (!strcmp(one->name, argv[i]))
                        return true;
                if (!strncmp(one->name, argv[i], length) && one->name[length] == '.')
                        return true;
        }
        return argc == 0;
}

int main(int argc, char **argv)
{
        bool list = argc > 1 && !strcmp(argv[1], "--list");
        bool run = argc > 1 && !strcmp(argv[1], "--run");
        bool counted = argc > 2 && !strcmp(argv[1], "--jobs");
        int skip = counted ? 3 : list || run ? 2 : 1;

        for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++)
                for (const struct conf_case *one = groups[g]; one->name; one++) {
                        if (!is_wanted(one, argc - skip, argv + skip))
                                continue;
                        if ((one->flags & CONF_KILLS) && !list)
                                continue;
                        cases[case_count++] = one;
                }
        if (list)
                list_cases();
        if (list || !case_count)
                return 0;
        if (run)
                return run_here();
        return runner_run(cases, case_count, counted ? atoi(argv[2]) : runner_jobs());
}
