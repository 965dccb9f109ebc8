#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Find driver -- is there an NVIDIA driver here that has a device

Says which, and exits with 0; exits with 1 without a word where there is none.
"""

import ctypes
import sys


def main():
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 1
    count, version = ctypes.c_int(0), ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 1
    if count.value < 1 or driver.cuDriverGetVersion(ctypes.byref(version)) != 0:
        return 1
    number = version.value
    print(f"NVIDIA driver for CUDA {number // 1000}.{number % 1000 // 10}, devices: {count.value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
