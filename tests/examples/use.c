/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Use -- buffers that several streams work with, and a device that is told the fewest waits
 *
 * A producer writes a frame, three filters read it on streams of their own, and a mixer writes it
 * again. The program makes each stream wait for what spm_use_waits() says, and for nothing else;
 * then it frees the frame, and asks what it may be mistaken about.
 *
 * This program is its own device: an event is a record and a wait that the model is told of.
 *
 *   cc use.c $(pkg-config --cflags --libs streampool) -o use && ./use
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <streampool/model.h>

#define FILTERS 3
#define FRAME   ((size_t)8 << 20)

struct studio {
        struct spm_model *model;
        spm_context context;
        spm_pool pool;
        spm_stream producer;
        spm_stream filters[FILTERS];
        spm_stream mixer;
};

static void must(enum spm_status status, const char *what)
{
        if (status == SPM_OK)
                return;
        fprintf(stderr, "%s: %s\n", what, spm_status_name(status));
        exit(1);
}

static spm_stream add_stream(const struct studio *studio)
{
        spm_stream stream;

        must(spm_stream_add(studio->model, studio->context, SPM_STREAM_NON_BLOCKING, &stream),
             "stream");
        return stream;
}

static void begin(struct studio *studio)
{
        struct spm_pool_config config = {0};
        int i;

        config.kind = SPM_POOL_ASYNC;
        config.provider = SPM_PROVIDER_MODEL;
        config.track_uses = true;
        must(spm_model_new(NULL, &studio->model), "model");
        must(spm_context_add(studio->model, 0, &studio->context), "context");
        must(spm_pool_create(studio->model, &config, &studio->pool), "pool");
        studio->producer = add_stream(studio);
        studio->mixer = add_stream(studio);
        for (i = 0; i < FILTERS; i++)
                studio->filters[i] = add_stream(studio);
}

static struct spm_block_id allocate(const struct studio *studio, uint32_t tag)
{
        struct spm_request request = {0};
        struct spm_allocation allocation;
        struct spm_actions actions;
        enum spm_status status;

        request.pool = studio->pool;
        request.stream = studio->producer;
        request.size = FRAME;
        request.tag = tag;
        /* The pool makes up its memory, so there is nothing to carry out. */
        do
                status = spm_alloc(studio->model, &request, &allocation, &actions);
        while (status == SPM_AGAIN);
        must(status, "allocate");
        return spm_block_id(&allocation);
}

/* What a device would be told: an event at the end of one stream, and another that waits for it. */
static void order(const struct studio *studio, spm_stream first, spm_stream behind)
{
        struct spm_scope from = {SPM_SCOPE_STREAM, first};
        struct spm_scope to = {SPM_SCOPE_STREAM, behind};
        struct spm_actions actions;
        struct spm_ticket ticket;
        spm_event event;

        must(spm_event_add(studio->model, &event), "event");
        must(spm_record_begin(studio->model, event, from, &ticket, &actions), "record");
        spm_record_end(studio->model, &ticket, true);
        must(spm_wait_begin(studio->model, to, event, &ticket), "wait");
        spm_wait_end(studio->model, &ticket, true);
        must(spm_event_remove(studio->model, event), "event");
}

/* The waits of one access. Return: how many. */
static unsigned int wait_for(const struct studio *studio, struct spm_block_id id,
                             enum spm_use_access access, spm_stream stream)
{
        struct spm_use_wait waits[FILTERS + 2]; /* one a stream */
        unsigned int count;
        unsigned int i;

        must(spm_use_waits(studio->model, id, access, stream, waits, FILTERS + 2, &count), "ask");
        for (i = 0; i < count; i++)
                order(studio, waits[i].stream, stream);
        return count;
}

static void work(const struct studio *studio, const char *who, struct spm_block_id id,
                 enum spm_use_access access, spm_stream stream)
{
        struct spm_use use;
        unsigned int count;

        must(spm_use_prepare(studio->model, id, access, stream, &use), "prepare");
        count = wait_for(studio, id, access, stream);
        /* Here the kernel is launched. */
        must(spm_use_finish(studio->model, &use, true), "finish");
        printf("  waits of the %s: %u\n", who, count);
}

/* A kernel that reads one frame and writes another: all its buffers at once. */
static void launch(const struct studio *studio, struct spm_block_id from, struct spm_block_id to)
{
        const struct spm_use_wait *waits;
        struct spm_launch *kernel;
        unsigned int count;
        unsigned int i;

        must(spm_launch_new(studio->model, studio->mixer, true, &kernel), "launch");
        must(spm_launch_add(kernel, from, SPM_USE_READ), "use");
        must(spm_launch_add(kernel, to, SPM_USE_WRITE), "use");
        must(spm_launch_preflight(kernel, &waits, &count), "preflight");
        for (i = 0; i < count; i++)
                order(studio, waits[i].stream, studio->mixer);
        must(spm_launch_commit(kernel), "commit");
        printf("  waits of a kernel that uses both: %u\n", count);
        spm_launch_free(kernel);
}

static void print_count(const struct studio *studio, struct spm_block_id id)
{
        unsigned int count;

        must(spm_use_count(studio->model, id, &count), "count");
        printf("  uses that a free would be behind: %u\n", count);
}

static void print_mistakes(const struct studio *studio, struct spm_block_id old)
{
        struct spm_block_id now = allocate(studio, 0);
        enum spm_life life;

        must(spm_life_of(studio->model, old, &life), "life");
        printf("  the old frame is %s; its memory is %s\n", spm_life_name(life),
               now.address == old.address ? "a new frame's" : "nobody's yet");
        printf("  a use of the old frame: %s\n",
               spm_status_name(
                       spm_use_record(studio->model, old, SPM_USE_READ, studio->filters[0])));
        printf("  a copy past the end of the new one: %s\n",
               spm_status_name(spm_use_range(studio->model, now, now.address, FRAME + 1)));
}

static bool print_tag(const struct spm_tag_figures *figures, void *user)
{
        (void)user;
        printf("  %-8s %" PRIu64 " bytes live, %" PRIu64 " at the peak of all\n",
               figures->tag ? figures->name : "(none)", figures->live_bytes,
               figures->bytes_at_peak);
        return true;
}

int main(void)
{
        struct studio studio;
        struct spm_block_id frame;
        struct spm_block_id other;
        struct spm_actions actions;
        struct spm_use end;
        uint32_t frames;
        int i;

        begin(&studio);
        must(spm_tag_add(studio.model, "frames", &frames), "tag");
        printf("a frame\n");
        frame = allocate(&studio, frames);
        for (i = 0; i < FILTERS; i++)
                work(&studio, "filter", frame, SPM_USE_READ, studio.filters[i]);
        print_count(&studio, frame);
        work(&studio, "mixer", frame, SPM_USE_READ_WRITE, studio.mixer);
        print_count(&studio, frame);

        other = allocate(&studio, frames);
        launch(&studio, frame, other);

        must(spm_use_prepare(studio.model, frame, SPM_USE_FREE, studio.producer, &end), "prepare");
        printf("  waits of the free: %u\n",
               wait_for(&studio, frame, SPM_USE_FREE, studio.producer));
        must(spm_use_free(studio.model, &end, true, NULL, &actions), "free");

        printf("mistakes\n");
        print_mistakes(&studio, frame);
        printf("tags\n");
        spm_each_tag(studio.model, print_tag, NULL);
        spm_model_free(studio.model);
        return 0;
}
