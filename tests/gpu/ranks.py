#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks -- two processes of PyTorch, one GPU each, that talk through NCCL

    ranks.py collectives|ddp

Starts both, and prints one JSON line for every workload, as workloads.py does, with
the checksums of both. Every word that arrives is also compared with what was sent.
If one process fails, the other is ended, which would wait for it for ever. They
meet through a file, so that no port and no name of the machine is needed.

Nothing here knows of streampool.
"""
import datetime
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import traceback

RANKS = 2
SIZES = (1, 7, 1000, 4096, 65537, 300000, 1 << 20, (3 << 20) + 5)


# one process of the two


class Checked:
    """What arrives is compared on the device; the host asks now and then, and that raises."""

    def __init__(self, torch):
        self.torch = torch
        self.wrong = torch.zeros((), dtype=torch.int64, device='cuda')

    def same(self, got, wanted):
        """A sum that is exact in any order: the words are small and whole."""
        self.wrong += (got != wanted).sum()
        return got.sum(dtype=self.torch.float64)

    def value(self, total):
        wrong = int(self.wrong)
        if wrong:
            raise AssertionError(f'{wrong} words arrived wrong')
        return float(total)


def collectives(torch, dist, measure, rank):
    checked = Checked(torch)

    def words(owner, i, count):
        return (torch.arange(count, device='cuda') * (owner + 1) + i).remainder_(1000).float()

    def size(i):
        return random.Random(i).choice(SIZES)

    def churn(i):
        """Memory that comes and goes between, and while, others are on their way."""
        for part in range(3):
            torch.full((size(3 * i + part),), float(i), device='cuda').mul_(2)

    def reduced(i):
        return words(0, i, size(i)) + words(1, i, size(i))

    def all_reduce(i):
        x = words(rank, i, size(i))
        dist.all_reduce(x)
        churn(i)
        return checked.same(x, reduced(i))

    def behind(i):
        """Waited for by the stream only, and its memory is given up at once."""
        x, y = words(rank, i, size(i)), words(rank, i + 1, size(i + 1))
        pending = [dist.all_reduce(x, async_op=True), dist.all_reduce(y, async_op=True)]
        churn(i)
        for one in pending:
            one.wait()
        return checked.same(x, reduced(i)) + checked.same(y, reduced(i + 1))

    def all_gather(i):
        parts = [torch.empty(size(i), device='cuda') for _ in range(RANKS)]
        dist.all_gather(parts, words(rank, i, size(i)))
        churn(i)
        return sum(checked.same(part, words(owner, i, size(i)))
                   for owner, part in enumerate(parts))

    def reduce_scatter(i):
        mine = torch.empty(size(i), device='cuda')
        parts = words(rank, i, RANKS * size(i))
        dist.reduce_scatter_tensor(mine, parts)
        both = words(0, i, RANKS * size(i)) + words(1, i, RANKS * size(i))
        return checked.same(mine, both.view(RANKS, -1)[rank])

    def exchange(i):
        peer, got = 1 - rank, torch.empty(size(i), device='cuda')
        for one in dist.batch_isend_irecv([dist.P2POp(dist.isend, words(rank, i, size(i)), peer),
                                           dist.P2POp(dist.irecv, got, peer)]):
            one.wait()
        churn(i)
        return checked.same(got, words(peer, i, size(i)))

    def pass_on(i):
        """One sends, the other one receives, adds and sends back."""
        x = words(0, i, size(i)) if rank == 0 else torch.empty(size(i), device='cuda')
        if rank == 0:
            dist.send(x, 1)
            churn(i)
            dist.recv(x, 1)
        else:
            dist.recv(x, 0)
            dist.send(x + 1, 0)
        return checked.same(x, words(0, i, size(i)) + (1 if rank == 0 else 0))

    for step in (all_reduce, behind, all_gather, reduce_scatter, exchange, pass_on):
        measure(step.__name__, step, torch.cuda.synchronize, checked.value, 200)


def ddp(torch, dist, measure, rank):
    """Training, both with their own half of the data; the buckets are small, to have several."""
    nn = torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Sequential(nn.Linear(512, 512), nn.ReLU()) for _ in range(8)])
    model = nn.parallel.DistributedDataParallel(model.cuda(), device_ids=[rank], bucket_cap_mb=1)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    data = torch.Generator('cuda').manual_seed(1 + rank)

    def step(i):
        count = random.Random(i).randrange(32, 256)
        loss = model(torch.randn(count, 512, device='cuda', generator=data)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss
    measure('ddp', step, torch.cuda.synchronize, float, 150)
    sums = torch.stack([p.detach().double().sum() for p in model.parameters()])
    both = [torch.empty_like(sums) for _ in range(RANKS)]
    dist.all_gather(both, sums)
    if not torch.equal(both[0], both[1]):
        raise AssertionError('the two models are not the same')


GROUPS = {'collectives': collectives, 'ddp': ddp}


def run_group(group, rank, meeting):
    from workloads import MULTICAST_OFF, measure
    os.environ.update(MULTICAST_OFF)
    os.environ.setdefault('CUBLAS_WORKSPACE_CONFIG', ':4096:8')
    import torch
    import torch.distributed as dist
    if torch.cuda.device_count() < RANKS:
        return 'one GPU'
    if not dist.is_available() or not dist.is_nccl_available():
        return 'this PyTorch has no NCCL'
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.cuda.set_device(rank)
    dist.init_process_group('nccl', init_method='file://' + meeting, rank=rank, world_size=RANKS,
                            timeout=datetime.timedelta(seconds=45))
    GROUPS[group](torch, dist, measure, rank)
    torch.cuda.synchronize()
    dist.destroy_process_group()
    return None


def one_rank(group, rank, meeting):
    """Never raises: the way out of the interpreter leads through NCCL, which may wait there."""
    try:
        missing = run_group(group, rank, meeting)
    except ImportError as error:
        missing = f'not installed: {error}'
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    if missing:
        print(missing, file=sys.stderr)
    return 77 if missing else 0


# both


def wait_for(processes):
    """The first status that is not 0, or 0. Ends those that are left then."""
    while True:
        statuses = [process.poll() for process in processes]
        failed = [status for status in statuses if status]
        if failed or None not in statuses:
            break
        time.sleep(0.05)
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.wait()
    return failed[0] if failed else 0


def merge(texts):
    """One line for each workload: the checksums of both, the rest as the first one says."""
    lines = [[json.loads(line) for line in text.splitlines() if line.startswith('{')]
             for text in texts]
    for one, other in zip(*lines):
        yield dict(one, checksum=one['checksum'] + ' ' + other['checksum'])


def main():
    group = sys.argv[1]
    if len(sys.argv) > 2:
        return one_rank(group, int(sys.argv[2]), sys.argv[3])
    with tempfile.TemporaryDirectory(prefix='ranks-') as folder:
        outputs = [open(os.path.join(folder, f'out-{rank}'), 'w+') for rank in range(RANKS)]
        processes = [subprocess.Popen([sys.executable, os.path.abspath(__file__), group, str(rank),
                                       os.path.join(folder, 'meeting')], stdout=outputs[rank])
                     for rank in range(RANKS)]
        status = wait_for(processes)
        for output in outputs:
            output.seek(0)
        for line in merge([output.read() for output in outputs]):
            print(json.dumps(line))
        for output in outputs:
            output.close()
    return status if status >= 0 else 128 - status


if __name__ == '__main__':
    sys.exit(main())
