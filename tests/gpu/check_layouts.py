# SPDX-License-Identifier: Apache-2.0
"""Check layouts -- STREAMPOOL_LAYOUT changes where blocks lie, and nothing that a program can tell

The torture program and two models of PyTorch, bare and with each layout. The report has to say
that the layout was there, and that its lists served something.
"""

import check_torture
import shimrun
from check_rows import TORCH, speeds, trouble, unplanted

LAYOUTS = (
    'sliced:page=32M,slice=4M,cap=256M;exclusive:max=64M,period=2000;direct',
    'direct:reclaim=256M;persistent=size-match',
    'subslices=8G',
    'exclusive=8G',
)
ROUNDS = 2000


def served(report):
    """Bytes of the largest block of each list that served any."""
    return [row['largest_alloc'] for pool in (report or {}).get('pools', [])
            for row in pool['shelves'] if row['largest_alloc']]


def rows(name, check):
    program = check.gpu_program('torture')
    command = [program, '--mode', 'mixed', '--rounds', str(ROUNDS), '--seed', '1']
    bare = check.run(command)
    for layout in LAYOUTS:
        run = check.run(command, 'pool', STREAMPOOL_LAYOUT=layout)
        wrong = trouble(bare, 'bare') + trouble(run, 'shim') + unplanted(run.report)
        if ' mismatches 0 ' not in run.out or run.out != bare.out:
            wrong.append(f'bare: {bare.out.strip()} shim: {run.out.strip()}')
        if not served(run.report):
            wrong.append('no list of the layout served anything')
        check.row(f'{name} torture', layout, wrong, f'rounds {check_torture.done(run)} mismatches 0',
                  allocations=str(sum(shimrun.made(run.report).values())),
                  **speeds(ROUNDS / bare.seconds, ROUNDS / run.seconds))
    for layout in LAYOUTS:
        check.python(f'{name} torch', 'torch', layout,
                     dict(TORCH['no cache'], STREAMPOOL_LAYOUT=layout), ('mlp', 'lengths'))
