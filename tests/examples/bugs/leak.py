# SPDX-License-Identifier: Apache-2.0
"""Leak -- a cache that keeps what it should have given back

Expect: leak memory=device count=2 site=made
"""

import ctypes

driver = ctypes.CDLL("libcuda.so.1")


class Cache:
    def __init__(self):
        self.blocks = []

    def add(self, size):
        block = ctypes.c_uint64()
        if driver.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(size)):  # here: made
            raise MemoryError
        self.blocks.append(block)


def main():
    context = ctypes.c_void_p()
    driver.cuInit(0)
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxSetCurrent(context)
    cache = Cache()
    for size in (4096, 8192):
        cache.add(size)


main()
