#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Unseen -- what an allocation that the driver never sees orders is in order all the same

    unseen.py --driver LIBCUDA --shim SHIM --apps FOLDER --gpu FOLDER

The program is apps/defaults.c; the simulated driver's oracle ends it where two owners meet.
"""
import sys

import matrix
from matrix import app, note, same


def orders(scene):
    for time in ('virtual', 'threads'):
        run = same(app('defaults', scene), modes=('pool',), SIM_TIME=time)['pool']
        note(run.out == f'defaults {scene} mismatches 0\n', f'{scene} {time}: {run.out}')
        memory = run.report['memory'] if run.report else []
        note([row['pooled'] - row['made'] for row in memory if row['kind'] == 'async'] == [0],
             f'{scene} {time}: {memory}')


def main():
    matrix.read_options(__doc__)
    for scene in ('waits', 'destroyed', 'gone'):
        orders(scene)
    return matrix.told()


if __name__ == '__main__':
    sys.exit(main())
