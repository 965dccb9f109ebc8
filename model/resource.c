/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resource -- a pool with a budget in front and an observer beside it (observer.h)
 *
 * Each function is the call, and then its record. The record is made from what
 * the call has answered, and nothing flows back.
 */

#include "pool.h"
#include "text.h"

bool spm_resource_tracks_uses(const struct spm_resource *resource)
{
        return spm_pool_tracks_uses(resource->model, resource->pool);
}

/* records */

static struct spm_observation begin_row(const struct spm_resource *resource,
                                        struct spm_moment moment, enum spm_observed action)
{
        const struct spm_pool_state *pool = spm_pool_find(resource->model, resource->pool);

        return (struct spm_observation){
                .wall_ns = moment.wall_ns,
                .thread = moment.thread,
                .action = action,
                .device = pool ? pool->config.device : -1,
        };
}

/* A refusal says what it was about (B7). */
static void end_row(const struct spm_resource *resource, struct spm_observation *row,
                    enum spm_status result)
{
        struct spm_text text;

        row->result = result;
        if (result && !row->message[0]) {
                spm_text_start(&text, row->message, sizeof(row->message));
                spm_text_word(&text, spm_status_name(result));
                if (row->address)
                        spm_text_address(&text, "at", row->address);
                if (row->generation)
                        spm_text_count(&text, "generation", row->generation);
                if (row->bytes)
                        spm_text_count(&text, "bytes", row->bytes);
        }
        spm_observe(resource->observer, row);
}

/* calls */

enum spm_status spm_resource_alloc(const struct spm_resource *resource, struct spm_moment moment,
                                   struct spm_account_request *request,
                                   struct spm_allocation *allocation, struct spm_actions *actions)
{
        struct spm_observation row;
        struct spm_shortage shortage;
        enum spm_status status;

        request->request.pool = resource->pool;
        if (resource->account)
                status = spm_account_alloc(resource->model, resource->account, request, allocation,
                                           &shortage, actions);
        else
                status = spm_alloc(resource->model, &request->request, allocation, actions);
        if (status == SPM_AGAIN)
                return status;
        row = begin_row(resource, moment,
                        status == SPM_E_OUT_OF_BUDGET ? SPM_OBSERVED_BUDGET : SPM_OBSERVED_ALLOC);
        row.stream = request->request.stream;
        row.bytes = request->request.size;
        row.tag = request->request.tag;
        if (status == SPM_OK) {
                row.address = allocation->address;
                row.generation = allocation->generation;
        } else if (status == SPM_E_OUT_OF_BUDGET) {
                spm_shortage_text(&shortage, row.message, sizeof(row.message));
        }
        end_row(resource, &row, status);
        return status;
}

enum spm_status spm_resource_free(const struct spm_resource *resource, struct spm_moment moment,
                                  uint64_t address, uint64_t generation, enum spm_free_kind kind,
                                  spm_stream stream, struct spm_actions *actions)
{
        struct spm_observation row = begin_row(resource, moment, SPM_OBSERVED_FREE);
        struct spm_allocation freed = {0};
        enum spm_status status;

        row.address = address;
        row.generation = generation;
        row.stream = stream;
        /* Its tag goes with it. */
        if (spm_find(resource->model, address, &freed) == SPM_OK)
                spm_tag_of(resource->model, spm_block_id(&freed), &row.tag);
        if (resource->account)
                status = spm_account_free(resource->model, resource->account, address, generation,
                                          kind, stream, &freed, actions);
        else
                status = spm_free(resource->model, address, generation, kind, stream, &freed,
                                  actions);
        if (status == SPM_OK) {
                row.generation = freed.generation;
                row.bytes = freed.size;
        } else {
                row.tag = 0;
        }
        end_row(resource, &row, status);
        return status;
}

enum spm_status spm_resource_use(const struct spm_resource *resource, struct spm_moment moment,
                                 struct spm_block_id id, enum spm_use_access access,
                                 spm_stream stream)
{
        struct spm_observation row = begin_row(resource, moment, SPM_OBSERVED_USE);
        enum spm_status status = spm_use_record(resource->model, id, access, stream);

        row.address = id.address;
        row.generation = id.generation;
        row.stream = stream;
        if (status == SPM_OK)
                spm_tag_of(resource->model, id, &row.tag);
        end_row(resource, &row, status);
        return status;
}

enum spm_status spm_resource_reap(const struct spm_resource *resource, struct spm_moment moment,
                                  bool (*wait)(struct spm_scope what, void *user), void *user,
                                  struct spm_reaped *reaped, struct spm_actions *actions)
{
        struct spm_observation row = begin_row(resource, moment, SPM_OBSERVED_REAP);
        enum spm_status status =
                spm_reap_pending(resource->model, resource->pool, wait, user, reaped, actions);

        if (status != SPM_E_UNKNOWN) {
                row.bytes = reaped->bytes;
                row.stream = reaped->failed.kind == SPM_SCOPE_STREAM ? reaped->failed.id : 0;
        }
        if (status != SPM_E_UNKNOWN && resource->account)
                spm_account_settle(resource->model, resource->account);
        end_row(resource, &row, status);
        return status;
}
