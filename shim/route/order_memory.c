/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Order, memory -- what the witness is asked, and what is said of that
 *
 * An allocation is known by its address and by its number among those that were there, so that
 * nothing is said of one that came after it. Looked at is memory of the device that the program
 * has in one piece. Where rows have gaps, or it is not known which bytes are meant, or it is a word
 * by which streams tell each other something, that use is in conflict with no other.
 *
 * The driver is asked before anybody is blamed. Where it cannot be, nobody is: the earlier stream
 * is gone, it is another thread's own, or something captures.
 */

#include "route/order.h"
#include "track/bracket.h"
#include "track/held.h"
#include "track/ledger.h"
#include "track/stack.h"
#include "track/state.h"
#include "track/submit.h"

#define TRIES 16 /* streams that are asked about one use */

/* An allocation. */
struct found {
        struct spm_seen_life life;
        struct sp_ledger_entry entry;
        uint32_t context; /* that a synchronous free waits for; 0: none */
        bool is_pooled;
        bool has_sync_memops; /* of the pools: CU_POINTER_ATTRIBUTE_SYNC_MEMOPS was set */
};

static bool is_looked_at(enum sp_kind kind)
{
        return kind == SP_KIND_DEVICE || kind == SP_KIND_ASYNC || kind == SP_KIND_PITCH;
}

/* In a block of the pools. Return: false if @address is none of theirs; else @found is of no kind
 * that is looked at if there is no block. */
static bool find_pooled(uint64_t address, struct found *found)
{
        struct spm_allocation block = {0};
        const struct sp_context *context;
        const struct spm_model *model;
        enum spm_status status;

        if (!sp_route_pools())
                return false;
        model = sp_model_enter();
        status = spm_find(model, address, &block);
        if (status == SPM_OK)
                (void)sp_held_at(model, address, &found->entry);
        sp_model_leave();
        if (status != SPM_OK)
                return status != SPM_E_FOREIGN;
        found->life = (struct spm_seen_life){block.address, 2 * block.generation + 1};
        found->is_pooled = true;
        found->has_sync_memops = block.user & SP_HELD_SYNC_MEMOPS;
        context = block.kind == SPM_POOL_SYNC ? sp_context_by_pool(block.pool) : NULL;
        found->context = context ? context->model : 0;
        return true;
}

/* Of the driver's. Return: false if there is nothing at @address that it knows of. */
static bool find_drivers(uint64_t address, struct found *found)
{
        struct sp_finding finding;
        CUdeviceptr base;
        size_t bytes;

        if (sp_use_ask(address, &base, &bytes) != CUDA_SUCCESS)
                return false;
        if (!sp_ledger_block(base, &finding))
                return true;
        found->entry = finding.block;
        found->life = (struct spm_seen_life){base, 2 * finding.block.sequence};
        found->context = finding.block.kind == SP_KIND_ASYNC ? 0 : finding.block.context;
        return true;
}

/* Return: false if it is memory of the host's, which no driver knows. */
static bool find(uint64_t address, struct found *found)
{
        *found = (struct found){.entry.kind = SP_KIND_COUNT};
        return find_pooled(address, found) || find_drivers(address, found);
}

/* asking */

struct question {
        enum { USE, FREE, FREE_SYNC } what;
        struct spm_actor actor;
        const struct found *found;
        const struct spm_touch *touch;
};

static struct spm_verdict look(const struct question *question)
{
        const struct spm_witness *witness = sp_witness_enter();
        struct spm_seen_life life = question->found->life;
        struct spm_verdict verdict;

        if (question->what == USE)
                verdict = spm_witness_look(witness, question->actor, life, question->touch);
        else if (question->what == FREE)
                verdict = spm_witness_look_free(witness, question->actor, life);
        else
                verdict = spm_witness_look_sync_free(witness, question->found->context, life);
        sp_witness_leave();
        return verdict;
}

/* In its context: a default stream is that of the current one. */
static CUresult query(const struct sp_stream *stream)
{
        CUcontext handle = stream->context->handle, popped, before;
        bool is_there = sp_driver.cuCtxGetCurrent(&before) == CUDA_SUCCESS && before == handle;
        CUresult result = is_there ? CUDA_SUCCESS : sp_driver.cuCtxPushCurrent_v2(handle);

        if (result != CUDA_SUCCESS)
                return result;
        /* Another thread's own stream has no name here. */
        if (stream->handle == CU_STREAM_PER_THREAD && sp_stream_of(stream->handle) != stream)
                result = CUDA_ERROR_INVALID_HANDLE;
        else
                result = sp_driver.cuStreamQuery(stream->handle);
        if (!is_there)
                sp_driver.cuCtxPopCurrent_v2(&popped);
        return result;
}

/* Has it work left? If not, the host has seen that now. */
static CUresult ask(uint32_t number, CUstream *handle)
{
        struct sp_stream *stream = sp_stream_enter(number);
        CUstreamCaptureMode mode;
        struct spm_actor actor;
        CUresult result;
        uint64_t since;

        if (!stream)
                return CUDA_ERROR_INVALID_HANDLE;
        since = spm_witness_now(sp_witness_enter());
        sp_witness_leave();
        actor = sp_order_actor_of(stream);
        *handle = stream->handle;
        mode = sp_bracket_open();
        result = query(stream);
        sp_bracket_close(mode);
        sp_stream_leave(stream);
        if (result != CUDA_SUCCESS)
                return result;
        spm_witness_saw_stream(sp_witness_enter(), actor, since);
        sp_witness_leave();
        return CUDA_SUCCESS;
}

/* Return: whether somebody is to be blamed; @handle is of the earlier stream. */
static bool judge(const struct question *question, struct spm_verdict *verdict, CUstream *handle)
{
        for (unsigned int tries = 0; tries < TRIES; tries++) {
                CUresult result;

                *verdict = look(question);
                if (!verdict->hazard || !sp_submit_is_complete())
                        return false;
                result = ask(verdict->stream, handle);
                if (result != CUDA_SUCCESS)
                        return result == CUDA_ERROR_NOT_READY;
        }
        return false;
}

/* blaming */

static const enum sp_finding_kind kinds[] = {
        [SPM_HAZARD_USE_BEFORE_ALLOC] = SP_FINDING_USE_BEFORE_ALLOC,
        [SPM_HAZARD_RACE] = SP_FINDING_RACE,
        [SPM_HAZARD_FREE_BEFORE_ALLOC] = SP_FINDING_FREE_BEFORE_ALLOC,
        [SPM_HAZARD_FREE_BEFORE_USE] = SP_FINDING_FREE_BEFORE_USE,
        [SPM_HAZARD_SYNC_FREE] = SP_FINDING_SYNC_FREE,
};

static const enum sp_earlier_kind earliers[] = {
        [SPM_TOUCH_READ] = SP_EARLIER_READ,
        [SPM_TOUCH_WRITE] = SP_EARLIER_WRITE,
        [SPM_TOUCH_ARGUMENT] = SP_EARLIER_ARGUMENT,
};

/* What is not of the later one's is filled in. */
static void blame(struct sp_finding *finding, const struct question *question)
{
        struct spm_verdict verdict;
        CUstream handle;

        if (!judge(question, &verdict, &handle))
                return;
        finding->kind = kinds[verdict.hazard];
        finding->times = 1;
        finding->has_block = true;
        finding->block = question->found->entry;
        finding->earlier = verdict.is_alloc ? SP_EARLIER_ALLOC : earliers[verdict.kind];
        finding->earlier_stream = (uintptr_t)handle;
        finding->earlier_by = verdict.spot.function;
        finding->earlier_at = verdict.spot.site;
        sp_ledger_add_finding(finding);
}

/* uses */

static void remember(struct sp_order_call *call, struct spm_actor actor, struct spm_seen_life life,
                     const struct spm_touch *touch)
{
        if (call->touches == SP_ORDER_TOUCHES)
                return;
        call->touch[call->touches].actor = actor;
        call->touch[call->touches].life = life;
        call->touch[call->touches++].touch = *touch;
}

void sp_order_remember(struct spm_witness *witness, const struct sp_order_call *call)
{
        for (unsigned int i = 0; i < call->touches; i++)
                spm_witness_touch(witness, call->touch[i].actor, call->touch[i].life,
                                  &call->touch[i].touch);
}

/* Does the host wait for what has no stream? Of memory that others reach, or in all of a context.
 */
static bool is_synchronous(const struct found *found)
{
        int is_set = 0;
#if CUDA_VERSION >= 12010
        unsigned int flags = 0;

        if (sp_driver.cuCtxGetFlags && sp_driver.cuCtxGetFlags(&flags) == CUDA_SUCCESS &&
            flags & CU_CTX_SYNC_MEMOPS)
                return true;
#endif
        if (found->is_pooled)
                return found->has_sync_memops;
        return !sp_driver.cuPointerGetAttribute ||
               sp_driver.cuPointerGetAttribute(&is_set, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
                                               found->life.address) != CUDA_SUCCESS ||
               is_set;
}

/* What it is: @touched bytes, in one piece if @bytes are. */
struct use {
        uint64_t address, bytes, touched;
        enum spm_touch_kind kind;
};

static void use_found(struct sp_order_call *call, struct spm_actor actor, CUstream target,
                      const struct found *found, const struct use *use)
{
        uint64_t from = use->address - found->life.address;
        struct spm_touch touch = {
                .kind = use->kind,
                .from = use->bytes ? from : 0,
                .to = use->bytes ? from + use->bytes : 0,
                .spot = {call->site, call->function},
        };
        struct question question = {USE, actor, found, &touch};
        struct sp_finding finding = {
                .address = use->address,
                .function = call->function,
                .site = call->site,
                .touched = use->touched,
                .is_write = use->kind == SPM_TOUCH_WRITE,
                .is_argument = use->kind == SPM_TOUCH_ARGUMENT,
                .stream = (uintptr_t)target,
        };

        blame(&finding, &question);
        remember(call, actor, found->life, &touch);
}

static void look_at(CUstream target, const struct use *use)
{
        struct sp_order_call *call = sp_order_now;
        struct spm_actor actor;
        struct found found;

        if (!call || !call->actor.stream || !sp_route_may_act())
                return;
        if (call->reads_early && use->kind == SPM_TOUCH_READ)
                return;
        if (!find(use->address, &found)) {
                /* Copies from and to pageable memory may be done when they return. */
                call->is_waited_for = call->is_waited_for || use->kind != SPM_TOUCH_ARGUMENT;
                return;
        }
        if (!is_looked_at(found.entry.kind)) {
                call->is_elsewhere = call->is_elsewhere || use->kind != SPM_TOUCH_ARGUMENT;
                return;
        }
        call->is_on_device = true;
        if (call->is_sync && !call->is_waited_for)
                call->is_waited_for = is_synchronous(&found);
        actor = call->actor;
        if (target != call->target && !sp_order_actor(target, &actor))
                return;
        if (!call->site)
                call->site = sp_use_site();
        use_found(call, actor, target, &found, use);
}

void sp_order_use(CUstream target, uint64_t address, uint64_t bytes, enum spm_touch_kind kind)
{
        look_at(target, &(struct use){address, bytes, bytes, kind});
}

void sp_order_look(const struct sp_use *what, uint64_t span)
{
        const struct sp_order_call *call = sp_order_now;
        uint64_t touched = sp_use_times(sp_use_times(what->width, what->rows), what->slices);

        if (call)
                look_at(call->target,
                        &(struct use){
                                .address = what->address,
                                .bytes = touched == span && !call->is_word ? span : 0,
                                .touched = touched,
                                .kind = what->is_write ? SPM_TOUCH_WRITE : SPM_TOUCH_READ,
                        });
}

/* allocations and frees */

void sp_order_alloc(CUstream target, const char *function, uint64_t address)
{
        struct spm_spot spot = {sp_caller, function};
        struct spm_witness *witness;
        struct spm_actor actor;
        struct found found;

        if (!sp_route_may_act() || !sp_order_actor(target, &actor) || !find(address, &found))
                return;
        witness = sp_witness_enter();
        spm_witness_submit(witness, actor);
        if (is_looked_at(found.entry.kind))
                spm_witness_alloc(witness, actor, found.life, spot);
        sp_witness_leave();
}

void sp_order_free(CUstream target, uint64_t address)
{
        struct sp_finding finding = {
                .address = address,
                .function = "cuMemFreeAsync",
                .site = sp_caller,
                .stream = (uintptr_t)target,
        };
        struct question question = {.what = FREE};
        struct found found;

        if (!sp_order_actor(target, &question.actor))
                return;
        spm_witness_submit(sp_witness_enter(), question.actor);
        sp_witness_leave();
        if (!address || !sp_route_may_act() || !find(address, &found) ||
            !is_looked_at(found.entry.kind) || address != found.life.address)
                return;
        question.found = &found;
        blame(&finding, &question);
}

void sp_order_free_sync(uint64_t address)
{
        struct sp_finding finding = {
                .address = address,
                .function = "cuMemFree",
                .site = sp_caller,
        };
        struct question question = {.what = FREE_SYNC};
        struct found found;

        if (!address || !sp_route_may_act())
                return;
        question.found = &found;
        if (find(address, &found) && is_looked_at(found.entry.kind) &&
            address == found.life.address && (found.context || found.entry.kind == SP_KIND_ASYNC))
                blame(&finding, &question);
        /* A program may rely on the wait, which the pool does without. Memory that was allocated in
         * the order of a stream is not waited for. */
        if (found.entry.kind != SP_KIND_ASYNC)
                sp_order_blur();
}
