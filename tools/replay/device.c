/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device -- what the model needs around it: somebody to act, and time that passes
 */

#include "device.h"

#include <linux/membarrier.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "audit.h"
#include "measure.h"

uint64_t device_range(enum spm_pool_kind kind)
{
        return (kind == SPM_POOL_SYNC ? 2 : 1) * DEVICE_RANGE;
}

uint64_t *device_number(struct numbers *numbers, uint32_t index)
{
        if (index >= numbers->room) {
                uint32_t room = numbers->room;

                numbers->room = 2 * index + 16;
                numbers->value = must_realloc(numbers->value, numbers->room * sizeof(uint64_t));
                while (room < numbers->room)
                        numbers->value[room++] = 0;
        }
        return &numbers->value[index];
}

void device_must(enum spm_status status, const char *what)
{
        if (status == SPM_OK)
                return;
        fprintf(stderr, "the model refused: %s: %s\n", what, spm_status_name(status));
        exit(1);
}

/* actions */

static bool is_past(const struct pool_peer *peer, uint64_t kernel)
{
        return kernel + peer->options.lag <= peer->kernels || !peer->options.lag;
}

void device_observe(struct pool_peer *peer, struct spm_scope scope, enum spm_sync how, bool is_done)
{
        struct spm_actions actions;
        struct spm_ticket ticket;

        device_must(spm_sync_begin(peer->model, scope, &ticket), "a synchronisation");
        spm_sync_end(peer->model, &ticket, how, is_done, &actions);
        device_perform(peer, &actions, NULL);
}

static void record(struct pool_peer *peer, const struct spm_action *action)
{
        struct spm_actions more;

        if (peer->options.lag)
                *device_number(&peer->stamped, action->stamp) = peer->kernels;
        device_must(spm_stamp_recorded(peer->model, action->stamp, true, &more), "a stamp");
        device_perform(peer, &more, NULL);
}

static void done(struct pool_peer *peer, spm_stamp stamp)
{
        struct spm_actions more;

        if (spm_stamp_done(peer->model, stamp, &more) == SPM_OK)
                device_perform(peer, &more, NULL);
}

static void trim(struct pool_peer *peer, spm_pool pool)
{
        enum spm_status status;

        do {
                struct spm_actions actions;

                status = spm_trim(peer->model, pool, 0, NULL, &actions);
                device_perform(peer, &actions, NULL);
        } while (status == SPM_AGAIN);
}

static bool has(const struct pool_peer *peer, uint64_t size)
{
        uint64_t capacity = peer->options.capacity;

        return !capacity || (size <= capacity && peer->peer.figures.reserved <= capacity - size);
}

/* An address that the model names is in the range of the pool that it is for. */
static void look_at(const struct pool_peer *peer, const struct spm_action *action, uint64_t address,
                    size_t size)
{
        uint64_t range = device_range(action->pool == peer->sync ? SPM_POOL_SYNC : SPM_POOL_ASYNC);

        if (!peer->options.audit)
                return;
        audit_map(peer->options.audit, address, size);
        if (action->address &&
            (address < range || size > DEVICE_RANGE || address - range > DEVICE_RANGE - size))
                peer->options.audit->misplaced++;
}

static void add_segment(struct pool_peer *peer, const struct spm_action *action, size_t size)
{
        struct peer_figures *figures = &peer->peer.figures;
        uint64_t address = action->address;
        spm_segment segment;

        if (!address) {
                address = peer->next_address;
                peer->next_address += size + DEVICE_GAP;
        }
        look_at(peer, action, address, size);
        device_must(spm_segment_add(peer->model, action->pool, address, size, NULL, &segment),
                    "a segment");
        figures->grows++;
        figures->reserved += size;
        if (figures->reserved > figures->reserved_high)
                figures->reserved_high = figures->reserved;
}

static void grow(struct pool_peer *peer, const struct spm_action *action,
                 struct spm_request *request)
{
        size_t size = action->size;

        if (!action->address && has(peer, action->preferred))
                size = action->preferred;
        /* Not the pool that grows: it would lose the free memory that this is to be added to. */
        if (!has(peer, size))
                trim(peer, action->pool == peer->async ? peer->sync : peer->async);
        if (has(peer, size))
                add_segment(peer, action, size);
        else
                spm_grow_failed(peer->model, request);
}

static void give_back(struct pool_peer *peer, const struct spm_action *action)
{
        peer->peer.figures.releases++;
        peer->peer.figures.moves += action->moves;
        peer->peer.figures.reserved -= action->size;
        if (peer->options.audit)
                audit_unmap(peer->options.audit, action->address, action->size);
}

static void perform_one(struct pool_peer *peer, const struct spm_action *action,
                        struct spm_request *request)
{
        switch (action->kind) {
        case SPM_ACT_RECORD:
                record(peer, action);
                break;
        case SPM_ACT_POLL:
                if (!peer->options.lag ||
                    is_past(peer, *device_number(&peer->stamped, action->stamp)))
                        done(peer, action->stamp);
                break;
        case SPM_ACT_POLL_STREAM:
                device_observe(peer, (struct spm_scope){SPM_SCOPE_STREAM, action->stream},
                               SPM_SYNC_POLL,
                               is_past(peer, *device_number(&peer->last, action->stream)));
                break;
        case SPM_ACT_WAIT_HOST:
                done(peer, action->stamp);
                break;
        case SPM_ACT_SYNC_CONTEXT:
                device_observe(peer, (struct spm_scope){SPM_SCOPE_CONTEXT, action->context},
                               SPM_SYNC_POLL, true);
                break;
        case SPM_ACT_GROW:
                grow(peer, action, request);
                break;
        case SPM_ACT_RELEASE:
                give_back(peer, action);
                break;
        case SPM_ACT_WAIT_STREAM:
        case SPM_ACT_WAIT_FENCE:
        case SPM_ACT_DROP:
                break;
        }
}

void device_perform(struct pool_peer *peer, const struct spm_actions *actions,
                    struct spm_request *request)
{
        unsigned int i;

        for (i = 0; i < actions->count; i++) {
                peer->peer.figures.action[actions->item[i].kind]++;
                perform_one(peer, &actions->item[i], request);
        }
}

/* fences */

/* Not for ThreadSanitizer, which knows nothing of it. */
#if defined(SYS_membarrier) && !defined(__SANITIZE_THREAD__)
static void fence(void *unused)
{
        (void)unused;
        syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

void (*device_fence(void))(void *)
{
        return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) ? NULL
                                                                                        : fence;
}
#else
void (*device_fence(void))(void *)
{
        return NULL;
}
#endif
