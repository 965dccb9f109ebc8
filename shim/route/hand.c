/* SPDX-License-Identifier: Apache-2.0 */

/* Hand -- blocks that a thread has at hand, for the streams and contexts it allocates in */

#include "route/hand.h"

#include "base/config.h"
#include "base/lock.h"
#include "base/thread.h"
#include "route/guard.h"
#include "route/order.h"

#define ENVY_MAX 256 /* then the place goes to whoever asks next */

__thread struct sp_hands *sp_hands __attribute__((tls_model("initial-exec")));

/* Of its end this thread was told, and will not be again: in a destructor of a key it is too late.
 * Per thread because that is whose end it is; initial-exec, as above. */
static __thread bool has_ended __attribute__((tls_model("initial-exec")));

/* Atomic. */
static _Atomic(struct sp_seat *) all_hands;

/* Atomic. */
static atomic_uint retirements;

void sp_hands_retired(void)
{
        atomic_fetch_add(&retirements, 1);
        sp_epoch_end();
}

static void empty(struct sp_hand *hand)
{
        if (hand->magazine) {
                spm_magazine_end(sp_model_enter(), hand->magazine);
                sp_model_leave();
        }
        *hand = (struct sp_hand){0};
}

static void end_hands(void *ended)
{
        struct sp_hands *own = ended;

        sp_hands = NULL;
        has_ended = true;
        if (sp_life_is_child())
                return;
        for (unsigned int i = 0; i < SP_HANDS; i++)
                empty(&own->hand[i]);
        sp_seat_leave(&own->seat);
}

/* A thread of whose end nobody would be told keeps nothing. */
static struct sp_hands *settle(void)
{
        bool made;
        struct sp_hands *own = (struct sp_hands *)sp_seat_take(
                &all_hands, _Alignof(struct sp_hands), sizeof(*own), &made);

        if (own && made)
                sp_past_join(&own->ring, own->past, SP_HAND_PAST);
        if (own && !sp_thread_at_end(end_hands, own)) {
                sp_seat_leave(&own->seat);
                own = NULL;
        }
        sp_hands = own;
        return own;
}

/* What is at hand is given out unasked, so nothing is where a call may be made to fail, or there is
 * more to do. */
static struct sp_hands *own_hands(void)
{
        if (!sp_hands && !has_ended && !sp_attends() && !sp_order_is_on)
                return settle();
        return sp_hands;
}

/* The place for what @wanted says, its magazine included if it is there; NULL: somebody else has
 * it.
 */
static struct sp_hand *find(struct sp_hands *own, const struct sp_hand *wanted)
{
        struct sp_hand *hand = sp_hand_place(own, wanted->key);

        if (hand->key == wanted->key && hand->number == wanted->number &&
            hand->pool == wanted->pool && hand->retirements == wanted->retirements) {
                hand->epoch = wanted->epoch;
                return hand;
        }
        if (hand->key && hand->key != wanted->key && hand->epoch == sp_epoch_now() &&
            hand->envied++ < ENVY_MAX)
                return NULL;
        if (own->latest == hand)
                own->latest = NULL;
        empty(hand);
        *hand = *wanted;
        (void)spm_magazine_new(sp_model_enter(), hand->pool, hand->number, &hand->magazine);
        sp_model_leave();
        return hand;
}

struct spm_magazine *sp_hand_visit(struct sp_stream *stream, spm_pool pool, unsigned int epoch)
{
        struct sp_hands *own = own_hands();
        struct sp_hand wanted = {
                .key = sp_hand_key(stream->handle, stream->context->handle),
                .epoch = epoch,
                .retirements = atomic_load(&retirements),
                .stream = stream,
                .number = stream->model,
                .pool = pool,
        };
        struct sp_hand *hand = own ? find(own, &wanted) : NULL;

        return hand ? hand->magazine : NULL;
}

struct spm_magazine *sp_hand_visit_here(struct sp_context *context, unsigned int epoch)
{
        struct sp_hands *own = sp_config()->free_mode == SP_FREE_MODE_SYNC ? NULL : own_hands();
        struct sp_hand wanted = {
                .key = sp_hand_key_here(context->handle),
                .epoch = epoch,
                .retirements = atomic_load(&retirements),
                .context = context,
                .pool = context->sync_pool,
        };
        struct sp_hand *hand = own ? find(own, &wanted) : NULL;

        if (!hand)
                return NULL;
        own->latest = hand;
        return hand->magazine;
}

/* One allocation in four has slept: each of these costs more than all that a lock saves. */
void sp_hand_look(struct sp_hand *hand)
{
        if (sp_lock_waits - hand->waits >= SP_HAND_LOOK / 4) {
                spm_magazine_crowd(sp_model_enter(), hand->magazine);
                sp_model_leave();
        }
        hand->waits = sp_lock_waits;
}
