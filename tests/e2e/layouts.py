#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Layouts -- how pools are cut up changes where blocks lie, and nothing that a program can tell

By STREAMPOOL_LAYOUT, by a file that it names, and by a program that says so as it runs.

    layouts.py --driver LIBCUDA --shim SHIM --apps DIR --gpu DIR

What is wrong is collected and printed.
"""
import argparse
import os
import sys
import tempfile

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


def said(report):
    """What is in force, and who said so."""
    devices = [(row['device'], row['layout'], row['layout_set_by']) for row in report['device_layouts']]
    return report['layout'], report['layout_set_by'], report['layout_file'], devices


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
    note(said(result.report) == ('sliced:page=4M,cap=8M;direct', 'environment', None, []),
         f'{said(result.report)}')
    check(result, 'loop')
    rows = shelves(result.report)
    note([row['kind'] for row in rows][:1] == ['sliced'] and rows[0]['largest_alloc'] == 3 * MIB,
         f'{rows}')
    note(said(run(app('loop', 4, MIB), '').report) == (None, None, None, []),
         'a layout that nobody asked for')


def spills():
    """A list that is full lets the next one serve, and that is said in one line."""
    layout = 'sliced:page=32M,cap=64M;direct'
    result = run(app('hold'), layout, STREAMPOOL_REPORT='-')
    lines = [line for line in result.err.splitlines() if ' was full ' in line]
    note(lines == ['  device 0, sync 1 sliced was full 1 time, and the next ones served'],
         f'{lines}\n{result.err}')
    note(f'\nLayout {layout}, by STREAMPOOL_LAYOUT\n' in result.err, result.err)
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


def wrong(text, words, name):
    """One line, with the name and the words."""
    result = run(app('loop', 10, MIB), text)
    lines = [line for line in result.err.splitlines() if 'STREAMPOOL_LAYOUT' in line]
    note(len(lines) == 1 and words in lines[0] and name in lines[0], f'{text}: {result.err}')
    note(result.status == 0 and said(result.report) == (None, None, None, [])
         and shimrun.pooled(result.report) >= 10, f'{text}: {result.status}')


def mistakes():
    """One line that names what is wrong, and the default heap."""
    for text, words in (
            ('sliced:page=4M,slice=5M', 'pool 1: slice=5242880 is larger than a page'),
            ('direct;sliced:page=4M,cap=1M', 'pool 2: cap=1048576 is smaller than a page'),
            ('sliced:size=4M', "pool 1, at character 8: 'size' is no field"),
            ('bogus', "pool 1, at character 1: 'bogus' is not known here"),
            ('subslices=1M', 'subslices is a preset that cannot be made of this size')):
        wrong(text, words, 'STREAMPOOL_LAYOUT ')


def write(path, text):
    with open(path, 'wb') as file:
        file.write(text)


def file():
    """A file has the same text in lines; what is wrong in it is told with its name and the line."""
    with tempfile.TemporaryDirectory(prefix='layouts-') as folder:
        path = os.path.join(folder, 'layout')
        write(path, b'# what comes and goes\nsliced: page=4M,\n\tcap=8M # twice\r\n\ndirect\n')
        result = run(app('loop', 40, 3 * MIB), '@' + path)
        note(said(result.report) == ('sliced:page=4M,cap=8M;direct', 'file', path, []),
             f'{said(result.report)}')
        check(result, 'file')
        result = run(app('loop', 4, MIB), '@' + path, STREAMPOOL_REPORT='-')
        note(f'\nLayout sliced:page=4M,cap=8M;direct, by STREAMPOOL_LAYOUT, file {path}\n'
             in result.err, result.err)
        for text, words in (
                (b'direct\n#\nsliced:page=12Q\n', "pool 2, at line 3, character 13: page '12Q' is no size"),
                (b'# one\nsliced:page=4M,\nslice=5M\n', 'pool 1, at line 2: slice=5242880 is larger'),
                (b'# nothing\n', 'the list has no pool'),
                (b'direct\n\0\n', 'it is no text'),
                (b'#' * (MIB + 1), 'it is larger than 1 MiB')):
            write(path, text)
            wrong(f'@{path}', words, f'STREAMPOOL_LAYOUT=@{path} ')
        wrong('@' + folder, 'cannot be read', f'STREAMPOOL_LAYOUT=@{folder} ')
        wrong(f'@{path}.none', 'No such file', f'STREAMPOOL_LAYOUT=@{path}.none ')


def at_run_time():
    """A program cuts its pools up anew: what is in the way is told, and the last word is its own."""
    alone = shimrun.run(app('relay', 'phases'), None, None, OPTIONS.driver)
    note(alone.out == 'wrong 0 mismatches 0\n', alone.out)
    last = [(0, 'direct;persistent=size-match', 'program')]
    for layout, phases, mode, quarantine in (('', 'phases', 'pool', '0'), ('subslices', 'phases', 'pool', '0'),
                                             ('', 'phases', 'pool', '64M'), ('', 'wait', 'observe', '0')):
        label = f'relay from {layout or "the default heap"} {mode} {quarantine}'
        result = run(app('relay', phases), layout, mode, STREAMPOOL_QUARANTINE=quarantine)
        note(result.out == alone.out, f'{label}: {result.out}{result.err}')
        note(said(result.report) == (None, 'program', None, last), f'{label}: {said(result.report)}')
        note(not shimrun.leaks(result.report) and not shimrun.findings(result.report), label)
        rows = shelves(result.report)
        note([(row['kind'], row['largest_alloc']) for row in rows] == [('direct', MIB)], f'{rows}')
    result = run(app('relay', 'phases'), 'subslices', STREAMPOOL_REPORT='-')
    note('\nLayout pool, the default heap, by streampool_set_layout()\n'
         'Layout of device 0: direct;persistent=size-match, by streampool_set_layout()\n'
         in result.err, result.err)


def storm():
    """Threads allocate and free all the while; where they stand still it is installed."""
    for clock, backing in (('virtual', 'auto'), ('threads', 'auto'), ('threads', 'native')):
        result = run(app('relay', 'storm'), '', SIM_TIME=clock, STREAMPOOL_BACKING=backing)
        label = f'storm {clock} {backing}'
        note(result.out == 'wrong 0 mismatches 0\n', f'{label}: {result.out}{result.err}')
        note(result.status == 0 and not shimrun.leaks(result.report)
             and not shimrun.findings(result.report), f'{label}: {result.status} {result.died}')


def main():
    global OPTIONS
    parser = argparse.ArgumentParser()
    for name in ('driver', 'shim', 'apps', 'gpu'):
        parser.add_argument('--' + name, required=True)
    OPTIONS = parser.parse_args()
    for test in (report, too_big, persistent, mistakes, file, at_run_time, storm, spills):
        test()
    for test in (programs, threads, small_device):
        test()
    for line in WRONG:
        print('layouts:', line)
    return 1 if WRONG else 0


if __name__ == '__main__':
    sys.exit(main())
