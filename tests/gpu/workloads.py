#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small programs of the frameworks, each with a fixed number of steps and a checksum

    workloads.py GROUP [NAME...]

Prints one JSON line for every workload of the group: its name, a checksum that
must not depend on who serves the memory, iterations per second, the peak of the
device's memory in MiB above the level at the start, and where the program can
count its own allocations, how many it made. Nothing here knows of streampool.

Groups: torch, cupy, jax, numba, cuda_python, ctypes.
"""
import ctypes
import json
import os
import random
import sys
import threading
import time

# Steps of each workload: about a second's worth, so that a speed is one. More or fewer of all
# of them is a matter of $STEPS_PERCENT.
PERCENT = int(os.environ.get('STEPS_PERCENT', '100'))
WARM = 4

# For programs with several GPUs: NVLink multicast can put all those of a machine out of service.
MULTICAST_OFF = {'NCCL_NVLS_ENABLE': '0', 'TORCH_SYMM_MEM_DISABLE_MULTICAST': '1',
                 'NVSHMEM_DISABLE_NVLS': '1'}


class Peak:
    """The device's memory as its management library sees it: no allocator can hide from that."""

    def __init__(self):
        self.peak = 0
        try:
            import pynvml
            pynvml.nvmlInit()
            handle = pynvml.nvmlDeviceGetHandleByIndex(0)
            self.used = lambda: pynvml.nvmlDeviceGetMemoryInfo(handle).used
            self.base = self.used()
        except Exception:  # no such package, or no such library: the column stays empty
            self.used = None
        if self.used:
            threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        while True:
            self.peak = max(self.peak, self.used() - self.base)
            time.sleep(0.004)

    def restart(self):
        self.peak = 0

    def mib(self):
        return self.peak >> 20 if self.used else None


PEAK = Peak()


def measure(name, step, finish, value, steps, made=None):
    """Run @step; its results go into the checksum in the order they were made."""
    steps = max(8, steps * PERCENT // 100)
    for i in range(WARM):
        step(i)
    finish()
    PEAK.restart()
    start = time.perf_counter()
    results = []
    for i in range(steps):
        last = step(WARM + i)
        if i % 8 == 7:
            results.append(value(last))
    finish()
    seconds = time.perf_counter() - start
    time.sleep(0.01)
    line = {'name': name, 'checksum': repr(results), 'it_s': round(steps / seconds, 2),
            'peak_mib': PEAK.mib()}
    if made is not None:
        line['made'] = made()
    print(json.dumps(line), flush=True)


# torch


def torch_group(names):
    os.environ.setdefault('CUBLAS_WORKSPACE_CONFIG', ':4096:8')
    import torch
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True, warn_only=True)
    # The fused attentions add up in no particular order.
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)
    nn, dev = torch.nn, 'cuda'

    def clean():
        torch.cuda.synchronize()

    def mlp():
        model = nn.Sequential(*[nn.Sequential(nn.Linear(512, 512), nn.ReLU())
                                for _ in range(8)]).to(dev)
        optimizer = torch.optim.SGD(model.parameters(), 0.01)

        def step(_):
            loss = model(torch.randn(256, 512, device=dev)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            return loss
        return step

    def conv():
        model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
                              nn.Conv2d(32, 64, 3, padding=1, stride=2), nn.ReLU(),
                              nn.Flatten(), nn.Linear(64 * 32 * 32, 10)).to(dev)
        optimizer = torch.optim.SGD(model.parameters(), 0.001)

        def step(_):
            x = torch.randn(32, 3, 64, 64, device=dev)
            loss = nn.functional.cross_entropy(model(x), torch.arange(32, device=dev) % 10)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            return loss
        return step

    def lengths():
        """Another length every step, as language models see them."""
        layer = nn.TransformerEncoderLayer(256, 4, 512, dropout=0.0, batch_first=True).to(dev)
        optimizer = torch.optim.SGD(layer.parameters(), 0.001)

        def step(i):
            length = random.Random(i).randrange(32, 512)
            loss = layer(torch.randn(8, length, 256, device=dev)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            return loss
        return step

    def streams():
        side = [torch.cuda.Stream() for _ in range(4)]

        def step(i):
            chance, outputs = random.Random(i), []
            for stream in side:
                with torch.cuda.stream(stream):
                    a = torch.randn(chance.randrange(64, 1200), 512, device=dev)
                    b = (a @ a.T).relu()
                    outputs.append(b.sum())
                    b.record_stream(torch.cuda.current_stream())
            for stream, output in zip(side, outputs):
                torch.cuda.current_stream().wait_stream(stream)
                output.record_stream(torch.cuda.current_stream())
            return torch.stack(outputs).sum()
        return step

    def graph():
        """Replays of a captured graph, with ordinary work in between."""
        x = torch.ones(256, 256, device=dev)
        w = torch.randn(256, 256, device=dev) / 16
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                y = (x @ w).tanh() @ w
        torch.cuda.current_stream().wait_stream(side)
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            y = (x @ w).tanh() @ w

        def step(i):
            x.copy_(torch.full((256, 256), 1.0 + i, device=dev))
            captured.replay()
            return (y + torch.ones_like(y)).sum()
        return step

    workloads = {'mlp': (mlp, 200), 'conv': (conv, 200), 'lengths': (lengths, 120),
                 'streams': (streams, 400), 'graph': (graph, 2000)}
    for name, (build, steps) in workloads.items():
        if names and name not in names:
            continue
        torch.manual_seed(0)
        measure(name, build(), clean, float, steps)
        torch.cuda.synchronize()
        torch.cuda.empty_cache()


# cupy


def cupy_group(_names):
    import cupy
    kind = os.environ.get('CUPY_POOL', 'default')
    if kind == 'none':
        cupy.cuda.set_allocator(None)
    elif kind == 'async':
        cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)
    second = cupy.cuda.Stream(non_blocking=True)

    def step(i):
        count = random.Random(i).randrange(1000, 500000)
        a = cupy.arange(count, dtype=cupy.float64)
        b = cupy.sort(cupy.sin(a) * 2 + cupy.sqrt(a))[::2]
        with second:
            c = cupy.arange(count, dtype=cupy.float64) * 0.5
            d = c.sum()
        second.synchronize()
        return b.sum() + a[:100] @ b[:100] + d
    measure(kind, step, cupy.cuda.Device().synchronize, float, 600)


# jax


def jax_group(_names):
    import jax
    import jax.numpy as jnp
    gradient = jax.jit(jax.grad(lambda w, x: jnp.tanh(x @ w).sum()))
    w = jnp.ones((512, 512)) / 512

    def step(i):
        x = jnp.ones((128 * (1 + i % 4), 512)) * (1 + i % 3)
        y = jnp.sin(x) + x
        return gradient(w, y).sum()
    measure(os.environ.get('XLA_PYTHON_CLIENT_ALLOCATOR', 'default'), step,
            lambda: jax.block_until_ready(jnp.zeros(1)), float, 200)


# numba


def numba_group(_names):
    import numpy
    if not hasattr(numpy, 'row_stack'):
        numpy.row_stack = numpy.vstack  # gone from NumPy 2.5, and Numba still names it on import
    from numba import cuda
    made = [0]

    @cuda.jit
    def double(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = 2 * x[i]

    def array(count):
        made[0] += 1
        return cuda.device_array(count, dtype=numpy.float64)

    def step(i):
        count = random.Random(i).randrange(1000, 200000)
        made[0] += 1
        x = cuda.to_device(numpy.arange(count, dtype=numpy.float64))
        y = array(count)
        double[(count + 127) // 128, 128](x, y)
        return y
    measure('arrays', step, cuda.synchronize, lambda y: float(y.copy_to_host().sum()),
            500, made=lambda: {'device': made[0]})


# cuda-python


def cuda_python_group(_names):
    try:
        from cuda.bindings import driver
    except ImportError:
        from cuda import cuda as driver
    import numpy

    def ok(result):
        if int(result[0]) != 0:
            raise RuntimeError(f'driver answered {result[0]}')
        return result[1] if len(result) == 2 else None

    ok(driver.cuInit(0))
    device = ok(driver.cuDeviceGet(0))
    context = ok(driver.cuDevicePrimaryCtxRetain(device))
    ok(driver.cuCtxSetCurrent(context))
    stream = ok(driver.cuStreamCreate(1))
    made = [0, 0]

    def step(i):
        count = random.Random(i).randrange(1000, 200000)
        back = numpy.zeros(count, dtype=numpy.uint32)
        p = ok(driver.cuMemAlloc(count * 4))
        q = ok(driver.cuMemAllocAsync(count * 4, stream))
        made[0] += 1
        made[1] += 1
        ok(driver.cuMemsetD32Async(p, i, count, stream))
        ok(driver.cuMemcpyDtoDAsync(q, p, count * 4, stream))
        ok(driver.cuMemcpyDtoHAsync(back.ctypes.data, q, count * 4, stream))
        ok(driver.cuMemFreeAsync(q, stream))
        ok(driver.cuStreamSynchronize(stream))
        ok(driver.cuMemFree(p))
        return int(back.sum())
    measure('bindings', step, lambda: ok(driver.cuCtxSynchronize()), int, 1000,
            made=lambda: {'device': made[0], 'async': made[1]})


# ctypes


def ctypes_group(_names):
    driver = ctypes.CDLL('libcuda.so.1')

    def ok(result):
        if result:
            raise RuntimeError(f'driver answered {result}')

    device, context, stream = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    ok(driver.cuInit(0))
    ok(driver.cuDeviceGet(ctypes.byref(device), 0))
    ok(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    ok(driver.cuCtxSetCurrent(context))
    ok(driver.cuStreamCreate(ctypes.byref(stream), 1))
    made = [0, 0]

    def step(i):
        count = random.Random(i).randrange(1000, 200000)
        p, q = ctypes.c_uint64(), ctypes.c_uint64()
        back = (ctypes.c_uint32 * count)()
        ok(driver.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(count * 4)))
        ok(driver.cuMemAllocAsync(ctypes.byref(q), ctypes.c_size_t(count * 4), stream))
        made[0] += 1
        made[1] += 1
        ok(driver.cuMemsetD32Async(p, ctypes.c_uint(i), ctypes.c_size_t(count), stream))
        ok(driver.cuMemcpyDtoDAsync_v2(q, p, ctypes.c_size_t(count * 4), stream))
        ok(driver.cuMemcpyDtoHAsync_v2(back, q, ctypes.c_size_t(count * 4), stream))
        ok(driver.cuMemFreeAsync(q, stream))
        ok(driver.cuStreamSynchronize(stream))
        ok(driver.cuMemFree_v2(p))
        return back[0] + back[count - 1]
    measure('calls', step, lambda: ok(driver.cuCtxSynchronize()), int, 1000,
            made=lambda: {'device': made[0], 'async': made[1]})


GROUPS = {'torch': torch_group, 'cupy': cupy_group, 'jax': jax_group, 'numba': numba_group,
          'cuda_python': cuda_python_group, 'ctypes': ctypes_group}
MODULES = {'torch': 'torch', 'cupy': 'cupy', 'jax': 'jax', 'numba': 'numba',
           'cuda_python': 'cuda', 'ctypes': 'ctypes'}


def main():
    group = sys.argv[1]
    try:
        __import__(MODULES[group])
    except ImportError as error:
        print(f'not installed: {error}', file=sys.stderr)
        return 77
    GROUPS[group](sys.argv[2:])
    return 0


if __name__ == '__main__':
    sys.exit(main())
