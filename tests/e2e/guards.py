#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Guards -- fills, redzones and quarantine disturb no correct program, and no order that it relies on

    guards.py --driver LIBCUDA --shim SHIM --apps FOLDER --gpu FOLDER

The programs are those of matrix.py, and so is what has to be the same.
"""
import sys

import matrix
import shimrun
from matrix import alone, app, clean, note, same, shimmed, tortured

GUARDED = {'STREAMPOOL_POISON': 'alloc,free', 'STREAMPOOL_QUARANTINE': '8M',
           'STREAMPOOL_REDZONE': '300'}


def orders():
    """Random programs, contexts that come and go, threads, captures: what they print is the same."""
    for seed in range(1, 4):
        runs = same(app('random', seed, 600), modes=('pool',), **GUARDED,
                    SIM_TIME='threads' if seed == 3 else 'virtual',
                    STREAMPOOL_BACKING='native' if seed == 2 else 'vmm')
        clean(runs['pool'], f'random {seed}')
    result = shimmed(app('schedules', '--seed', 1, '--count', 300), SIM_DEVICES='2', **GUARDED)
    note(result.out.endswith(' mismatches 0\n'), f'schedules: {result.out}')
    clean(result, 'schedules')
    wanted = alone(tortured('mixed', 5)).out
    for time in ('virtual', 'threads'):
        result = shimmed(tortured('mixed', 5), SIM_TIME=time, **GUARDED)
        note(result.out == wanted, f'torture {time}: {result.out}')
        clean(result, f'torture {time}')
        for name in ('threads', 'captures'):
            runs = same(app(name, 10), modes=('pool',), SIM_TIME=time, **GUARDED)
            clean(runs['pool'], f'{name} {time}')


def waits():
    """Where the driver's own calls wait for nothing, neither do fills and looks. What is kept of a
    stream that goes on is not known to be complete, so a full device has to do without it."""
    settings = {**GUARDED, 'STREAMPOOL_QUARANTINE': '1M'}
    cases = [line.split() for line in alone(app('deadlock', '--list')).out.splitlines()]
    cases = [case for case, *remarks in cases if not remarks]
    note(len(cases) > 20, f'{len(cases)} cases')
    for case in cases[::3]:
        result = shimmed(app('deadlock', case), **settings)
        note(result.out == f'{case} ok\n', f'{case}: {result.out}')


def planted():
    """What is found without guards is found with them."""
    runs = same(app('plant', 'clean', 'leak', 'double', 'foreign', 'interior', 'wrong', 'context'),
                **GUARDED)
    wrong = shimrun.differences(runs['pool'].report, runs['pool'].out)
    note(not wrong, 'plant: ' + '; '.join(wrong))


def short_of_memory():
    """A quarantine of half the device is given up before anybody is refused."""
    for scenario in matrix.SCENARIOS:
        settings = {**GUARDED, 'STREAMPOOL_QUARANTINE': '128M'}
        runs = same(app('oom', scenario), modes=('pool',), SIM_MEMORY='256M', **settings)
        refused = runs['pool'].report['counters']['allocs_refused'] if runs['pool'].report else 0
        note((refused > 0) == (scenario == 'more_than_there_is'),
             f'oom {scenario}: {refused} allocations refused')


def main():
    matrix.read_options(__doc__)
    for suite in (orders, waits, planted, short_of_memory):
        suite()
    return matrix.told()


if __name__ == '__main__':
    sys.exit(main())
