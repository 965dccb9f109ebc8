/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pair -- two threads that meet at the same place, again and again
 *
 *   pair recall|duel|lives|inside [--fenced] [rounds]
 *
 * Many threads meet seldom at any one place. Here an owner does nothing but
 * allocate and free while another thread recalls; or two threads begin to free
 * one block together, one of them with the lock, and one must be refused. The
 * pauses between are of random length, so that sooner or later each step of the
 * one falls between any two of the other.
 *
 * But that a block is freed and served again between two steps of the other
 * takes too long to be seen, or that peaks are reset while the owner is inside:
 * "lives" and "inside" do that by hand.
 */

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "area.h"
#include "ground.h"
#include "magazine.h"

#define PAUSE_MAX 100
#define TRIM      0 /* what to do while the owner works: 16 kinds */
#define CHECK     10
#define RESET     14
#define LOOK      16
#define MORE      4
#define SMALL     ((size_t)1024)
#define PATIENCE  (1 << 14) /* spins until the other thread may need the processor */

static struct spm_magazine *magazines[2];
static spm_pool pool;
static uint64_t rounds = 200000;
static _Atomic(bool) is_over;
static _Atomic(uint64_t) turn;  /* the number of the duel that has begun */
static _Atomic(uint64_t) armed; /* the number of the one that the other thread is ready for */
static _Atomic(uint64_t) ended;
static _Atomic(unsigned int) wins;
static struct spm_allocation block;
static size_t size = SMALL;
static _Atomic(uint64_t) quick;
static uint64_t again; /* records that were served twice running */

static void pause_a_little(uint64_t *random)
{
        volatile uint32_t left = ground_random(random) % PAUSE_MAX;

        while (left)
                left--;
}

static void wait_until(const _Atomic(uint64_t) *counter, uint64_t value)
{
        unsigned int spins;

        for (spins = 0; atomic_load(counter) < value; spins++)
                if (spins % PATIENCE == PATIENCE - 1)
                        sched_yield();
}

static bool alloc(unsigned int who, struct spm_allocation *served)
{
        struct spm_request request = {
                .pool = pool,
                .stream = ground.streams[0],
                .size = size,
                .magazine = magazines[who],
        };
        enum spm_status status;

        if (spm_magazine_alloc(magazines[who], size, 0, served)) {
                quick++;
                return true;
        }
        ground_lock();
        status = ground_alloc(&request, served);
        ground_unlock();
        if (status != SPM_OK)
                ground_fail("an allocation: %s", spm_status_name(status));
        return status == SPM_OK;
}

static bool release(unsigned int who, const struct spm_allocation *served, bool may_be_quick)
{
        struct spm_actions actions;
        enum spm_status status;

        if (may_be_quick &&
            spm_magazine_free(magazines[who], served->address, served->generation, NULL))
                return true;
        ground_lock();
        status = spm_free(ground.model, served->address, served->generation, SPM_FREE_ASYNC,
                          ground.streams[0], NULL, &actions);
        ground_perform(&actions, NULL);
        ground_unlock();
        return status == SPM_OK;
}

/* recall */

static void *own(void *unused)
{
        uint64_t i;

        (void)unused;
        for (i = 0; i < rounds; i++) {
                struct spm_allocation served;

                if (!alloc(0, &served))
                        break;
                ground_take(served.address, served.reserved, 1);
                ground_give(served.address, served.reserved, 1);
                if (!release(0, &served, true))
                        ground_fail("%" PRIx64 " could not be freed", served.address);
        }
        atomic_store(&is_over, true);
        return NULL;
}

/* So that magazines may serve. By the one who has the second magazine. */
static void raise_marks(void)
{
        struct spm_allocation served[64];
        unsigned int i;

        for (i = 0; i < 64; i++)
                if (!alloc(1, &served[i]))
                        exit(1);
        while (i--)
                release(1, &served[i], false);
}

static void disturb(uint32_t kind)
{
        char text[160] = "";

        ground_lock();
        if (kind < CHECK)
                ground_trim(0);
        else if (kind == RESET)
                spm_reset_peaks(ground.model, pool);
        else if (kind == RESET + 1)
                spm_pool_set_attribute(ground.model, pool, SPM_ATTR_USED_MEM_HIGH, 0);
        else if (!spm_check(ground.model, text, sizeof(text)))
                ground_fail("%s", text);
        ground_look(pool);
        ground_unlock();
}

static void *recall(void *unused)
{
        uint64_t random = 4711;
        uint32_t kind;

        (void)unused;
        while (!atomic_load(&is_over)) {
                pause_a_little(&random);
                kind = ground_random(&random) % LOOK;
                disturb(kind);
                if (kind >= RESET)
                        raise_marks();
        }
        return NULL;
}

/* duel */

static void *begin_duels(void *unused)
{
        uint64_t random = 42;
        uint64_t i;

        (void)unused;
        for (i = 1; i <= rounds; i++) {
                if (!alloc(0, &block))
                        exit(1);
                ground_take(block.address, block.reserved, 1);
                ground_give(block.address, block.reserved, 1);
                atomic_store(&wins, 0);
                atomic_store(&turn, i);
                wait_until(&armed, i);
                pause_a_little(&random);
                if (release(0, &block, i % 2))
                        atomic_fetch_add(&wins, 1);
                wait_until(&ended, i);
                if (atomic_load(&wins) != 1)
                        ground_fail("a block was freed %u times", atomic_load(&wins));
        }
        return NULL;
}

static void *answer_duels(void *unused)
{
        uint64_t random = 17;
        uint64_t i;

        (void)unused;
        for (i = 1; i <= rounds; i++) {
                wait_until(&turn, i);
                atomic_store(&armed, i);
                pause_a_little(&random);
                if (release(1, &block, true))
                        atomic_fetch_add(&wins, 1);
                atomic_store(&ended, i);
        }
        return NULL;
}

/* both */

static bool run(void *(*first)(void *), void *(*second)(void *))
{
        pthread_t threads[2];

        if (pthread_create(&threads[0], NULL, first, NULL))
                return false;
        if (pthread_create(&threads[1], NULL, second, NULL))
                exit(1);
        pthread_join(threads[0], NULL);
        pthread_join(threads[1], NULL);
        return true;
}

/* lives */

static void expect_ended(struct spm_block *record, uint32_t life)
{
        if (spm_block_end_life(record, life, SPM_BLOCK_HELD))
                ground_fail("a life was ended that had ended before");
}

static struct spm_block *record_of(const struct spm_allocation *served)
{
        return spm_area_start(spm_area_at(ground.model, served->address), served->address);
}

/* A block that is freed and served again, by magazines or not, and cut differently. */
static void *live_again(void *unused)
{
        static const size_t sizes[] = {SMALL, 4096, 65536, 3 * MIB};
        uint64_t random = 4242;
        uint64_t i;

        (void)unused;
        for (i = 0; i < rounds; i++) {
                struct spm_allocation before, after;
                struct spm_block *record;
                uint32_t life;

                size = sizes[ground_random(&random) % 4];
                if (!alloc(0, &before))
                        exit(1);
                record = record_of(&before);
                life = spm_block_life(record);
                if (!release(0, &before, i % 2))
                        exit(1);
                expect_ended(record, life);
                /* What is freed here may not have been told by the magazine that served it. */
                size = i % 4 ? size : SMALL;
                if (i % 4 == 0)
                        raise_marks();
                if (i % 8 == 0)
                        disturb(i % 16 ? TRIM : CHECK);
                if (i % 3 == 0)
                        size = sizes[ground_random(&random) % 4];
                if (!alloc(0, &after))
                        exit(1);
                again += record_of(&after) == record;
                expect_ended(record, life);
                if (!release(0, &after, i % 4 < 2))
                        exit(1);
        }
        return NULL;
}

/* Peaks are reset while the owner is inside, as far as anybody can see; then it goes on. */
static void *stand_inside(void *unused)
{
        struct spm_allocation served[MORE];
        unsigned int k;
        uint64_t i;

        (void)unused;
        for (i = 0; i < rounds; i++) {
                raise_marks();
                if (!alloc(0, &served[0]) || !release(0, &served[0], true))
                        exit(1);
                atomic_store(&magazines[0]->inside, 1);
                ground_lock();
                spm_reset_peaks(ground.model, pool);
                ground_unlock();
                atomic_store(&magazines[0]->inside, 0);
                for (k = 0; k < MORE; k++) {
                        if (!alloc(0, &served[k]))
                                exit(1);
                        disturb(LOOK);
                }
                while (k--)
                        release(0, &served[k], true);
        }
        return NULL;
}

/* The other thread has nothing to do. */
static void *rest(void *unused)
{
        return unused;
}

static const struct scene {
        const char *name;
        void *(*first)(void *);
        void *(*second)(void *);
} scenes[] = {
        {"recall", own, recall},
        {"duel", begin_duels, answer_duels},
        {"lives", live_again, rest},
        {"inside", stand_inside, rest},
};

static const struct scene *find_scene(const char *name)
{
        size_t i;

        for (i = 0; i < sizeof(scenes) / sizeof(*scenes); i++)
                if (!strcmp(scenes[i].name, name))
                        return &scenes[i];
        return NULL;
}

int main(int count, char **arguments)
{
        const struct scene *scene = count > 1 ? find_scene(arguments[1]) : NULL;
        bool fenced = count > 2 && !strcmp(arguments[2], "--fenced");
        unsigned int i;

        if (!scene || count > 3 + fenced) {
                fputs("usage: pair recall|duel|lives|inside [--fenced] [rounds]\n", stderr);
                return 2;
        }
        if (count > 2 + fenced)
                rounds = strtoull(arguments[2 + fenced], NULL, 10);
        if (!ground_begin(fenced, 1)) {
                puts("skipped: there is no membarrier(2) here");
                return 77;
        }
        pool = ground.sites[ground.current[0]].pool;
        for (i = 0; i < 2; i++)
                if (spm_magazine_new(ground.model, pool, ground.streams[0], &magazines[i]) !=
                    SPM_OK)
                        return 1;
        raise_marks();
        if (!run(scene->first, scene->second))
                return 1;
        ground_look(pool);
        ground_end();
        printf("%" PRIu64 " rounds, %" PRIu64 " allocations by a magazine, %" PRIu64
               " records again, %u failures\n",
               rounds, quick, again, atomic_load(&ground.failures));
        return atomic_load(&ground.failures) || !quick;
}
