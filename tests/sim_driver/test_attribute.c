/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Attributes -- table 3C: one column for one kind of memory
 */

#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "test_support.h"

enum kind {
        DEVICE,
        POOL,
        MAPPING,
        MANAGED,
        HOST,
        KINDS,
};

/* -1: not measured. */
static const struct {
        char name[8];
        int has_context, ipc, rdma, sync_memops_set, sync_memops, pool, retain, type;
        size_t range, bytes;
} table[KINDS] = {
        [DEVICE] = {"device", 1, 1, 1, 0, 0, 0, 1, CU_MEMORYTYPE_DEVICE, 1000, 1000},
        [POOL] = {"pool", 0, 0, 0, 0, 0, 1, 1, CU_MEMORYTYPE_DEVICE, 1000, 1000},
        [MAPPING] = {"mapping", 0, 0, 0, 801, 0, 0, 0, CU_MEMORYTYPE_DEVICE, 8 * MIB, 2 * MIB},
        [MANAGED] = {"managed", 1, 0, 0, 0, 1, 0, 1, CU_MEMORYTYPE_DEVICE, 1000, 1000},
        [HOST] = {"host", 1, 0, 0, -1, -1, 0, 1, CU_MEMORYTYPE_HOST, 1000, 1000},
};

static CUdeviceptr map(int rdma)
{
        CUmemAllocationProp prop = memory_of(0);
        CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        CUmemGenericAllocationHandle handle;
        CUdeviceptr p;

        prop.allocFlags.gpuDirectRDMACapable = (unsigned char)rdma;
        access.location = prop.location;
        ok(cuMemCreate(&handle, 2 * MIB, &prop, 0));
        ok(cuMemAddressReserve(&p, 8 * MIB, 0, 0, 0));
        ok(cuMemMap(p, 2 * MIB, 0, handle, 0));
        ok(cuMemSetAccess(p, 2 * MIB, &access, 1));
        return p;
}

static CUdeviceptr make(enum kind kind, CUstream stream)
{
        CUdeviceptr p = 0;
        void *host;

        switch (kind) {
        case DEVICE:
                ok(cuMemAlloc(&p, 1000));
                break;
        case POOL:
                ok(cuMemAllocAsync(&p, 1000, stream));
                break;
        case MAPPING:
                return map(0);
        case MANAGED:
                ok(cuMemAllocManaged(&p, 1000, CU_MEM_ATTACH_GLOBAL));
                break;
        case HOST:
                ok(cuMemHostAlloc(&host, 1000, 0));
                return (CUdeviceptr)host;
        case KINDS:
                break;
        }
        return p;
}

static int get_int(CUdeviceptr p, CUpointer_attribute attribute)
{
        int value = 77;

        ok(cuPointerGetAttribute(&value, attribute, p));
        return value;
}

Test(sim, every_kind_of_memory_looks_as_measured)
{
        struct world world = begin();

        for (int kind = 0; kind < KINDS; kind++) {
                CUdeviceptr p = make(kind, world.s1), start;
                unsigned long long id, again;
                CUmemGenericAllocationHandle handle;
                CUmemoryPool pool;
                CUipcMemHandle ipc;
                CUcontext context;
                size_t bytes;
                const char *name = table[kind].name;

                ok(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, p));
                cr_expect_eq(context, table[kind].has_context ? world.context : NULL, "%s", name);
                ok(cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p + 100));
                cr_expect_eq(bytes, table[kind].range, "%s", name);
                ok(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 100));
                cr_expect_eq(start, p, "%s", name);
                ok(cuMemGetAddressRange(NULL, &bytes, p + 100));
                cr_expect_eq(bytes, table[kind].bytes, "%s", name);
                cr_expect_eq(get_int(p, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE),
                             table[kind].ipc, "%s", name);
                expect(!table[kind].ipc, cuIpcGetMemHandle(&ipc, p));
                cr_expect_eq(get_int(p, CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE),
                             table[kind].rdma, "%s", name);
                ok(cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
                cr_expect_eq(pool != NULL, table[kind].pool, "%s", name);
                expect(table[kind].retain, cuMemRetainAllocationHandle(&handle, (void *)p));
                cr_expect_eq(get_int(p, CU_POINTER_ATTRIBUTE_MEMORY_TYPE), table[kind].type);
                cr_expect_eq(get_int(p, CU_POINTER_ATTRIBUTE_IS_MANAGED), kind == MANAGED);
                cr_expect_eq(get_int(p, CU_POINTER_ATTRIBUTE_MAPPED), 1, "%s", name);
                cr_expect_eq(get_int(p, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL), 0, "%s", name);
                ok(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
                ok(cuPointerGetAttribute(&again, CU_POINTER_ATTRIBUTE_BUFFER_ID, p + 999));
                cr_expect_eq(id, again, "%s", name);
        }
}

Test(sim, SYNC_MEMOPS_can_be_set_except_on_mappings)
{
        struct world world = begin();

        for (int kind = 0; kind < HOST; kind++) {
                CUdeviceptr p = make(kind, world.s1);
                unsigned int set = 1;

                cr_expect_eq(get_int(p, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS), table[kind].sync_memops);
                expect(table[kind].sync_memops_set,
                       cuPointerSetAttribute(&set, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
                cr_expect_eq(get_int(p, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS), kind != MAPPING);
        }
}

Test(sim, tokens_for_peers_make_copies_synchronous)
{
        CUDA_POINTER_ATTRIBUTE_P2P_TOKENS tokens;
        CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_P2P_TOKENS;
        void *values[] = {&tokens};
        struct world world = begin();

        for (int kind = 0; kind <= HOST; kind++) {
                CUdeviceptr p = make(kind, world.s1);

                expect(1, cuPointerGetAttributes(1, &attribute, values, p));
                cr_expect_eq(get_int(p, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS), kind == MANAGED);
                expect(kind == HOST,
                       cuPointerGetAttribute(&tokens, CU_POINTER_ATTRIBUTE_P2P_TOKENS, p));
                cr_expect_eq(get_int(p, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS), kind != HOST);
        }
}

Test(sim, no_other_attribute_can_be_set)
{
        struct world world = begin();
        unsigned int set = 1;

        for (int kind = 0; kind <= HOST; kind++) {
                CUdeviceptr p = make(kind, world.s1);

                expect(kind == MAPPING ? 801 : 1,
                       cuPointerSetAttribute(&set, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
        }
}

Test(sim, access_is_told_of_all_memory_and_given_to_mappings)
{
        CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
        struct world world = begin();
        unsigned long long flags;

        for (int kind = 0; kind < KINDS; kind++) {
                flags = 7;
                ok(cuMemGetAccess(&flags, &location, make(kind, world.s1) + 512));
                cr_expect_eq(flags, kind == MAPPING ? 3 : 0, "%s", table[kind].name);
        }
        expect(1, cuMemGetAccess(&flags, &location, 0x1000));
}

#if CUDA_VERSION >= 12080
Test(sim, only_plain_memory_takes_the_decompression_engine)
{
        struct world world = begin();

        for (int kind = 0; kind < KINDS; kind++)
                cr_expect_eq(get_int(make(kind, world.s1),
                                     CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE),
                             kind == DEVICE, "%s", table[kind].name);
}
#endif

Test(sim, a_buffer_id_is_new_also_at_an_old_address)
{
        unsigned long long first, second;
        CUdeviceptr p, q;

        begin();
        ok(cuMemAlloc(&p, 1000));
        ok(cuPointerGetAttribute(&first, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
        ok(cuMemFree(p));
        ok(cuMemAlloc(&q, 1000));
        cr_assert_eq(p, q);
        ok(cuPointerGetAttribute(&second, CU_POINTER_ATTRIBUTE_BUFFER_ID, q));
        cr_expect_neq(first, second);
}

Test(sim, a_freed_or_unknown_pointer_has_no_attributes)
{
        struct world world = begin();
        CUdeviceptr p, q;
        int type;

        ok(cuMemAlloc(&p, 1000));
        ok(cuMemFree(p));
        expect(1, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
        expect(1, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0x1234));
        ok(cuMemAlloc(&q, 1000));
        spin(&world, world.s1, 50 * MS);
        ok(cuMemFreeAsync(q, world.s1));
        expect(1, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, q));
        expect(500, cuMemGetAddressRange(&p, NULL, q));
        ok(cuMemGetAddressRange(NULL, NULL, q)); /* nothing is asked */
}

Test(sim, the_plural_query_answers_defaults_instead_of_errors)
{
        CUpointer_attribute attributes[] = {
                CU_POINTER_ATTRIBUTE_CONTEXT,
                CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                CU_POINTER_ATTRIBUTE_HOST_POINTER,
                CU_POINTER_ATTRIBUTE_RANGE_SIZE,
        };
        CUcontext context;
        int type;
        void *host;
        size_t bytes;
        void *values[] = {&context, &type, &host, &bytes};
        struct world world = begin();
        CUdeviceptr p;

        memset(&context, 7, sizeof(context));
        memset(&host, 7, sizeof(host));
        type = 7;
        bytes = 7;
        ok(cuPointerGetAttributes(4, attributes, values, 0x1234));
        cr_expect(!context && !type);
        cr_expect_eq(host, (void *)0x1234, "the host would have it there");
        cr_expect_eq(bytes, 7, "a range that is none is not written");
        ok(cuMemAlloc(&p, 1000));
        expect(1, cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, p));
        host = &host;
        ok(cuPointerGetAttributes(4, attributes, values, p));
        cr_expect_eq(context, world.context);
        cr_expect_eq(type, CU_MEMORYTYPE_DEVICE);
        cr_expect_null(host);
        cr_expect_eq(bytes, 1000);
}

/* M26 */
Test(sim, an_interior_pointer_has_the_handle_of_its_base)
{
        CUipcMemHandle first, second, neighbour;
        CUdeviceptr p, q;

        begin();
        ok(cuMemAlloc(&p, 4 * MIB));
        ok(cuIpcGetMemHandle(&first, p));
        ok(cuIpcGetMemHandle(&second, p + MIB));
        cr_expect_arr_eq(&first, &second, sizeof(first));
        ok(cuMemAlloc(&q, 4 * MIB));
        ok(cuIpcGetMemHandle(&neighbour, q));
        cr_expect(memcmp(&first, &neighbour, sizeof(first)));
        ok(cuMemFree(p));
        expect(1, cuIpcGetMemHandle(&first, p));
        expect(201, cuIpcOpenMemHandle(&p, neighbour, 1));
}

Test(sim, rdma_needs_a_mapping_made_for_it)
{
        CUdeviceptr p;

        begin();
        p = map(1);
        cr_expect_eq(get_int(p, CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE), 1);
}

#if CUDA_VERSION >= 11070
Test(sim, a_dma_buf_wants_whole_host_pages)
{
        struct world world = begin();
        CUdeviceptr p, q;
        int file = -1;

        ok(cuMemAlloc(&p, 4 * MIB));
        expect(1, cuMemGetHandleForAddressRange(&file, p + 512, 4096,
                                                CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
        expect(1, cuMemGetHandleForAddressRange(&file, p, 8 * MIB,
                                                CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
        ok(cuMemGetHandleForAddressRange(&file, p, 4 * MIB, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD,
                                         0));
        cr_expect_geq(fcntl(file, F_GETFD), 0);
        close(file);
        ok(cuMemAllocAsync(&q, 4 * MIB, world.s1));
        expect(1, cuMemGetHandleForAddressRange(&file, q, 4 * MIB,
                                                CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
}
#endif
