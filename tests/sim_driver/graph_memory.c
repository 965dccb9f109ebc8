/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Graph -- work that was written down, to be launched later
 *
 * Memory of allocation nodes. Its address is the graph's for ever. Where no node
 * of the graph frees it, it is out after a launch: the program frees it, also when
 * the graphs are gone, and no launch is accepted before (unless the executable
 * graph frees by itself).
 */

#include "graph.h"

#include <stdlib.h>

/* Guarded by: sim_mutex. */
static struct sim_graph_memory *memories;

struct sim_graph_memory *sim_graph_memory_new(CUdeviceptr address)
{
        struct sim_graph_memory *memory = calloc(1, sizeof(*memory));

        if (!memory)
                sim_abort("out of host memory");
        memory->references = 1;
        memory->address = address;
        memory->next = memories;
        memories = memory;
        return memory;
}

void sim_graph_memory_put(struct sim_graph_memory *memory)
{
        struct sim_graph_memory **place = &memories;

        if (!memory || --memory->references)
                return;
        while (*place != memory)
                place = &(*place)->next;
        *place = memory->next;
        sim_graph_memory_give(memory->address);
        free(memory);
}

struct sim_graph_memory *sim_graph_memory_find(struct sim_graph *graph, CUdeviceptr address)
{
        for (size_t i = 0; i < graph->count; i++) {
                struct sim_graph_memory *memory = graph->nodes[i]->memory;

                if (memory && memory->address == address && !memory->freed)
                        return memory;
        }
        return NULL;
}

CUresult sim_graph_memory_launch(struct sim_graph *graph)
{
        for (size_t i = 0; i < graph->count; i++) {
                struct sim_graph_memory *memory = graph->nodes[i]->memory;

                if (memory && memory->out && !graph->frees_on_launch)
                        return CUDA_ERROR_INVALID_VALUE;
        }
        for (size_t i = 0; i < graph->count; i++) {
                struct sim_graph_memory *memory = graph->nodes[i]->memory;

                if (!memory || memory->freed || memory->out)
                        continue;
                memory->out = true;
                memory->references++;
        }
        return CUDA_SUCCESS;
}

/*
 * Where the graphs are gone, this ends the memory, and the host waits for its last
 * uses: the real driver would not.
 */
CUresult sim_graph_memory_free(CUdeviceptr address, struct sim_stream *stream)
{
        struct sim_graph_memory *memory = memories;
        struct sim_context *context;

        while (memory && memory->address != address)
                memory = memory->next;
        if (!memory || !memory->out)
                return CUDA_ERROR_INVALID_VALUE;
        memory->out = false;
        if (memory->references == 1 && stream)
                sim_wait_stream(stream);
        else if (memory->references == 1 && !sim_current(&context))
                sim_wait_context(context);
        sim_graph_memory_put(memory);
        return CUDA_SUCCESS;
}
