/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runner -- the processes that run the cases, several at once
 *
 * This process never calls CUDA. It cuts the cases into batches, starts itself
 * again for each of them with the names of the cases, and collects lines. If a
 * process dies in the middle of a line, the line says so and the cases after it
 * make another batch. Cases that measure time or free memory come last, while
 * nobody else uses the device.
 */
#define _GNU_SOURCE /* sched_getaffinity() */
#include "runner.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BATCH_MAX 16
#define JOBS_MAX  8
#define NO_DRIVER 77

struct batch {
        int member[BATCH_MAX]; /* of cases */
        int count;
        struct batch *next;
};

struct job {
        pid_t child; /* 0: none */
        int in;
        struct batch *batch;
        int done; /* cases whose lines have ended */
};

struct line {
        char *text;
        size_t length;
        bool complete;
};

static const struct conf_case *const *cases;
static struct line *lines;
static int case_count, printed, failures;
static bool no_driver;

static _Noreturn void give_up(const char *why)
{
        fprintf(stderr, "%s\n", why);
        exit(99);
}

int runner_jobs(void)
{
        cpu_set_t mine;
        int count = sched_getaffinity(0, sizeof(mine), &mine) ? 1 : CPU_COUNT(&mine);

        return count > JOBS_MAX ? JOBS_MAX : count;
}

/* lines */

static void add_text(int index, const char *text, size_t length)
{
        struct line *line = &lines[index];
        char *grown = realloc(line->text, line->length + length + 1);

        if (!grown)
                give_up("out of memory");
        memcpy(grown + line->length, text, length);
        grown[line->length + length] = '\0';
        line->text = grown;
        line->length += length;
}

static void complete(int index)
{
        lines[index].complete = true;
        for (; printed < case_count && lines[printed].complete; printed++)
                puts(lines[printed].text);
        fflush(stdout);
}

/* batches */

static void add_member(struct batch **queue, int index, bool alone)
{
        struct batch **last = queue, *batch;

        while (*last && (*last)->next)
                last = &(*last)->next;
        if (*last && !alone && (*last)->count < BATCH_MAX &&
            !(cases[(*last)->member[0]]->flags & (CONF_ALONE | CONF_COLD))) {
                (*last)->member[(*last)->count++] = index;
                return;
        }
        batch = calloc(1, sizeof(*batch));
        if (!batch)
                give_up("out of memory");
        batch->member[batch->count++] = index;
        *(*last ? &(*last)->next : last) = batch;
}

static struct batch *make_queue(bool quiet)
{
        struct batch *queue = NULL;

        for (int i = 0; i < case_count; i++)
                if (!(cases[i]->flags & CONF_QUIET) == !quiet)
                        add_member(&queue, i, cases[i]->flags & (CONF_ALONE | CONF_COLD));
        return queue;
}

/* What is left of a batch after its first @done cases, in front of the queue. */
static void put_rest(struct batch **queue, struct batch *batch, int done)
{
        batch->count -= done;
        memmove(batch->member, batch->member + done, (size_t)batch->count * sizeof(int));
        batch->next = *queue;
        *queue = batch;
}

/* processes */

static void start(struct job *job, struct batch *batch)
{
        char *arguments[BATCH_MAX + 3] = {(char *)"conformance", (char *)"--run"};
        int ends[2];

        if (pipe(ends))
                give_up("no pipe");
        for (int i = 0; i < batch->count; i++)
                arguments[2 + i] = (char *)cases[batch->member[i]]->name;
        *job = (struct job){.in = ends[0], .batch = batch, .child = fork()};
        if (job->child < 0)
                give_up("no process");
        if (!job->child) {
                dup2(ends[1], STDOUT_FILENO);
                close(ends[0]);
                close(ends[1]);
                execv("/proc/self/exe", arguments);
                _exit(127);
        }
        close(ends[1]);
}

/* Sort what a process printed into its cases' lines; false: that was all. */
static bool take_output(struct job *job)
{
        char buffer[4096];
        ssize_t count = read(job->in, buffer, sizeof(buffer));

        for (ssize_t at = 0; at < count;) {
                char *end = memchr(buffer + at, '\n', (size_t)(count - at));
                ssize_t length = (end ? end - buffer : count) - at;
                int index;

                if (job->done == job->batch->count)
                        give_up("more lines than cases");
                index = job->batch->member[job->done];
                add_text(index, buffer + at, (size_t)length);
                at += length + 1;
                if (!end)
                        continue;
                if (++job->done < job->batch->count)
                        complete(index); /* the last one waits for how the process ends */
        }
        return count > 0;
}

/* The case that was running, or about to, or the last, when its process ended as @status says. */
static void say_end(struct job *job, int status)
{
        int last = job->batch->count - 1;
        int index = job->batch->member[job->done > last ? last : job->done];
        char text[64];

        failures++;
        if (!lines[index].length)
                add_text(index, cases[index]->name, strlen(cases[index]->name));
        if (WIFSIGNALED(status))
                snprintf(text, sizeof(text), " killed by signal %d", WTERMSIG(status));
        else
                snprintf(text, sizeof(text), " ended with status %d", WEXITSTATUS(status));
        add_text(index, text, strlen(text));
}

static void finish(struct job *job, struct batch **queue)
{
        int status;

        close(job->in);
        if (waitpid(job->child, &status, 0) < 0)
                give_up("a process is lost");
        job->child = 0;
        if (WIFEXITED(status) && WEXITSTATUS(status) == NO_DRIVER)
                no_driver = true;
        if (no_driver)
                return;
        if (status || job->done < job->batch->count)
                say_end(job, status);
        if (job->done < job->batch->count)
                job->done++;
        complete(job->batch->member[job->done - 1]);
        if (job->done < job->batch->count)
                put_rest(queue, job->batch, job->done);
        else
                free(job->batch);
}

static void run_queue(struct batch *queue, int jobs)
{
        struct job job[JOBS_MAX] = {{0}};
        int running = 0;

        while (running || (queue && !no_driver)) {
                struct pollfd ends[JOBS_MAX];

                for (int i = 0; i < jobs && queue && !no_driver; i++) {
                        struct batch *batch = queue;

                        if (job[i].child)
                                continue;
                        queue = batch->next;
                        start(&job[i], batch);
                        running++;
                }
                for (int i = 0; i < jobs; i++)
                        ends[i] = (struct pollfd){job[i].child ? job[i].in : -1, POLLIN, 0};
                if (poll(ends, (nfds_t)jobs, -1) < 0)
                        give_up("poll failed");
                for (int i = 0; i < jobs; i++) {
                        if (!ends[i].revents || take_output(&job[i]))
                                continue;
                        finish(&job[i], &queue);
                        running--;
                }
        }
}

int runner_run(const struct conf_case *const *wanted, int count, int jobs)
{
        cases = wanted;
        case_count = count;
        lines = calloc((size_t)count, sizeof(*lines));
        if (!lines)
                give_up("out of memory");
        jobs = jobs < 1 ? 1 : jobs > JOBS_MAX ? JOBS_MAX : jobs;
        run_queue(make_queue(false), jobs);
        run_queue(make_queue(true), 1);
        if (no_driver)
                return NO_DRIVER;
        return failures ? 1 : 0;
}
