/* SPDX-License-Identifier: Apache-2.0 */

/* Edges -- what runs behind what, by search */

#include "edges.h"

#include <string.h>

void edges_init(struct edges *edges, const struct spm_actor *actors, int count)
{
        memset(edges, 0, sizeof(*edges));
        memcpy(edges->actor, actors, (size_t)count * sizeof(*actors));
        edges->streams = count;
        edges->host = EDGES_NONE;
        for (int i = 0; i < EDGES_STREAMS; i++)
                edges->last[i] = EDGES_NONE;
        for (int i = 0; i < EDGES_EVENTS; i++)
                edges->record[i] = EDGES_NONE;
}

static void draw(struct edges *edges, int node, int earlier)
{
        struct edges_node *to = &edges->nodes[node];

        if (earlier != EDGES_NONE)
                to->behind[to->count++] = earlier;
}

static bool is_blocking(const struct spm_actor *actor)
{
        return actor->kind == SPM_STREAM_BLOCKING || actor->kind == SPM_STREAM_PER_THREAD;
}

static bool has_barrier(const struct spm_actor *a, const struct spm_actor *b)
{
        return a->context == b->context && ((a->kind == SPM_STREAM_LEGACY && is_blocking(b)) ||
                                            (is_blocking(a) && b->kind == SPM_STREAM_LEGACY));
}

static int add(struct edges *edges)
{
        int node = edges->count++;

        draw(edges, node, edges->host);
        return node;
}

int edges_submit(struct edges *edges, int stream)
{
        uint32_t context = edges->actor[stream].context;
        int node = add(edges);

        draw(edges, node, edges->last[stream]);
        for (int i = 0; i < edges->streams; i++)
                if (has_barrier(&edges->actor[stream], &edges->actor[i]))
                        draw(edges, node, edges->last[i]);
        for (int i = 0; i < edges->bases[context]; i++)
                draw(edges, node, edges->base[context][i]);
        edges->last[stream] = node;
        return node;
}

int edges_record(struct edges *edges, int event, int stream)
{
        return edges->record[event] = edges_submit(edges, stream);
}

static void draw_context(struct edges *edges, int node, uint32_t context)
{
        for (int i = 0; i < edges->streams; i++)
                if (edges->actor[i].context == context)
                        draw(edges, node, edges->last[i]);
        for (int i = 0; i < edges->bases[context]; i++)
                draw(edges, node, edges->base[context][i]);
}

int edges_record_context(struct edges *edges, int event, uint32_t context)
{
        int node = add(edges);

        draw_context(edges, node, context);
        return edges->record[event] = node;
}

int edges_wait(struct edges *edges, int stream, int event)
{
        int node = edges_submit(edges, stream);

        draw(edges, node, edges->record[event]);
        return node;
}

int edges_wait_for_anything(struct edges *edges, int stream)
{
        int node = edges_submit(edges, stream);

        edges->nodes[node].is_open = true;
        return node;
}

bool edges_wait_context(struct edges *edges, uint32_t context, int event)
{
        if (edges->bases[context] == 4)
                return false;
        edges->base[context][edges->bases[context]++] = edges->record[event];
        return true;
}

/* What the host has seen the end of waits for nothing any more. */
static void see_with(struct edges *edges, int node)
{
        edges->host = node;
        for (int i = 0; i < edges->count; i++)
                if (edges->nodes[i].is_open && edges_reach(edges, node, i))
                        edges->nodes[i].is_open = false;
}

void edges_see(struct edges *edges, int seen)
{
        int node = add(edges);

        draw(edges, node, seen);
        see_with(edges, node);
}

void edges_see_stream(struct edges *edges, int stream)
{
        int node = add(edges);

        draw(edges, node, edges->last[stream]);
        for (int i = 0; i < edges->streams; i++)
                if (has_barrier(&edges->actor[stream], &edges->actor[i]))
                        draw(edges, node, edges->last[i]);
        see_with(edges, node);
}

void edges_see_context(struct edges *edges, uint32_t context)
{
        int node = add(edges);

        draw_context(edges, node, context);
        see_with(edges, node);
}

void edges_hide(struct edges *edges, int open, int node)
{
        struct edges_node *to = &edges->nodes[open];

        if (to->is_open && to->count < EDGES_STREAMS + 8 && !edges_reach(edges, node, open))
                draw(edges, open, node);
}

static bool search(const struct edges *edges, int node, int earlier, bool *visited)
{
        const struct edges_node *from = &edges->nodes[node];

        if (node == earlier)
                return true;
        if (visited[node])
                return false;
        visited[node] = true;
        for (int i = 0; i < from->count; i++)
                if (search(edges, from->behind[i], earlier, visited))
                        return true;
        return false;
}

bool edges_reach(const struct edges *edges, int node, int earlier)
{
        bool visited[EDGES_NODES] = {false};

        return node != EDGES_NONE && search(edges, node, earlier, visited);
}

bool edges_host_reaches(const struct edges *edges, uint32_t context, int earlier)
{
        if (edges_reach(edges, edges->host, earlier))
                return true;
        for (int i = 0; context && i < edges->streams; i++)
                if (edges->actor[i].context == context &&
                    edges_reach(edges, edges->last[i], earlier))
                        return true;
        for (int i = 0; context && i < edges->bases[context]; i++)
                if (edges_reach(edges, edges->base[context][i], earlier))
                        return true;
        return false;
}
