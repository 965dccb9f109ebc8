/* SPDX-License-Identifier: Apache-2.0 */

/*
 * On launch -- records of events that nobody calls a record
 *
 * A kernel launch can carry an event that fires before the kernel ends, a graph
 * can record an event at each of its launches, another process can record one
 * that was shared with it (H12). What such an event says when it is queried is
 * not what its last cuEventRecord meant, so it says nothing to the model.
 *
 * Launches of graphs are here because no wait of ours may be made beside one
 * (stamp/graph_gate.h).
 *
 * Green contexts are here for the same reason: what their streams do is not
 * followed, and memory in them is the driver's.
 */

#include "base/life.h"
#include "route/arguments.h"
#include "route/order.h"
#include "route/perform.h"
#include "route/route.h"
#include "route/work.h"
#include "stamp/graph_gate.h"
#include "track/event.h"
#include "track/record.h"
#include "track/state.h"
#include "track/submit.h"

/* Before the call that makes it so: another thread may query in between. */
static void taint(CUevent handle, bool forever)
{
        spm_event event = sp_life_is_on() && handle ? sp_event_of(handle) : 0;

        if (!event)
                return;
        spm_event_taint(sp_model_enter(), event, forever);
        sp_model_leave();
        if (sp_order_is_on)
                sp_order_taint(event, forever);
}

static void taint_launch_events(const CUlaunchConfig *config)
{
        for (unsigned int i = 0; i < config->numAttrs; i++) {
                const CUlaunchAttribute *attribute = &config->attrs[i];

                if (attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
                        taint(attribute->value.programmaticEvent.event, false);
#if CUDA_VERSION >= 12030
                if (attribute->id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
                        taint(attribute->value.launchCompletionEvent.event, false);
#endif
        }
}

static CUresult launch(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
        struct sp_submitter *self = sp_submit_enter();
        CUresult result;

        /* Without a configuration the driver refuses. */
        if (config)
                sp_submit_mark(config->hStream, SP_SUBMIT_LAUNCH);
        result = sp_driver.cuLaunchKernelEx(config, f, params, extra);
        sp_submit_leave(self);
        return result;
}

static SP_COLD CUresult launch_looked_at(const CUlaunchConfig *config, CUfunction f, void **params,
                                         void **extra)
{
        static const char called[] = "cuLaunchKernelEx";
        struct sp_order_call call;
        CUresult result;

        if (sp_order_is_on)
                sp_order_begin(&call, called, config->hStream);
        if (sp_arguments_are_looked_at)
                sp_argument_look(called, f, config->hStream, params, extra);
        result = SP_ASK(launch(config, f, params, extra));
        if (sp_order_is_on)
                sp_order_end(&call, result);
        if (sp_record_is_on)
                sp_record_work(config->hStream, result);
        return result;
}

CUresult CUDAAPI sp_on_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params,
                                        void **extra)
{
        if (config && config->attrs)
                taint_launch_events(config);
        if (sp_launches_are_looked_at && config)
                return launch_looked_at(config, f, params, extra);
        return SP_ASK(launch(config, f, params, extra));
}

static CUstream stream_of(const CUDA_LAUNCH_PARAMS *launch)
{
        return launch->hStream ? launch->hStream : CU_STREAM_LEGACY;
}

static CUresult launch_on_all(CUDA_LAUNCH_PARAMS *list, unsigned int count, unsigned int flags)
{
        struct sp_submitter *self = sp_submit_enter();
        CUresult result;

        for (unsigned int i = 0; list && i < count; i++)
                sp_submit_mark(stream_of(&list[i]), SP_SUBMIT_LAUNCH);
        result = sp_driver.cuLaunchCooperativeKernelMultiDevice(list, count, flags);
        sp_submit_leave(self);
        return result;
}

static void look_at_all(const CUDA_LAUNCH_PARAMS *list, unsigned int count)
{
        for (unsigned int i = 0; list && i < count; i++)
                sp_argument_look("cuLaunchCooperativeKernelMultiDevice", list[i].function,
                                 stream_of(&list[i]), list[i].kernelParams, NULL);
}

/* The driver takes no default stream here; it is the one to say so. */
CUresult CUDAAPI sp_on_cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *list,
                                                            unsigned int count, unsigned int flags)
{
        CUresult result;

        if (sp_arguments_are_looked_at)
                look_at_all(list, count);
        for (unsigned int i = 0; sp_order_is_on && list && i < count; i++)
                sp_order_submit(stream_of(&list[i]));
        result = SP_ASK(launch_on_all(list, count, flags));
        for (unsigned int i = 0; sp_record_is_on && list && i < count; i++)
                sp_record_work(stream_of(&list[i]), result);
        return result;
}

/* graphs */

static CUresult launch_graph(CUgraphExec graph, CUstream stream)
{
        struct sp_submitter *self = sp_submit_enter();
        CUresult result;

        sp_submit_mark(stream, SP_SUBMIT_COPY);
        sp_graph_gate_enter(stream);
        result = sp_driver.cuGraphLaunch(graph, stream);
        sp_graph_gate_leave(stream);
        sp_submit_leave(self);
        return result;
}

CUresult CUDAAPI sp_on_cuGraphLaunch(CUgraphExec graph, CUstream stream)
{
        CUresult result;

        /* It may hold anything: host functions, waits for events, signals. */
        if (sp_order_is_on)
                sp_order_unfollowed(stream);
        result = SP_ASK(launch_graph(graph, stream));
        if (sp_order_is_on)
                sp_order_unfollowed(stream);
        return result;
}

CUresult CUDAAPI sp_on_cuGraphAddEventRecordNode(CUgraphNode *node, CUgraph graph,
                                                 const CUgraphNode *dependencies, size_t count,
                                                 CUevent event)
{
        taint(event, true);
        return sp_driver.cuGraphAddEventRecordNode(node, graph, dependencies, count, event);
}

CUresult CUDAAPI sp_on_cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event)
{
        taint(event, true);
        return sp_driver.cuGraphEventRecordNodeSetEvent(node, event);
}

CUresult CUDAAPI sp_on_cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node,
                                                          CUevent event)
{
        taint(event, true);
        return sp_driver.cuGraphExecEventRecordNodeSetEvent(exec, node, event);
}

#if CUDA_VERSION >= 12020
static void taint_node_event(const CUgraphNodeParams *params)
{
        if (params && params->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
                taint(params->eventRecord.event, true);
}

CUresult CUDAAPI sp_on_cuGraphAddNode(CUgraphNode *node, CUgraph graph,
                                      const CUgraphNode *dependencies, size_t count,
                                      CUgraphNodeParams *params)
{
        taint_node_event(params);
        return sp_driver.cuGraphAddNode(node, graph, dependencies, count, params);
}

CUresult CUDAAPI sp_on_cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *params)
{
        taint_node_event(params);
        return sp_driver.cuGraphNodeSetParams(node, params);
}

CUresult CUDAAPI sp_on_cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                CUgraphNodeParams *params)
{
        taint_node_event(params);
        return sp_driver.cuGraphExecNodeSetParams(exec, node, params);
}
#endif

#if CUDA_VERSION >= 12030
CUresult CUDAAPI sp_on_cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph,
                                         const CUgraphNode *dependencies,
                                         const CUgraphEdgeData *edges, size_t count,
                                         CUgraphNodeParams *params)
{
        taint_node_event(params);
        return sp_driver.cuGraphAddNode_v2(node, graph, dependencies, edges, count, params);
}
#endif

/* other processes */

CUresult CUDAAPI sp_on_cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event)
{
        taint(event, true);
        return sp_driver.cuIpcGetEventHandle(handle, event);
}

CUresult CUDAAPI sp_on_cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
        CUresult result = sp_driver.cuIpcOpenEventHandle(event, handle);

        if (result == CUDA_SUCCESS)
                taint(*event, true);
        return result;
}

/* green contexts */

#if CUDA_VERSION >= 12040
CUresult CUDAAPI sp_on_cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx green)
{
        CUresult result = sp_driver.cuCtxFromGreenCtx(context, green);

        if (result != CUDA_SUCCESS || !sp_life_is_on())
                return result;
        sp_context_note_green(*context);
        /* A kernel there may use memory of the primary one, and is in no order with its streams. */
        sp_work_share(NULL);
        return result;
}

CUresult CUDAAPI sp_on_cuGreenCtxRecordEvent(CUgreenCtx green, CUevent event)
{
        taint(event, false);
        return sp_driver.cuGreenCtxRecordEvent(green, event);
}

/* An order that is not learnt only means less reuse (G4); but streams have work that waits. */
CUresult CUDAAPI sp_on_cuGreenCtxWaitEvent(CUgreenCtx green, CUevent event)
{
        sp_work_blur();
        if (sp_order_is_on)
                sp_order_give_up("a green context waits for an event");
        return sp_driver.cuGreenCtxWaitEvent(green, event);
}
#endif

#if CUDA_VERSION >= 12050
CUresult CUDAAPI sp_on_cuGreenCtxStreamCreate(CUstream *stream, CUgreenCtx green,
                                              unsigned int flags, int priority)
{
        CUresult result = sp_driver.cuGreenCtxStreamCreate(stream, green, flags, priority);
        CUcontext handle;

        /* So that the context is known to be a green one before its stream is looked at. */
        if (result == CUDA_SUCCESS && sp_life_is_on() &&
            sp_on_cuCtxFromGreenCtx(&handle, green) == CUDA_SUCCESS)
                sp_stream_made_in(*stream, handle, flags);
        return result;
}
#endif
