# SPDX-License-Identifier: Apache-2.0
"""Check peers -- two GPUs that use each other's memory, bare and under the shim

In one process through the driver and through PyTorch, in two through NCCL. Every
run has a time limit, behind which it is killed with all that it has started: a
process that waits for another one is a row of the table.
"""

import os
import subprocess
import sys

import shimrun
from check_rows import TORCH, speeds, trouble, unplanted

FOLDER = os.path.dirname(os.path.abspath(__file__))
RANKS = os.path.join(FOLDER, 'ranks.py')
TORCH_WORKLOADS = os.path.join(FOLDER, 'torch_workloads.py')
COUNT = ("import ctypes; count = ctypes.c_int(); driver = ctypes.CDLL('libcuda.so.1'); "
         "driver.cuInit(0); driver.cuDeviceGetCount(ctypes.byref(count)); print(count.value)")
LIMIT = 60


def gpus():
    """How many there are; 0 where there is no driver."""
    asked = subprocess.run([sys.executable, '-c', COUNT], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, timeout=LIMIT)
    return 0 if asked.returncode else int(asked.stdout)


# steps


def driver(name, check):
    """As many checks under the shim as without it, and no word that changed."""
    program = check.gpu_program('peers')
    seeds, rounds = (1, 1000) if check.options.quick else (2, 2000)
    for mode in ('alloc', 'pool', 'mixed', 'serial'):
        failures, allocations, seconds, unordered = [], 0, [0, 0], False
        for seed in range(1, seeds + 1):
            command = [program, '--mode', mode, '--rounds', str(rounds), '--seed', str(seed)]
            bare = check.run(command, limit=LIMIT)
            if bare.status == 77:
                check.row(name, '', None, bare.err.strip())
                return
            # What cuMemcpyPeer waits for is in words only: the bare driver decides what is right.
            unordered |= mode == 'serial' and bare.status == 1
            run = check.run(command, 'pool', limit=LIMIT)
            failures += trouble(bare, 'bare') + trouble(run, 'shim') + unplanted(run.report)
            if ' mismatches 0 ' not in run.out or run.out != bare.out:
                failures.append(f'seed {seed}: bare: {bare.out.strip()} shim: {run.out.strip()}')
            allocations += sum(shimrun.made(run.report).values())
            seconds = [seconds[0] + bare.seconds, seconds[1] + run.seconds]
        if unordered:
            check.row(f'{name} {mode}', f'{seeds} seeds', None, 'bare: ' + bare.out.strip())
            continue
        check.row(f'{name} {mode}', f'{seeds} seeds', failures,
                  f'rounds {seeds * rounds} mismatches 0', allocations=str(allocations),
                  **speeds(seeds * rounds / seconds[0], seeds * rounds / seconds[1]))
    asked = [check.run([program, '--mode', 'question'], mode, limit=LIMIT).out.strip()
             for mode in (None, 'pool')]
    check.row(f'{name} question', '', None if all(asked) else ['no answer'],
              f'nothing to compare; bare: {asked[0]}; shim: {asked[1]}')


def nccl(name, check):
    kinds = dict(TORCH)
    # Its own buffers then are exported as those of any program, by cuIpcGetMemHandle.
    kinds['no cache, NCCL by cuIpc'] = dict(TORCH['no cache'], NCCL_CUMEM_ENABLE='0')
    for kind, settings in kinds.items():
        check.python(name, 'collectives', kind, settings, script=RANKS, needs=60, processes=2)


def ddp(name, check):
    check.python(name, 'ddp', 'no cache', TORCH['no cache'], script=RANKS, needs=60, processes=2)


def torch(name, check):
    """One process."""
    for kind, settings in TORCH.items():
        # Bare, a free of one thread may wait for a broadcast that another has half launched.
        names = ('copies', 'split') if kind == 'no cache' else ()
        check.python(name, 'pair', kind, settings, names, script=TORCH_WORKLOADS, needs=45,
                     limit=60)


STEPS = {'peers-driver': driver, 'peers-nccl': nccl, 'peers-ddp': ddp, 'peers-torch': torch}


def steps(check):
    wanted = [name for name in STEPS if check.wanted(name)]
    if wanted and gpus() < 2:
        check.row('peers', '', None, 'one GPU')
        return
    for name in wanted:
        check.step(name, STEPS[name], check)
