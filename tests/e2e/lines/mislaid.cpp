/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mislaid -- a program in C++ whose places lines.py knows
 *
 * As lost.c, with names that have to be demangled.
 */
extern "C" {
#include "cu.h"
}

namespace tank
{

template <typename Item> struct Box {
        __attribute__((noinline)) bool hold(std::size_t count);
        CUdeviceptr content = 0;
};

template <typename Item> bool Box<Item>::hold(std::size_t count)
{
        CUresult result = cu.MemAlloc(&content, count * sizeof(Item)); /* here: hold */

        return result == CUDA_SUCCESS && content;
}

template <typename Item> inline __attribute__((always_inline)) bool share(Item item)
{
        CUdeviceptr p = 0;
        CUresult result =
                cu.MemAllocManaged(&p, sizeof(item), CU_MEM_ATTACH_GLOBAL); /* here: share */

        return result == CUDA_SUCCESS && p;
}

} // namespace tank

int main()
{
        tank::Box<double> box;
        bool held, shared;

        cu_start(0);
        held = box.hold(100);
        shared = tank::share<long>(0); /* here: main */
        return held && shared ? 0 : 1;
}
