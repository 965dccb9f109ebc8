# SPDX-License-Identifier: Apache-2.0
"""Stack lines -- holds a block of a framework, and has the report say which line asked for it

    stack_lines.py torch|cupy|numba|cuda_python

What is held when the report is written is in its list of places. The line that is to be
there ends in a comment with "here".
"""

import ctypes
import sys

SIZE = 1 << 20


def torch():
    import torch

    torch.zeros(16, device="cuda")  # so that what a first call needs is there
    return torch.empty(SIZE, dtype=torch.uint8, device="cuda")  # here: torch


def cupy():
    import cupy

    cupy.cuda.set_allocator(None)
    return cupy.empty(SIZE, dtype=cupy.uint8)  # here: cupy


def numba():
    from numba import cuda

    return cuda.device_array(SIZE, dtype="uint8")  # here: numba


def cuda_python():
    from cuda.bindings import driver

    _, context = driver.cuDevicePrimaryCtxRetain(0) if not driver.cuInit(0)[0] else (0, None)
    driver.cuCtxSetCurrent(context)
    return driver.cuMemAlloc(SIZE)  # here: cuda_python


def main():
    try:
        held = {"torch": torch, "cupy": cupy, "numba": numba, "cuda_python": cuda_python}[sys.argv[1]]()
    except ImportError as error:
        print(error)
        return 77
    ctypes.CDLL(None).streampool_write_report()
    return held is None


if __name__ == "__main__":
    sys.exit(main())
