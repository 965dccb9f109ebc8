# SPDX-License-Identifier: Apache-2.0
"""Double free -- close() by the user, and once more by the end of the block

Expect: double_free site=second freed_at=first allocation=made
"""

import ctypes

driver = ctypes.CDLL("libcuda.so.1")


class Buffer:
    def __init__(self, size):
        self.block = ctypes.c_uint64()
        driver.cuMemAlloc_v2(ctypes.byref(self.block), ctypes.c_size_t(size))  # here: made

    def __enter__(self):
        return self

    def __exit__(self, *_):
        driver.cuMemFree_v2(self.block)  # here: second


def start():
    context = ctypes.c_void_p()
    driver.cuInit(0)
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxSetCurrent(context)


start()
with Buffer(4096) as buffer:
    driver.cuMemFree_v2(buffer.block)  # here: first
