#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Torch workloads -- compiled models that replay CUDA graphs, and one process with two GPUs

    torch_workloads.py compile|pair [NAME...]

Prints one JSON line for every workload, as workloads.py does. What cannot be measured
says why instead, as "unable": a compiler is missing, an allocator does not support it,
or the results are not those of the same model uncompiled. Where there is nothing to do
the status is 77. Nothing here knows of streampool.

compile   torch.compile(mode="reduce-overhead"), beside the same model uncompiled;
          $CUDAGRAPH_TREES=0 has graphs recorded without trees of private pools
pair      copies and training across two GPUs
"""
import json
import os
import random
import sys

from workloads import MULTICAST_OFF, WARM, measure

STEPS = 200


class Unable(Exception):
    """Not a failure: there is nothing to compare."""


def prepare():
    os.environ.update(MULTICAST_OFF)
    os.environ.setdefault('CUBLAS_WORKSPACE_CONFIG', ':4096:8')
    import torch
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True, warn_only=True)
    return torch


# compile


def mlp(torch):
    nn = torch.nn
    torch.manual_seed(0)
    return nn.Sequential(*[nn.Sequential(nn.Linear(256, 256), nn.LayerNorm(256), nn.GELU())
                           for _ in range(4)]).cuda()


def batch(torch, i):
    """The same numbers whoever asks, in memory of their own."""
    return torch.randn(128, 256, device='cuda',
                       generator=torch.Generator('cuda').manual_seed(i))


def churn(torch, i):
    for _ in range(3):
        torch.full((random.Random(i).randrange(1000, 1 << 20),), 1.0, device='cuda').mul_(2)


def inference(torch, compiled):
    model = mlp(torch)
    call = torch.compile(model, mode='reduce-overhead') if compiled else model

    def step(i):
        with torch.no_grad():
            total = call(batch(torch, i)).square().mean()
        churn(torch, i)
        return total
    return step


def training(torch, compiled):
    model = mlp(torch)
    call = torch.compile(model, mode='reduce-overhead') if compiled else model
    optimizer = torch.optim.SGD(model.parameters(), 0.01)

    def step(i):
        if compiled:
            torch.compiler.cudagraph_mark_step_begin()
        loss = call(batch(torch, i)).square().mean()
        loss.backward()
        churn(torch, i)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()
    return step


def count_replays(torch):
    """A graph may be left out without a word: then there is nothing to compare."""
    replay, counted = torch.cuda.CUDAGraph.replay, [0]

    def counting(graph):
        counted[0] += 1
        return replay(graph)
    torch.cuda.CUDAGraph.replay = counting
    return counted


def settle():
    """Kernels that are chosen by the clock would add up in another order each time."""
    from torch._inductor import config
    if hasattr(config, 'deterministic'):
        config.deterministic = True
    if os.environ.get('CUDAGRAPH_TREES') == '0':
        config.triton.cudagraph_trees = False


def compare_with_uncompiled(torch, name, build, replays, build_uncompiled):
    """Raises Unable if it is no CUDA graphs that are measured, or if what they say is wrong."""
    seen, before = [], replays[0]

    def value(result):
        seen.append(float(result))
        return seen[-1]
    measure(name, build(), torch.cuda.synchronize, value, STEPS)
    if replays[0] == before:
        raise Unable('no CUDA graph was replayed')
    step, wanted = build_uncompiled(), []
    for i in range(WARM + 8 * len(seen)):
        result = step(i)
        if i >= WARM and (i - WARM) % 8 == 7:
            wanted.append(float(result))
    for one, other in zip(seen, wanted):
        if not abs(one - other) <= 0.02 * abs(other):
            raise Unable(f'{one} is not what the model computes uncompiled, {other}')


def compile_group(torch, names):
    settle()
    replays = count_replays(torch)
    for name, build in (('inference', inference), ('training', training)):
        if names and name not in names:
            continue
        try:
            compare_with_uncompiled(torch, name, lambda: build(torch, True), replays,
                                    lambda: build(torch, False))
        except Exception as error:  # a compiler's, or an allocator's that does not support it
            words = f'{type(error).__name__}: {error}'.split()
            print(json.dumps({'name': name, 'unable': ' '.join(words)[:200]}), flush=True)


# pair


def copies(torch):
    """There and back, twice at once there."""
    wrong = torch.zeros((), dtype=torch.int64, device='cuda:0')
    side = torch.cuda.Stream('cuda:1')

    def step(i):
        count = random.Random(i).choice((1, 1000, 65537, 1 << 20, (3 << 20) + 5))
        x = (torch.arange(count, device='cuda:0') + i).remainder_(1000).float()
        y = x.to('cuda:1', non_blocking=True) * 2
        side.wait_stream(torch.cuda.current_stream('cuda:1'))
        with torch.cuda.stream(side):
            z = x.to('cuda:1', non_blocking=True) + y
        torch.cuda.current_stream('cuda:1').wait_stream(side)
        z.record_stream(torch.cuda.current_stream('cuda:1'))
        y.record_stream(side)
        back = torch.empty_like(x)
        back.copy_(z, non_blocking=True)
        wrong.add_((back != x * 3).sum())
        return torch.stack([back.sum(dtype=torch.float64), wrong.double()])

    def value(result):
        total, bad = result.tolist()
        if bad:
            raise AssertionError(f'{bad:.0f} words arrived wrong')
        return total
    return step, value


def split(torch):
    """A model of which each device has a half; autograd has a thread for each."""
    nn = torch.nn
    torch.manual_seed(0)
    halves = [nn.Sequential(*[nn.Sequential(nn.Linear(512, 512), nn.ReLU()) for _ in range(4)])
              .to(f'cuda:{device}') for device in range(2)]
    optimizer = torch.optim.SGD([p for half in halves for p in half.parameters()], 0.01)

    def step(i):
        x = torch.randn(random.Random(i).randrange(32, 256), 512, device='cuda:0')
        loss = halves[1](halves[0](x).to('cuda:1')).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss
    return step, float


def parallel(torch):
    """DataParallel: threads, and NCCL within one process."""
    nn = torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Sequential(nn.Linear(256, 256), nn.ReLU()) for _ in range(4)])
    model = nn.DataParallel(model.cuda(), device_ids=[0, 1])
    optimizer = torch.optim.SGD(model.parameters(), 0.01)

    def step(i):
        x = torch.randn(2 * random.Random(i).randrange(16, 128), 256, device='cuda:0')
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss
    return step, float


def pair_group(torch, names):
    if torch.cuda.device_count() < 2:
        raise Unable('one GPU')

    def finish():
        for device in range(2):
            torch.cuda.synchronize(device)
    for build in (copies, split, parallel):
        if names and build.__name__ not in names:
            continue
        step, value = build(torch)
        measure(build.__name__, step, finish, value, STEPS)


def main():
    try:
        torch = prepare()
        {'compile': compile_group, 'pair': pair_group}[sys.argv[1]](torch, sys.argv[2:])
    except ImportError as error:
        print(f'not installed: {error}', file=sys.stderr)
        return 77
    except Unable as error:
        print(error, file=sys.stderr)
        return 77
    return 0


if __name__ == '__main__':
    sys.exit(main())
