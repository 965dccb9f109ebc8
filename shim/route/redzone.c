/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Redzone -- was anything written behind a block?
 *
 * The places that copies go to are memory of our own, registered with the driver: page-locked, so
 * that the copy is not waited for, and still there when its context is not. A place belongs to
 * whoever has moved it out of the state it was found in, so no lock is needed.
 */

#define _GNU_SOURCE

#include "route/redzone.h"

#include <string.h>
#include <sys/mman.h>

#include "base/config.h"
#include "route/guard.h"
#include "track/held.h"

#define PIECE  4096              /* that is looked at at once */
#define ROOM   ((size_t)4 << 20) /* for the copies of one context */
#define PLACES 256               /* at most */
#define LOOKS  4                 /* at earlier copies, for every copy */

enum { FREE, TAKEN, PENDING, LOST };

/* Atomic: state. The others are the taker's. */
struct place {
        atomic_uint state;
        struct sp_redzone_look look;
        struct sp_stamp stamp;
};

/* Written once: all but the places, and the atomic. */
struct sp_redzones {
        struct place place[PLACES];
        unsigned int count;
        size_t stride;
        atomic_uint next; /* to be looked at */
        unsigned char *bytes;
};

size_t sp_redzone_size(const struct spm_allocation *block)
{
        size_t behind = block->reserved - block->size;
        size_t most = sp_config()->redzone + SP_REDZONE_MORE;

        if (!sp_config()->redzone)
                return 0;
        return behind < most ? behind : most;
}

bool sp_redzone_prepare(const struct spm_allocation *block, const char *function,
                        struct sp_redzone_look *look)
{
        bool is_live;

        *look = (struct sp_redzone_look){
                .size = sp_redzone_size(block), .function = function, .site = sp_caller};
        is_live = sp_held_at(sp_model_enter(), block->address, &look->block);
        sp_model_leave();
        return is_live && look->size;
}

/* Bytes that were written, of a redzone that is looked at piece by piece. */
struct written {
        size_t first, end; /* no byte if they are equal */
};

static void look_at(const unsigned char *bytes, size_t from, size_t size, struct written *written)
{
        for (size_t i = 0; i < size; i++) {
                if (bytes[i] == SP_REDZONE)
                        continue;
                if (!written->end)
                        written->first = from + i;
                written->end = from + i + 1;
        }
}

static void tell(const struct sp_redzone_look *look, const struct written *written)
{
        if (written->end)
                sp_ledger_overrun(&look->block, look->function, look->site,
                                  look->block.bytes + written->first, written->end);
}

CUresult sp_redzone_look_now(const struct sp_redzone_look *look, CUstream own)
{
        uint64_t start = look->block.address + look->block.bytes;
        CUresult result = CUDA_SUCCESS;
        struct written written = {0};
        unsigned char piece[PIECE];

        for (size_t done = 0; done < look->size && result == CUDA_SUCCESS; done += PIECE) {
                size_t size = look->size - done < PIECE ? look->size - done : PIECE;

                result = sp_driver.cuMemcpyDtoHAsync_v2(piece, start + done, size, own);
                if (result == CUDA_SUCCESS)
                        result = sp_driver.cuStreamSynchronize(own);
                if (result == CUDA_SUCCESS)
                        look_at(piece, done, size, &written);
        }
        tell(look, &written);
        return result;
}

/* places */

static struct sp_redzones *make_places(void)
{
        size_t head = (sizeof(struct sp_redzones) + PIECE - 1) & ~(size_t)(PIECE - 1);
        struct sp_redzones *made =
                mmap(NULL, head + ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (made == MAP_FAILED)
                return NULL;
        made->bytes = (unsigned char *)made + head;
        made->stride = sp_config()->redzone + SP_REDZONE_MORE;
        made->count = ROOM / made->stride < PLACES ? (unsigned int)(ROOM / made->stride) : PLACES;
        if (sp_driver.cuMemHostRegister_v2(made->bytes, ROOM, CU_MEMHOSTREGISTER_PORTABLE) ==
            CUDA_SUCCESS)
                return made;
        munmap(made, head + ROOM);
        return NULL;
}

/* Of the context that is current; of two threads that make them one keeps its own for nothing. */
static struct sp_redzones *places_of(struct sp_context *context)
{
        struct sp_redzones *before = NULL, *places = atomic_load(&context->redzones);

        if (places)
                return places;
        places = make_places();
        if (places && !atomic_compare_exchange_strong(&context->redzones, &before, places))
                return before;
        return places;
}

static unsigned char *bytes_of(const struct sp_redzones *places, const struct place *place)
{
        return places->bytes + (size_t)(place - places->place) * places->stride;
}

/* What has come to a place that nobody else can take. */
static void look_there(const struct sp_redzones *places, const struct place *place)
{
        struct written written = {0};

        look_at(bytes_of(places, place), 0, place->look.size, &written);
        tell(&place->look, &written);
}

/* Is its copy there? Then it is looked at, and is free. */
static void look_if_come(const struct sp_redzones *places, struct place *place)
{
        unsigned int pending = PENDING;

        if (!atomic_compare_exchange_strong(&place->state, &pending, TAKEN))
                return;
        if (sp_stamp_poll(&place->stamp) != CUDA_SUCCESS) {
                atomic_store(&place->state, PENDING);
                return;
        }
        look_there(places, place);
        sp_stamp_drop(&place->stamp);
        atomic_store(&place->state, FREE);
}

static struct place *take(struct sp_redzones *places)
{
        for (unsigned int i = 0; i < places->count; i++) {
                unsigned int is_free = FREE;

                if (atomic_compare_exchange_strong(&places->place[i].state, &is_free, TAKEN))
                        return &places->place[i];
        }
        return NULL;
}

static struct place *look_and_take(struct sp_redzones *places)
{
        struct place *place;

        for (unsigned int i = 0; i < LOOKS; i++)
                look_if_come(places,
                             &places->place[atomic_fetch_add(&places->next, 1) % places->count]);
        place = take(places);
        if (place)
                return place;
        for (unsigned int i = 0; i < places->count; i++)
                look_if_come(places, &places->place[i]);
        return take(places);
}

void sp_redzone_look_later(const struct sp_redzone_look *look, struct sp_stream *stream)
{
        uint64_t start = look->block.address + look->block.bytes;
        struct sp_redzones *places = places_of(stream->context);
        struct place *place = places ? look_and_take(places) : NULL;
        CUresult result;

        if (!place)
                return;
        place->look = *look;
        memset(bytes_of(places, place), SP_REDZONE, look->size);
        result = sp_driver.cuMemcpyDtoHAsync_v2(bytes_of(places, place), start, look->size,
                                                stream->handle);
        if (result != CUDA_SUCCESS) {
                atomic_store(&place->state, FREE);
                return;
        }
        /* Without a stamp nobody knows when the place is free again: it is looked at at the end. */
        result = sp_stamp_on_stream(&stream->context->stamper, stream->handle, &place->stamp);
        atomic_store(&place->state, result == CUDA_SUCCESS ? PENDING : LOST);
}

void sp_redzone_end(void)
{
        struct sp_context *context = NULL;

        while ((context = sp_context_each(context))) {
                struct sp_redzones *places = atomic_load(&context->redzones);

                for (unsigned int i = 0; places && i < places->count; i++) {
                        struct place *place = &places->place[i];

                        if (atomic_exchange(&place->state, TAKEN) >= PENDING)
                                look_there(places, place);
                }
        }
}
