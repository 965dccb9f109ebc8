#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Layouts -- STREAMPOOL_LAYOUT changes where blocks lie, and nothing that a program can tell

    layouts.py --driver LIBCUDA --shim SHIM --apps DIR --gpu DIR

What is wrong is collected and printed.
"""
import argparse
import os
import sys

import shimrun

MIB = 1 << 20
OPTIONS = None
WRONG = []

LAYOUTS = (
    'sliced:page=32M,slice=8M,cap=64M;exclusive:max=64M,period=50;direct',
    'exclusive:max=64M,period=20;persistent=size-match',
    'sliced:page=4M;direct:reclaim=64M',
    'direct:reclaim=1M',
    'subslices',
    'exclusive',
)


def note(condition, message):
    if not condition:
        WRONG.append(message)


def app(name, *arguments):
    return [os.path.join(OPTIONS.apps, name), *map(str, arguments)]


def run(command, layout, mode='pool', **settings):
    return shimrun.run(command, OPTIONS.shim, mode, OPTIONS.driver,
                       {'STREAMPOOL_LAYOUT': layout, **settings})


def shelves(report, kind=None):
    """All lists that were asked, of all pools."""
    rows = [row for pool in report['pools'] for row in pool['shelves']]
    return [row for row in rows if kind in (None, row['kind'])]


def check_sums(report, label):
    """What the lists of a pool have is what the pool has."""
    for pool in report['pools']:
        if pool['class'] == 'host':
            note(not pool['shelves'], f'{label}: pinned memory has a layout')
            continue
        rows = pool['shelves']
        note(rows, f'{label}: a {pool["class"]} pool without lists')
        for ours, theirs in (('requested', 'requested'), ('live', 'live'), ('reserved', 'reserved')):
            note(sum(row[ours] for row in rows) == pool[theirs],
                 f'{label}: {ours} of the lists is not {pool[theirs]}')
        for row in rows:
            note(row['pages_most'] is None or row['pages_peak'] <= row['pages_most'],
                 f'{label}: {row} passed its cap')
            note(row['pages'] + row['pages_unmapped'] >= row['pages_peak'], f'{label}: {row}')


def check(result, label):
    note(result.status == 0, f'{label}: {result.status} {result.died}\n{result.err}')
    if result.report is None:
        note(False, f'{label}: no report')
        return
    note(not shimrun.leaks(result.report) and not shimrun.findings(result.report),
         f'{label}: {shimrun.leaks(result.report)} {shimrun.findings(result.report)}')
    check_sums(result.report, label)


def programs():
    """A correct program prints the same under each layout as alone."""
    for seed, layout in enumerate(LAYOUTS, 60):
        command = app('random', seed, 600)
        alone = shimrun.run(command, None, None, OPTIONS.driver)
        for mode in ('pool', 'observe'):
            result = run(command, layout, mode)
            note(result.out == alone.out, f'{layout} {mode}: {result.out}, not {alone.out}')
            check(result, f'{layout} {mode}')
            if mode == 'pool' and result.report:
                note(shimrun.pooled(result.report) > 100, f'{layout}: hardly anything is pooled')
        native = run(command, layout, STREAMPOOL_BACKING='native')
        note(native.out == alone.out, f'{layout} native: {native.out}')
        check(native, f'{layout} native')


def threads():
    """Four of them at once, on a device that works at its own time."""
    for seed, layout in enumerate(LAYOUTS[:4], 3):
        command = [os.path.join(OPTIONS.gpu, 'torture'), '--mode', 'mixed', '--rounds', '300',
                   '--threads', '4', '--seed', str(seed)]
        result = run(command, layout, SIM_TIME='threads')
        note(' mismatches 0 ' in result.out, f'{layout}: {result.out}\n{result.err}')
        check(result, f'torture {layout}')


def small_device():
    """Pages make way for each other where memory is short, and what has no room is the driver's."""
    for layout in ('sliced:page=8M,cap=16M;exclusive:max=4M,period=50;direct',
                   'exclusive:max=4M,period=20;persistent=size-match', *LAYOUTS[2:4]):
        command = app('random', 80, 600)
        alone = shimrun.run(command, None, None, OPTIONS.driver, {'SIM_MEMORY': '96M'})
        result = run(command, layout, SIM_MEMORY='96M')
        note(result.out == alone.out, f'{layout} on 96M: {result.out}')
        check(result, f'{layout} on 96M')


def report():
    """It says which layout is in force, as that is printed, and what the lists were asked."""
    result = run(app('loop', 40, 3 * MIB, 'async'), ' sliced : page=4M, cap=8M; direct')
    note(result.report['layout'] == 'sliced:page=4M,cap=8M;direct', result.report['layout'])
    check(result, 'loop')
    rows = shelves(result.report)
    note([row['kind'] for row in rows][:1] == ['sliced'] and rows[0]['largest_alloc'] == 3 * MIB,
         f'{rows}')
    note(run(app('loop', 4, MIB), '').report['layout'] is None, 'a layout that nobody asked for')


def spills():
    """A list that is full lets the next one serve, and that is said in one line."""
    layout = 'sliced:page=32M,cap=64M;direct'
    result = run(app('hold'), layout, STREAMPOOL_REPORT='-')
    lines = [line for line in result.err.splitlines() if ' was full ' in line]
    note(lines == ['  device 0, sync 1 sliced was full 1 time, and the next ones served'],
         f'{lines}\n{result.err}')
    note(f'\nLayout {layout}\n' in result.err, result.err)
    rows = shelves(run(app('hold'), layout).report)
    note([(row['kind'], row['spills'], row['pages_peak']) for row in rows][:2] ==
         [('sliced', 1, 2), ('direct', 0, 2)], f'{rows}')


def too_big():
    """What no list takes the driver serves."""
    result = run(app('loop', 10, 3 * MIB), 'sliced:page=2M')
    note(result.out == 'rounds 10 mismatches 0\n', result.out)
    note(shimrun.made(result.report).get('device') == 10 and not shimrun.pooled(result.report) > 10,
         f'{result.report["memory"]}')
    note(result.report['pools'] == [] or not shelves(result.report), f'{result.report["pools"]}')


def persistent():
    """What is enforced to stay does: no page of it goes, and it serves the same sizes again."""
    result = run(app('loop', 40, 3 * MIB), 'exclusive:max=64M,period=5;persistent=enforced')
    note(result.out == 'rounds 40 mismatches 0\n', result.out)
    check(result, 'persistent')
    rows = shelves(result.report, 'persistent')
    note(sum(row['largest_alloc'] == 3 * MIB for row in rows) == 1, f'{rows}')
    note(all(row['pages'] == row['pages_peak'] and not row['pages_unmapped'] for row in rows),
         f'{rows}')
    others = [row for row in shelves(result.report) if row['kind'] != 'persistent']
    note(not any(row['pages_peak'] for row in others), f'{others}')


def mistakes():
    """One line that names what is wrong, and the default heap."""
    for text, words in (
            ('sliced:page=4M,slice=5M', 'pool 1 slice=5242880 is larger than a page'),
            ('direct;sliced:page=4M,cap=1M', 'pool 2 cap=1048576 is smaller than a page'),
            ('sliced:size=4M', 'pool 1 at character 8 size is no field'),
            ('bogus', 'pool 1 at character 1 bogus is not known here'),
            ('subslices=1M', 'subslices is a preset that cannot be made of this size')):
        result = run(app('loop', 10, MIB), text)
        lines = [line for line in result.err.splitlines() if 'STREAMPOOL_LAYOUT' in line]
        note(len(lines) == 1 and words in lines[0], f'{text}: {result.err}')
        note(result.status == 0 and result.report['layout'] is None
             and shimrun.pooled(result.report) >= 10, f'{text}: {result.status}')


def main():
    global OPTIONS
    parser = argparse.ArgumentParser()
    for name in ('driver', 'shim', 'apps', 'gpu'):
        parser.add_argument('--' + name, required=True)
    OPTIONS = parser.parse_args()
    for test in (report, too_big, persistent, mistakes, spills, programs, threads, small_device):
        test()
    for line in WRONG:
        print('layouts:', line)
    return 1 if WRONG else 0


if __name__ == '__main__':
    sys.exit(main())
