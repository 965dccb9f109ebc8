#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ordered -- nobody is blamed for stream order who is right, and nothing else changes

    ordered.py --driver LIBCUDA --shim SHIM --apps FOLDER --gpu FOLDER

The programs are those of matrix.py, and so is what has to be the same. Whom to blame is in
tests/examples.
"""
import sys

import matrix
import shimrun
from matrix import alone, app, clean, note, same, shimmed, tortured

CHECKED = {'STREAMPOOL_CHECK': 'uses,order'}


def random_programs():
    """On many streams, that wait for each other and for the host."""
    for seed in range(1, 9):
        runs = same(app('random', seed, 600), modes=('pool', 'observe'), **CHECKED,
                    SIM_TIME='threads' if seed % 4 == 0 else 'virtual',
                    STREAMPOOL_BACKING='native' if seed % 3 == 0 else 'vmm')
        clean(runs['pool'], f'random {seed}')
        found = shimrun.findings(runs['observe'].report)
        note(not found, f'random {seed}, observed: {found}')


def torture():
    """Threads, streams, graphs, host functions."""
    for mode in ('r1', 'r2', 'mixed'):
        for seed in range(1, 4):
            wanted = alone(tortured(mode, seed)).out
            for time in ('virtual', 'threads'):
                result = shimmed(tortured(mode, seed), SIM_TIME=time, **CHECKED)
                note(result.out == wanted, f'torture {mode} {seed} {time}: {result.out}')
                clean(result, f'torture {mode} {seed} {time}')


def contexts():
    """That come and go, on two devices, and use each other's memory."""
    for seed in range(1, 4):
        result = shimmed(app('schedules', '--seed', seed, '--count', 300), SIM_DEVICES='2', **CHECKED)
        note(result.out.endswith(' mismatches 0\n'), f'schedules {seed}: {result.out}')
        clean(result, f'schedules {seed}')
    for mode in ('alloc', 'pool', 'mixed'):
        for time in ('virtual', 'threads'):
            runs = same(app('peers', '--mode', mode, '--rounds', 600, '--seed', 1),
                        modes=('pool',), SIM_DEVICES='2', SIM_TIME=time, **CHECKED)
            note(' mismatches 0 ' in runs['pool'].out, f'peers {mode} {time}')
            clean(runs['pool'], f'peers {mode} {time}')


def captures_and_threads():
    """Streams of threads, and what is captured while others work."""
    for time in ('virtual', 'threads'):
        for name in ('threads', 'captures'):
            runs = same(app(name, 10), modes=('pool',), SIM_TIME=time, **CHECKED)
            clean(runs['pool'], f'{name} {time}')


def waits():
    """Asking the driver waits for nothing, and nobody is blamed who waits in ways of his own."""
    cases = [line.split() for line in alone(app('deadlock', '--list')).out.splitlines()]
    cases = [case for case, *remarks in cases if not remarks]
    note(len(cases) > 20, f'{len(cases)} cases')
    for case in cases:
        result = shimmed(app('deadlock', case), **CHECKED)
        note(result.out == f'{case} ok\n', f'{case}: {result.out}')
        note(result.report is not None, f'{case}: no report')
        found = shimrun.findings(result.report)
        note(not found, f'{case}: {found}')


def main():
    matrix.read_options(__doc__)
    for suite in (random_programs, torture, contexts, captures_and_threads, waits):
        suite()
    return matrix.told()


if __name__ == '__main__':
    sys.exit(main())
