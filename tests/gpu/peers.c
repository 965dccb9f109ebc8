/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers -- options, devices, access (peers.h says what it is for)
 *
 *   peers [--mode alloc|pool|mixed|serial|question] [--rounds N] [--seed S] [--plant]
 *
 * alloc     blocks of cuMemAlloc; access is taken and given again while they live
 * pool      blocks of cuMemAllocAsync, the default pools opened to the other device
 * mixed     of both kinds
 * serial    cuMemcpyPeer and the legacy streams, everything freed at once
 * question  says whether a free waits for the other device; nothing is right or wrong
 *
 * --plant writes into blocks in use, and must be noticed. The last line says
 * "rounds N mismatches 0 ..."; the status is 1 if any word changed that should not
 * have, and 77 where there are no two devices that reach each other.
 */
#include "peers.h"

#include <getopt.h>
#include <string.h>

#define ACCESS_ROUNDS 128 /* between two changes of access */

enum mode { ALLOC, POOL, MIXED, SERIAL, QUESTION, MODES };

static const char *const mode_names[] = {"alloc", "pool", "mixed", "serial", "question"};

static struct {
        enum mode mode;
        unsigned long rounds;
} options = {.mode = MIXED, .rounds = 1000};

struct peers peers = {.seed = 1, .serial = 1};

unsigned pick(unsigned limit)
{
        return (unsigned)rand_r(&peers.seed) / 7 % limit;
}

void enter(const struct device *device)
{
        CU_OK(cu.CtxSetCurrent(device->context));
}

struct device *other(const struct device *device)
{
        return &peers.devices[!device->ordinal];
}

void wait_for_all(void)
{
        for (int i = 0; i < DEVICES; i++) {
                enter(&peers.devices[i]);
                CU_OK(cu.CtxSynchronize());
        }
}

static void must_be(CUresult wanted, CUresult got, const char *what)
{
        if (wanted == got)
                return;
        fprintf(stderr, "%s: %d instead of %d\n", what, (int)got, (int)wanted);
        exit(99);
}

/* ---- access ---- */

static void enable(void)
{
        for (int i = 0; i < DEVICES; i++) {
                CUcontext peer = peers.devices[!i].context;

                enter(&peers.devices[i]);
                CU_OK(cu.CtxEnablePeerAccess(peer, 0));
                must_be(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cu.CtxEnablePeerAccess(peer, 0),
                        "enabled twice");
        }
}

static void disable(void)
{
        wait_for_all();
        for (int i = 0; i < DEVICES; i++) {
                CUcontext peer = peers.devices[!i].context;

                enter(&peers.devices[i]);
                CU_OK(cu.CtxDisablePeerAccess(peer));
                must_be(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cu.CtxDisablePeerAccess(peer),
                        "disabled twice");
        }
}

/* The default pools follow no context: they have rights of their own. */
static void set_pool_access(CUmemAccess_flags flags)
{
        for (int i = 0; i < DEVICES; i++) {
                CUmemLocation place = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = !i};
                CUmemAccessDesc access = {.location = place, .flags = flags};
                CUmemAccess_flags got;

                CU_OK(cu.MemPoolSetAccess(peers.devices[i].pool, &access, 1));
                CU_OK(cu.MemPoolGetAccess(&got, peers.devices[i].pool, &place));
                must_be((CUresult)flags, (CUresult)got, "access to a pool");
        }
}

/* Memory of a device that nobody else is let into still is its own. */
static void use_alone(void)
{
        for (int i = 0; i < DEVICES; i++) {
                struct device *device = &peers.devices[i];
                CUstream stream = device->lanes[0].stream;
                CUdeviceptr p;

                enter(device);
                CU_OK(cu.MemAlloc(&p, 4096));
                cu_owned(p, 4096);
                CU_OK(cu_fill(&device->kernels, stream, p, 1024, 7));
                CU_OK(cu_check(&device->kernels, stream, p, 1024, 7,
                               (CUdeviceptr)(uintptr_t)device->mismatches));
                cu_disowned(p);
                CU_OK(cu.MemFree(p));
        }
}

/* ---- devices ---- */

static void open_device(int i)
{
        struct device *device = &peers.devices[i];

        device->ordinal = i;
        device->context = cu_start(i);
        cu_load_kernels(&device->kernels);
        device->mismatches = cu_counter(1024);
        CU_OK(cu.DeviceGetDefaultMemPool(&device->pool, i));
        for (int lane = 0; lane < LANES; lane++) {
                device->lanes[lane].device = device;
                CU_OK(cu.StreamCreate(&device->lanes[lane].stream, CU_STREAM_NON_BLOCKING));
        }
        for (int slot = 0; slot < SLOTS; slot++)
                CU_OK(cu.EventCreate(&peers.slots[slot].events[i], CU_EVENT_DISABLE_TIMING));
}

static void close_device(int i)
{
        struct device *device = &peers.devices[i];

        enter(device);
        for (int slot = 0; slot < SLOTS; slot++)
                CU_OK(cu.EventDestroy(peers.slots[slot].events[i]));
        for (int lane = 0; lane < LANES; lane++)
                CU_OK(cu.StreamDestroy(device->lanes[lane].stream));
        CU_OK(cu.MemFreeHost(device->mismatches));
}

static bool are_peers(void)
{
        int count = 0, there = 0, back = 0;

        cu_load();
        CU_OK(cu.Init(0));
        CU_OK(cu.DeviceGetCount(&count));
        if (count < DEVICES) {
                fprintf(stderr, "one GPU\n");
                return false;
        }
        CU_OK(cu.DeviceCanAccessPeer(&there, 0, 1));
        CU_OK(cu.DeviceCanAccessPeer(&back, 1, 0));
        if (!there || !back)
                fprintf(stderr, "the GPUs cannot reach each other's memory\n");
        return there && back;
}

/* ---- rounds ---- */

static void rounds(void)
{
        bool shared = options.mode == ALLOC || options.mode == MIXED;

        for (unsigned long i = 0; i < options.rounds; i++) {
                if (shared && i % ACCESS_ROUNDS == ACCESS_ROUNDS - 1) {
                        disable();
                        use_alone();
                        enable();
                }
                if (options.mode == SERIAL)
                        serial_round();
                else
                        block_round();
                peers.rounds++;
        }
        blocks_end();
}

static int finish(void)
{
        unsigned mismatches = peers.host_mismatches;

        disable();
        set_pool_access(CU_MEM_ACCESS_FLAGS_PROT_NONE);
        use_alone();
        wait_for_all();
        for (int i = 0; i < DEVICES; i++)
                mismatches += *peers.devices[i].mismatches;
        printf("rounds %lu mismatches %u allocations %lu frees %lu checks %lu copies %lu\n",
               peers.rounds, mismatches, peers.made, peers.freed, peers.checks, peers.copies);
        for (int i = 0; i < DEVICES; i++)
                close_device(i);
        return mismatches || peers.made != peers.freed;
}

static bool read_options(int argc, char **argv)
{
        static const struct option known[] = {
                {"mode", required_argument, NULL, 'm'},
                {"rounds", required_argument, NULL, 'r'},
                {"seed", required_argument, NULL, 's'},
                {"plant", no_argument, NULL, 'p'},
                {NULL, 0, NULL, 0},
        };
        int letter;

        while ((letter = getopt_long(argc, argv, "", known, NULL)) != -1) {
                if (letter == 'm') {
                        for (options.mode = ALLOC; strcmp(optarg, mode_names[options.mode]);)
                                if (++options.mode == MODES)
                                        return false;
                } else if (letter == 'r')
                        options.rounds = strtoul(optarg, NULL, 10);
                else if (letter == 's')
                        peers.seed = (unsigned)strtoul(optarg, NULL, 10);
                else if (letter == 'p')
                        peers.planted = true;
                else
                        return false;
        }
        return optind == argc;
}

int main(int argc, char **argv)
{
        if (!read_options(argc, argv)) {
                fprintf(stderr, "usage: peers [--mode alloc|pool|mixed|serial|question] "
                                "[--rounds N] [--seed S] [--plant]\n");
                return 2;
        }
        if (!are_peers())
                return 77;
        for (int i = 0; i < DEVICES; i++)
                open_device(i);
        enable();
        set_pool_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        peers.async_of_4 = options.mode == POOL ? 4 : options.mode == MIXED ? 2 : 0;
        if (options.mode == QUESTION) {
                question();
                return 0;
        }
        rounds();
        return finish();
}
