/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conformance -- what a driver answers, written down as text
 *
 *   conformance                 all cases
 *   conformance GROUP...        the cases of these groups, or single cases
 *   conformance --list          name, flags and reason of every case
 *   conformance --run FIRST     (internal) the cases of one process
 *
 * The first process never calls CUDA. It starts itself again for every run of
 * cases that may share a process, copies what they print, and counts lines: if
 * a process dies in the middle of a line, the line says so and the next
 * process starts with the next case.
 */
#include "conformance.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CASES_MAX        256
#define SECONDS_PER_CASE 60

struct conf_common conf;

static const struct conf_case *cases[CASES_MAX];
static int case_count;

static const struct conf_case *const groups[] = {
        conf_lookup, conf_memory, conf_async, conf_misuse,  conf_query,   conf_kinds,   conf_vmm,
        conf_pool,   conf_order,  conf_graph, conf_capture, conf_context, conf_process,
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

static bool is_alone(const struct conf_case *one)
{
        return one->flags & (CONF_ALONE | CONF_COLD);
}

static int run_from(int first)
{
        cu_load();
        if (!(cases[first]->flags & CONF_COLD))
                conf_cold_start();
        for (int i = first; i < case_count; i++) {
                if (i > first && (is_alone(cases[i]) || is_alone(cases[first])))
                        break;
                printf("%s", cases[i]->name);
                fflush(stdout);
                alarm(SECONDS_PER_CASE);
                cases[i]->run();
                alarm(0);
                if (!is_alone(cases[i]))
                        CU_OK(cu.CtxSynchronize());
                printf("\n");
                fflush(stdout);
        }
        return 0;
}

/* the process that starts them */

static void list_cases(void)
{
        for (int i = 0; i < case_count; i++) {
                const char *verb = cases[i]->flags & CONF_KILLS     ? "kills"
                                   : cases[i]->flags & CONF_DIFFERS ? "differs"
                                                                    : "same";

                printf("%s\t%s\t%s\n", cases[i]->name, verb, cases[i]->why ? cases[i]->why : "");
        }
}

static pid_t start_from(const char *self, int first, int argc, char **argv, int out)
{
        char number[16];
        char *arguments[CASES_MAX] = {(char *)self, (char *)"--run", number};
        pid_t child = fork();

        if (child)
                return child;
        snprintf(number, sizeof(number), "%d", first);
        for (int i = 0; i < argc; i++)
                arguments[3 + i] = argv[i];
        dup2(out, STDOUT_FILENO);
        close(out);
        execv("/proc/self/exe", arguments);
        _exit(127);
}

/* Copy what one process prints; return how many lines it finished. */
static int copy_lines(int in, bool *in_line)
{
        int lines = 0;
        char c;

        *in_line = false;
        while (read(in, &c, 1) == 1) {
                putchar(c);
                *in_line = c != '\n';
                lines += c == '\n';
        }
        fflush(stdout);
        return lines;
}

static int run_all(const char *self, int argc, char **argv)
{
        int failures = 0;

        for (int next = 0; next < case_count;) {
                int ends[2], status, lines;
                bool in_line;
                pid_t child;

                if (pipe(ends))
                        return 99;
                child = start_from(self, next, argc, argv, ends[1]);
                close(ends[1]);
                lines = copy_lines(ends[0], &in_line);
                close(ends[0]);
                if (waitpid(child, &status, 0) < 0)
                        return 99;
                next += lines;
                if (WIFEXITED(status) && !WEXITSTATUS(status) && !in_line && lines)
                        continue;
                if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
                        return 77;
                failures++;
                if (!in_line && next < case_count)
                        printf("%s", cases[next]->name);
                if (WIFSIGNALED(status))
                        printf(" killed by signal %d\n", WTERMSIG(status));
                else
                        printf(" ended with status %d\n", WEXITSTATUS(status));
                next++;
        }
        return failures ? 1 : 0;
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
        bool run = argc > 2 && !strcmp(argv[1], "--run");
        int skip = run ? 3 : list ? 2 : 1;

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
                return run_from(atoi(argv[2]));
        return run_all(argv[0], argc - skip, argv + skip);
}
