#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Matrix -- every program alone and under the shim, on the simulated driver

    matrix.py --driver LIBCUDA --shim SHIM --apps FOLDER --examples FOLDER --gpu FOLDER --table FILE
              SUITE...

Each suite is a function below. It collects what is wrong and prints it; an empty
list is a pass. The programs say what they did and what a report must contain, so
nothing is written down twice.
"""
import argparse
import os
import re
import socket
import sys
import tempfile

import shimrun

MODES = ('pool', 'observe', 'off')
OPTIONS = None
WRONG = []


def note(condition, message):
    if not condition:
        WRONG.append(message)


def app(name, *arguments):
    folders = {'first_light': OPTIONS.examples, 'torture': OPTIONS.gpu, 'deadlock': OPTIONS.gpu,
               'peers': OPTIONS.gpu, 'beside': OPTIONS.gpu}
    return [os.path.join(folders.get(name, OPTIONS.apps), name)] + [str(a) for a in arguments]


def alone(command, **settings):
    result = shimrun.run(command, driver=OPTIONS.driver, settings=settings, limit=60)
    note(not result.died and result.status in (0, 77),
         f'{label(command)} alone: {result.died or result.status}\n{result.err[-2000:]}')
    return result


def shimmed(command, mode='pool', status=0, **settings):
    result = shimrun.run(command, OPTIONS.shim, mode, OPTIONS.driver, settings, limit=60)
    note(result.status == status,
         f'{label(command)} {mode} {settings}: {result.died or result.status}\n'
         f'{result.out[-500:]}{result.err[-2000:]}')
    return result


def label(command):
    return ' '.join([os.path.basename(command[0])] + command[1:])


def same(command, modes=MODES, **settings):
    """The program says the same in every mode as it does alone; the runs, by mode."""
    sim = {k: v for k, v in settings.items() if k.startswith('SIM_')}
    wanted, runs = alone(command, **sim), {}
    for mode in modes:
        runs[mode] = shimmed(command, mode, status=wanted.status, **settings)
        note(runs[mode].out == wanted.out,
             f'{label(command)} {mode} {settings}\n  alone: {wanted.out}  shim:  {runs[mode].out}\n'
             f'{runs[mode].err[-500:]}')
        if mode != 'off':
            note(runs[mode].report is not None, f'{label(command)} {mode}: no report')
        else:
            note(runs[mode].report is None, f'{label(command)} off: a report nonetheless')
    return runs


# suites


def faults():
    """Planted leaks and wrong frees of every kind are found, and nothing else is."""
    for what in (['clean'], ['leak'], ['double'], ['foreign'], ['interior'], ['wrong'],
                 ['context'], ['handles'],
                 ['clean', 'leak', 'double', 'foreign', 'interior', 'wrong', 'context']):
        runs = same(app('plant', *what))
        for mode in ('pool', 'observe'):
            wrong = shimrun.differences(runs[mode].report, runs[mode].out)
            note(not wrong, f'plant {what} {mode}: ' + '; '.join(wrong))
            for pool in runs[mode].report['pools']:
                live = (pool['survey'] or {'live': {'count': 0, 'bytes': 0}})['live']
                note((live['count'], live['bytes']) == (pool['live'], pool['requested']),
                     f'plant {what} {mode}: {live} in {pool}')
        served = shimrun.pooled(runs['pool'].report)
        note('clean' not in what or served >= 40, f'plant {what}: {served} served by the pool')
        note(shimrun.pooled(runs['observe'].report) == 0, f'plant {what}: pooled while observing')


def first_light():
    """The demo's two leaks, its double free and its foreign free."""
    runs = same(app('first_light', 60))
    for mode in ('pool', 'observe'):
        report = runs[mode].report
        note(report['mode'] == mode, f'first_light {mode}: {report["mode"]}')
        note(shimrun.findings(report) == {'double_free': 1, 'foreign': 1},
             f'first_light {mode}: {shimrun.findings(report)}')
        note({k: v[0] for k, v in shimrun.leaks(report).items()} == {'device': 2},
             f'first_light {mode}: leaks {shimrun.leaks(report)}')
        note(shimrun.made(report).get('async') == 120, f'first_light {mode}: made')
        for place in report['findings']:
            note('first_light' in str((place['site'] or {}).get('path')),
                 f'first_light {mode}: site {place["site"]}')


def exchange():
    """Blocks go to another process and back, whatever they are a part of."""
    wanted = alone(app('exchange', 1)).out.splitlines()
    note(wanted == ['large exported 3 refused 0 disagreeing 0 differing 0',
                    'small exported 4 refused 0 disagreeing 0 differing 0'], f'alone: {wanted}')
    for backing in ('native', 'vmm'):
        run = shimmed(app('exchange', 1), STREAMPOOL_BACKING=backing)
        note(run.out.splitlines() == wanted, f'{backing}: {run.out}')
        note(shimrun.pooled(run.report) == 8, f'{backing}: {shimrun.made(run.report)}')
        note(not shimrun.findings(run.report), f'{backing}: {shimrun.findings(run.report)}')
    run = shimmed(app('exchange', 1), 'observe')
    note(run.out.splitlines() == wanted, f'observe: {run.out}')


def borrowed():
    """Blocks stay what they are while others have them, and no longer than they can be had."""
    shared = ['own 201', 'opened wrong 0 0', 'written wrong 0 0', 'freed wrong 0 0',
              'closed wrong 0 0', 'stale 400', 'own wrong 0']
    for what, wanted in (('share', shared), ('stranger', ['refused 7']),
                         ('orphan', ['orphaned wrong 0, another 400']), ('busy', ['busy wrong 0']),
                         ('capture', ['capture wrong 0'])):
        for growth, how in (('balanced', 'plain'), ('tight', 'plain'), ('balanced', 'filtered'),
                            ('balanced', 'watched')):
            run = shimmed(app('borrow', what, how), STREAMPOOL_GROWTH=growth)
            note(run.out.splitlines() == wanted, f'{what} {how} {growth}: {run.out}')
            note(not shimrun.findings(run.report), f'{what}: {shimrun.findings(run.report)}')
    for name, run in (('alone', alone(app('borrow', 'busy'))),
                      ('native', shimmed(app('borrow', 'busy'), STREAMPOOL_BACKING='native'))):
        note(run.out.splitlines() == ['busy wrong 0'], f'busy {name}: {run.out}')


def exit_code():
    """STREAMPOOL_EXITCODE speaks only where there is something to say."""
    shimmed(app('plant', 'clean'), STREAMPOOL_EXITCODE='7')
    shimmed(app('plant', 'double'), status=7, STREAMPOOL_EXITCODE='7')
    shimmed(app('plant', 'leak'), status=7, STREAMPOOL_EXITCODE='7')
    shimmed(app('plant', 'leak'), mode='observe', status=7, STREAMPOOL_EXITCODE='7')
    shimmed(app('plant', 'leak'), mode='off', STREAMPOOL_EXITCODE='7')
    shimmed(app('plant', 'leak'), STREAMPOOL_EXITCODE='0')


def report_paths():
    """%p %h %r %%, text and JSON, stderr and none."""
    with tempfile.TemporaryDirectory() as folder:
        pattern = os.path.join(folder, 'a-%h-%r-%%-%p.json')
        shimmed(app('plant', 'leak'), STREAMPOOL_REPORT=pattern, OMPI_COMM_WORLD_RANK='3')
        names = os.listdir(folder)
        wanted = rf'a-{re.escape(socket.gethostname())}-3-%-[0-9]+\.json'
        note(len(names) == 1 and re.fullmatch(wanted, names[0]), f'report is called {names}')
        report = shimrun.read_report(os.path.join(folder, names[0])) if names else None
        note(report and report['leaks']['count'] == 14, f'14 leaks: {report and report["leaks"]}')

        path = os.path.join(folder, 'b.txt')
        shimmed(app('plant', 'double'), STREAMPOOL_REPORT=path)
        text = open(path).read() if os.path.exists(path) else ''
        note(text and not text.startswith('{'), f'text report: {text[:200]!r}')
        shimmed(app('plant', 'double'), STREAMPOOL_REPORT=path, STREAMPOOL_FORMAT='json')
        note(open(path).read().startswith('{'), 'STREAMPOOL_FORMAT=json')

        result = shimmed(app('plant', 'leak'), STREAMPOOL_REPORT='-')
        note('Never freed' in result.err, f'report on stderr: {result.err[:500]}')
        result = shimmed(app('plant', 'leak'), STREAMPOOL_REPORT='none')
        note(not result.err, f'no report, but on stderr: {result.err[:500]}')
        result = shimmed(app('plant', 'leak'),
                         STREAMPOOL_REPORT=os.path.join(folder, 'no', 'such', 'folder'))
        note('Never freed' in result.err, f'path that cannot be written: {result.err[:500]}')


def out_of_memory():
    """Memory that was freed is there for whoever asks next (O1, O2)."""
    for scenario in ('one_large_block', 'large_block_after_async', 'async_after_plain',
                     'freed_while_in_use', 'other_consumers', 'consumer_in_a_capture',
                     'more_than_there_is'):
        # Plain cuMemAlloc memory goes back through a barrier, which a capture forbids (C10).
        for backing in ('auto',) if scenario == 'consumer_in_a_capture' else ('auto', 'native'):
            runs = same(app('oom', scenario), SIM_MEMORY='1G', STREAMPOOL_BACKING=backing)
            report = runs['pool'].report
            note(shimrun.pooled(report) > 0, f'oom {scenario}: pool not used')
            refused = report['counters']['allocs_refused'] if report else 0
            note((refused > 0) == (scenario == 'more_than_there_is'),
                 f'oom {scenario}: {refused} allocations refused')


SCENARIOS = ('one_large_block', 'large_block_after_async', 'async_after_plain', 'freed_while_in_use',
             'other_consumers', 'more_than_there_is')


def limits():
    """A device with a limit is one of that size, and who is refused hears who has the memory."""
    for scenario in SCENARIOS:
        wanted = alone(app('oom', scenario), SIM_MEMORY='1G').out
        for mode in ('pool', 'observe'):
            for limit in ('1G', '25%', '2G,0:1G'):
                run = shimmed(app('oom', scenario), mode, SIM_MEMORY='4G', STREAMPOOL_LIMIT=limit)
                note(run.out == wanted, f'oom {scenario} {mode} within {limit}\n'
                     f'  wanted: {wanted}  got:    {run.out}')
                refused = run.report['counters']['allocs_refused'] if run.report else 0
                short = run.report and run.report['shortage']
                note(bool(refused) == bool(short), f'oom {scenario}: {refused} refused, {short}')
                note(bool(short) == ('out of memory' in run.err), f'oom {scenario}: {run.err}')
    wanted = alone(app('oom', 'more_than_there_is'), SIM_MEMORY='1G').out
    for settings in ({'mode': 'off', 'STREAMPOOL_LIMIT': '256M'}, {'STREAMPOOL_LIMIT': '0'},
                     {'STREAMPOOL_LIMIT': '0:none'}, {'STREAMPOOL_LIMIT': '1:256M'},
                     {'STREAMPOOL_SOFT_LIMIT': '1M'}):
        run = shimmed(app('oom', 'more_than_there_is'), SIM_MEMORY='1G', **settings)
        note(run.out == wanted, f'{settings}\n  wanted: {wanted}  got:    {run.out}')
        note(('STREAMPOOL_LIMIT=0:none is not one of [device:]size|%,...; using 0' in run.err) ==
             ('0:none' in settings.values()), f'{settings}: {run.err}')


def shortages():
    """What a person reads who was refused memory."""
    run = shimmed(app('hold'), SIM_MEMORY='4G', STREAMPOOL_LIMIT='256M')
    for words in ('out of memory: 200 MiB of device memory on device 0, refused by STREAMPOOL_LIMIT',
                  'held ', 'device 96 MiB in 3, async 8 MiB in 1, array 16 MiB in 1',
                  '96 MiB in 3 device by hold+0x', '16 MiB in 1 array by hold+0x',
                  '8 MiB in 1 of stream 0x', 'cuMemAlloc: 96 MiB used of ',
                  'counted of 256 MiB', 'GiB free of 4 GiB'):
        note(words in run.err, f'hold: no "{words}" in\n{run.err}')
    short = run.report['shortage']
    note(short['by_limit'] and short['bytes'] == 200 << 20 and short['limit'] == 256 << 20 and
         short['counted'] <= 256 << 20 and short['total_bytes'] == 4 << 30, f'hold: {short}')
    note([(row['kind'], row['bytes'], row['count']) for row in short['places']] ==
         [('device', 96 << 20, 3), ('array', 16 << 20, 1), ('async', 8 << 20, 1)], f'hold: {short}')
    note(short['pools'][0]['used'] == 96 << 20 and short['pools'][1]['used'] == 8 << 20,
         f'hold: {short}')
    silent = shimmed(app('hold'), SIM_MEMORY='4G', STREAMPOOL_LIMIT='256M', STREAMPOOL_LOG='0')
    note('out of memory' not in silent.err and silent.report['shortage'], f'hold: {silent.err}')
    text = shimmed(app('hold'), SIM_MEMORY='256M', STREAMPOOL_REPORT='-').err
    for words in ('Refused for lack of device memory: 1 allocation\nOne of them: 200 MiB of device '
                  'memory on device 0, refused by the driver, asked for by hold+0x',):
        note(words in text, f'hold: no "{words}" in\n{text}')


def retries():
    """A driver call that is short of memory once succeeds, at the cost of idle pool memory (O2)."""
    wanted = same(app('oom', 'small_consumers'), SIM_MEMORY='1G')['off'].out
    # The second number is which call fails: the first one after the pool has filled.
    for symbol, nth in (('cuLaunchKernel', 17), ('cuModuleLoadData', 2), ('cuMemPoolCreate', 1),
                        ('cuGraphInstantiateWithFlags', 1), ('cuGraphLaunch', 1),
                        ('cuCtxCreate_v2', 1)):
        failure = f'{symbol}:{nth}:2'
        result = shimrun.run(app('oom', 'small_consumers'), driver=OPTIONS.driver,
                             settings={'SIM_MEMORY': '1G', 'SIM_FAIL': failure})
        note(result.out != wanted, f'{failure} was not noticed alone: {result.out}')
        result = shimmed(app('oom', 'small_consumers'), SIM_MEMORY='1G', SIM_FAIL=failure)
        note(result.out == wanted, f'{failure}\n  wanted: {wanted}  got:    {result.out}')
        reliefs = result.report['counters']['reliefs'] if result.report else 0
        note(reliefs > 0, f'{failure}: {reliefs} reliefs')


def pressure():
    """A host that runs ahead of the device does not take all of its memory (O3)."""
    size = 32 << 20
    for arguments in ([400, size], [400, size, 'async']):
        runs = same(app('loop', *arguments), SIM_MEMORY='4G')
        report = runs['pool'].report
        peak = sum(pool['reserved_high'] for pool in report['pools']) if report else 0
        note(0 < peak <= 1 << 30, f'loop {arguments}: reserved up to {peak >> 20} MiB')
        hits = sum(pool['hits'] for pool in report['pools']) if report else 0
        note(hits >= 350, f'loop {arguments}: {hits} of 400 served from freed memory')
    for limit in ('96M', '2%'):
        report = shimmed(app('loop', 400, size), SIM_MEMORY='4G', STREAMPOOL_PENDING=limit).report
        peak = sum(pool['reserved_high'] for pool in report['pools']) if report else 0
        note(0 < peak <= 192 << 20, f'PENDING={limit}: reserved up to {peak >> 20} MiB')


def driver_calls(command, mode='pool', **settings):
    """Symbol -> how often the driver was called."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'calls')
        shimmed(command, mode, SIM_CALLS=path, **settings)
        lines = [line.split() for line in open(path)] if os.path.exists(path) else []
    return {symbol: int(count) for symbol, count in lines}


def page_locked():
    """Small page-locked blocks cost the driver nothing, and nobody gets one too early."""
    for settings in ({}, {'STREAMPOOL_BATCH': '1'}, {'STREAMPOOL_FREE': 'sync'},
                     {'STREAMPOOL_PINNED': 'off'}, {'SIM_TIME': 'threads'},
                     {'SIM_AGE': '12000'}):
        runs = same(app('pinned', 10000), **settings)
        note(runs['pool'].out == 'rounds 10000 wrong 0\n', f'{settings}: {runs["pool"].out}')
    pinned = ('cuMemHostAlloc', 'cuMemAllocHost_v2', 'cuMemFreeHost')
    calls = driver_calls(app('pinned', 10000))
    note(sum(calls.get(symbol, 0) for symbol in pinned) <= 6, f'pool: {calls}')
    note(calls.get('cuCtxRecordEvent', 0) <= 10000 // 16, f'pool: {calls}')
    calls = driver_calls(app('pinned', 10000), STREAMPOOL_PINNED='off')
    note(sum(calls.get(symbol, 0) for symbol in pinned) == 20078, f'off: {calls}')


def pools():
    """Memory pools that come and go under the threads that use them."""
    runs = [same(app('pools', 400, 1))['pool']]
    runs.append(same(app('pools', 400, 2), modes=('pool',), SIM_TIME='threads')['pool'])
    # The driver's own pools are larger, and would not have enough.
    for seed, time in ((3, 'virtual'), (4, 'threads')):
        runs.append(shimmed(app('pools', 400, seed), SIM_TIME=time, SIM_MEMORY='64M'))
    # Under a limit a pool that is destroyed is not to be taken for one that is full.
    for seed in range(11, 16):
        runs.append(shimmed(app('pools', 1000, seed), SIM_TIME='threads', STREAMPOOL_LIMIT='128M'))
    for run in runs:
        clean(run, 'pools')
        words = run.out.split()
        note(words[2:] == ['mismatches', '0'], run.out)
        served = {row['kind']: row['pooled'] for row in run.report['memory']}
        note(served['async'] >= int(words[1]) * 9 // 10, f'{served} of {words[1]} blocks were ours')
    run = same(app('pools', 400, 1), modes=('pool',), STREAMPOOL_BACKING='native')['pool']
    served = {row['kind']: row['pooled'] for row in run.report['memory']}
    note(not served.get('async'), 'native backing cannot outlive contexts')


def pool_options():
    """STREAMPOOL_POOL_* set what the program's pools begin with, in every mode but off."""
    usual = '1 1 1 0\n' * 2
    wanted = '0 1 0 33554432\n' * 2
    settings = dict(STREAMPOOL_POOL_FOLLOW='0', STREAMPOOL_POOL_OPPORTUNISTIC='1',
                    STREAMPOOL_POOL_INTERNAL='0', STREAMPOOL_POOL_THRESHOLD='32M')
    note(alone(app('pools', 'say')).out == usual, 'pools say alone')
    for mode in MODES:
        for backing in ('auto', 'native'):
            result = shimmed(app('pools', 'say'), mode, STREAMPOOL_BACKING=backing)
            note(result.out == usual, f'{mode} {backing}, without options: {result.out}')
            result = shimmed(app('pools', 'say'), mode, STREAMPOOL_BACKING=backing, **settings)
            note(result.out == (usual if mode == 'off' else wanted), f'{mode}: {result.out}')
    result = shimmed(app('pools', 'say'), STREAMPOOL_POOL_THRESHOLD='50%', SIM_MEMORY='1G')
    note(result.out == '1 1 1 536870912\n' * 2, f'a share: {result.out}')
    result = shimmed(app('pools', 'say'), STREAMPOOL_POOL_FOLLOW='perhaps')
    note(result.out == usual and 'STREAMPOOL_POOL_FOLLOW=perhaps' in result.err, result.err)


def free_sync():
    """STREAMPOOL_FREE=sync keeps the device-wide wait of cuMemFree."""
    for time in ('virtual', 'threads'):
        result = alone(app('barrier'), SIM_TIME=time)
        note(result.out == 'drained 10 of 10\n', f'barrier alone: {result.out}')
        result = shimmed(app('barrier'), STREAMPOOL_FREE='sync', SIM_TIME=time)
        note(result.out == 'drained 10 of 10\n', f'barrier with FREE=sync: {result.out}')
    result = shimmed(app('barrier'))
    note(result.out != 'drained 10 of 10\n', 'barrier: the pool waits without being told to')


def belts():
    """Reuse that needs an added dependency gets it; the oracle aborts the run otherwise."""
    for belt in ('birth', 'edge', 'legacy', 'threads', 'own', 'between'):
        for time in ('virtual', 'threads'):
            # With native backing the driver's own pool serves, which is known to fail `birth`.
            for backing in ('auto',) if belt == 'birth' else ('auto', 'native'):
                result = shimmed(app('belts', belt), SIM_TIME=time, STREAMPOOL_BACKING=backing)
                note(result.out.endswith('mismatches 0\n'), f'{belt} {time}: {result.out}')
                reused = re.search(r'reused (\d+) of 20', result.out)
                if belt in ('edge', 'own'):
                    note(reused and int(reused.group(1)) >= 18, f'{belt} {time}: {result.out}')
    result = shimmed(app('belts', 'internal', 2), SIM_MEMORY='40M')
    note(result.out == 'internal reused 2 of 2 mismatches 0\n', f'internal: {result.out}')


def random_programs():
    """Correct programs from seeds, on many streams; what they print is what they print alone."""
    for seed in range(1, 13):
        time = 'threads' if seed % 4 == 0 else 'virtual'
        backing = 'native' if seed % 3 == 0 else 'vmm'
        runs = same(app('random', seed, 600), modes=('pool',) if seed > 3 else MODES,
                    SIM_TIME=time, STREAMPOOL_BACKING=backing,
                    STREAMPOOL_CHECK='uses,arguments')
        clean(runs['pool'], f'random {seed}')


def schedules():
    """Very many short ones, in contexts that come and go (10^6: schedules --count 1000000)."""
    for seed, settings in enumerate((
            {}, {'STREAMPOOL_BATCH': '2'}, {'STREAMPOOL_BACKING': 'native'},
            {'STREAMPOOL_GROWTH': 'tight', 'STREAMPOOL_KEEP': '0'},
            {'STREAMPOOL_GROWTH': 'speed', 'STREAMPOOL_BATCH': '16'})):
        result = shimmed(app('schedules', '--seed', seed, '--count', 3000), SIM_DEVICES='2',
                         **settings)
        note(result.out.startswith('schedules 3000 ') and result.out.endswith(' mismatches 0\n'),
             f'schedules {seed} {settings}: {result.out}')
        clean(result, f'schedules {seed} {settings}')
        if 'STREAMPOOL_BACKING' not in settings:
            counters = result.report['counters'] if result.report else {}
            waits = counters.get('device_waits', 0), counters.get('host_waits', 0)
            note(min(waits) > 50, f'schedules {seed}: R1 ended {waits} times')


def small_device():
    """The same on a device that is nearly too small, with small batches and limits."""
    for seed in range(20, 26):
        runs = same(app('random', seed, 600), modes=('pool',), SIM_MEMORY='96M',
                    STREAMPOOL_KEEP='0', STREAMPOOL_BATCH='3')
        clean(runs['pool'], f'random {seed}')


def growths():
    """The same while segments are moved and given back around what is in use."""
    for growth in ('balanced', 'speed', 'tight'):
        for seed, decay in ((30, '10s'), (31, '1ms'), (32, '0')):
            settings = dict(SIM_TIME='threads' if seed == 31 else 'virtual', STREAMPOOL_KEEP='0',
                            STREAMPOOL_GROWTH=growth, STREAMPOOL_DECAY=decay)
            runs = same(app('random', seed, 600), modes=('pool',), **settings)
            clean(runs['pool'], f'random {seed} {growth} {decay}')
        result = shimmed(tortured('mixed', 7), SIM_TIME='threads', STREAMPOOL_GROWTH=growth,
                         STREAMPOOL_DECAY='1ms', STREAMPOOL_KEEP='0')
        note(' mismatches 0 ' in result.out, f'torture {growth}: {result.out}')
        clean(result, f'torture {growth}')


def clean(result, name):
    """Nothing leaked, nothing misused, and the pool did serve."""
    found, leaked = shimrun.findings(result.report), shimrun.leaks(result.report)
    note(not found, f'{name}: {found}')
    note(not leaked, f'{name}: leaked {leaked}')
    note(shimrun.pooled(result.report) > 0, f'{name}: nothing was served by the pool')


def tortured(mode, seed, *more):
    return app('torture', '--mode', mode, '--rounds', 500, '--threads', 4, '--seed', seed, *more)


def torture():
    """Watch kernels on many streams and threads never see a foreign write."""
    for mode, seeds in (('r1', 3), ('r2', 3), ('mixed', 8)):
        for seed in range(1, seeds + 1):
            wanted = alone(tortured(mode, seed)).out
            note(' mismatches 0 ' in wanted, f'torture {mode} {seed} alone: {wanted}')
            for time in ('virtual', 'threads'):
                result = shimmed(tortured(mode, seed), SIM_TIME=time,
                                 STREAMPOOL_BATCH='2' if seed == 3 else '64',
                                 STREAMPOOL_BACKING='native' if seed == 1 else 'vmm',
                                 STREAMPOOL_CHECK='uses,arguments' if seed == 2 else 'off')
                note(result.out == wanted, f'torture {mode} {seed} {time}: {result.out}')
                clean(result, f'torture {mode} {seed} {time}')
    planted = shimrun.run(tortured('mixed', 1, '--plant'), driver=OPTIONS.driver)
    note(planted.status == 1 and ' mismatches 0 ' not in planted.out,
         f'torture does not see what is planted: {planted.out}')


def beside():
    """A stream keeps its order while other threads give it work, and that it does not is seen."""
    kept = shimmed(app('beside', '--milliseconds', 5), SIM_TIME='threads')
    lines = kept.out.splitlines()
    note(len(lines) == 44 and all(line.endswith(' lost 0') for line in lines), f'beside: {kept.out}')
    clean(kept, 'beside')
    planted = alone(app('beside', '--milliseconds', 50, '--plant', 'wait', 'nothing'),
                    SIM_TIME='threads')
    note(not planted.out.endswith(' lost 0\n'), f'beside does not see what is planted: {planted.out}')


def deadlocks():
    """Nothing waits for a kernel that ends only when the program goes on."""
    cases = alone(app('deadlock', '--list')).out.splitlines()
    note(len(cases) > 20, f'{len(cases)} cases')
    for line in cases:
        case, *remark = line.split()
        if remark == ['hangs-bare']:
            continue
        for time in ('virtual', 'threads'):
            result = alone(app('deadlock', case), SIM_TIME=time)
            note(result.out == f'{case} ok\n', f'{case} {time} alone: {result.out}')
            for beginning in (0, 7, 14) if case.startswith('first') else (0,):
                result = shimmed(app('deadlock', case, beginning), SIM_TIME=time)
                note(result.out == f'{case} ok\n', f'{case} {beginning} {time}: {result.out}')


def threads():
    """Per-thread default streams, and captures next to threads that allocate."""
    for time in ('virtual', 'threads'):
        runs = same(app('threads', 25), SIM_TIME=time)
        clean(runs['pool'], f'threads {time}')
        note('mismatches 0' in runs['pool'].out, runs['pool'].out)
        runs = same(app('captures', 25), SIM_TIME=time)
        clean(runs['pool'], f'captures {time}')
        note('lost 0 failures 0 mismatches 0' in runs['pool'].out, runs['pool'].out)


def quarrels():
    """Destroying and capturing are not disturbed by what the pool asks the driver meanwhile."""
    for chosen in ('allocate allocate capture', 'stream stream stream allocate',
                   'stream context context allocate retain capture',
                   'reset bystander bystander bystander'):
        for memory in ('4G', '48M'):
            runs = same(app('quarrel', 1000, *chosen.split()), modes=('pool',), SIM_TIME='threads',
                        SIM_JITTER='60000', SIM_MEMORY=memory, STREAMPOOL_BATCH='2',
                        STREAMPOOL_KEEP='0')
            note(shimrun.pooled(runs['pool'].report) > 100, f'quarrel {chosen}: pool not used')
            note('reset' in chosen or not shimrun.findings(runs['pool'].report),
                 f'quarrel {chosen}: findings')


def devices():
    """Two devices: memory comes from the right one and goes back there."""
    for backing in ('auto', 'native'):
        runs = same(app('devices'), SIM_DEVICES='2', STREAMPOOL_BACKING=backing)
        note(runs['pool'].out == 'wrong 0\n', f'devices: {runs["pool"].out}')
        found = shimrun.findings(runs['pool'].report)
        note(found == {'double_free': 42}, f'devices: {found}')
        used = {row['device'] for row in runs['pool'].report['devices']}
        note(used == {0, 1}, f'devices: report knows {used}')


def peers():
    """Two devices that use each other's memory, with access that comes and goes."""
    for mode in ('alloc', 'pool', 'mixed'):
        for seed, settings in enumerate((
                {}, {'SIM_TIME': 'threads', 'STREAMPOOL_BATCH': '2'},
                {'STREAMPOOL_BACKING': 'native'},
                {'STREAMPOOL_GROWTH': 'tight', 'STREAMPOOL_KEEP': '0'})):
            command = app('peers', '--mode', mode, '--rounds', 600, '--seed', seed)
            runs = same(command, modes=('pool',), SIM_DEVICES='2', **settings)
            note(' mismatches 0 ' in runs['pool'].out, f'peers {mode} {settings}')
            clean(runs['pool'], f'peers {mode} {settings}')
    planted = shimrun.run(app('peers', '--rounds', 500, '--plant'), driver=OPTIONS.driver)
    note(planted.status == 1 and ' mismatches 0 ' not in planted.out,
         f'peers does not see what is planted: {planted.out}')
    one = shimrun.run(app('peers'), driver=OPTIONS.driver, settings={'SIM_DEVICES': '1'})
    note(one.status == 77, f'peers on one device: {one.status}')


# The newest function of the simulated driver is of this version.
NEWEST = 13000


def table_symbols():
    """Every symbol of the table, with its suffix, that the simulated driver exports."""
    text = re.sub(r'/\*.*?\*/', '', open(OPTIONS.table).read(), flags=re.S)
    rows = re.findall(r'\bSP_(?:HOOK|RETRY|CALL)\(\s*\w+,\s*(\w+),\s*(\d+),\s*(\w*)', text)
    return sorted({symbol + suffix for symbol, since, suffix in rows if int(since) <= NEWEST})


def injection(code):
    """Every driver function of the table fails once, early and late: no crash, no hang (P21)."""
    symbols = table_symbols()
    note(len(symbols) > 100, f'{len(symbols)} symbols in the table')
    usual, noticed = alone(app('sweep')).out, 0
    for symbol in symbols:
        noticed += alone(app('sweep'), SIM_FAIL=f'{symbol}:1:{code}').out != usual
        for nth in (1, 3):
            result = shimmed(app('sweep'), SIM_FAIL=f'{symbol}:{nth}:{code}',
                             STREAMPOOL_REPORT='none')
            note(result.status != 0 or result.out.startswith('done'),
                 f'{symbol} fails with {code}: {result.out}')
    note(noticed >= 40, f'only {noticed} of {len(symbols)} failures reached the program')


def injection_value():
    injection(1)


def injection_memory():
    injection(2)


def injection_illegal():
    injection(700)


SUITES = {function.__name__: function for function in (
    faults, first_light, exchange, borrowed, exit_code, report_paths, out_of_memory, retries,
    pressure, page_locked, pools, pool_options, free_sync, belts, random_programs, schedules,
    small_device, growths, torture, beside, deadlocks, threads, quarrels, devices,
    peers, limits, shortages, injection_value, injection_memory, injection_illegal)}


def read_options(title, *more, suites=()):
    """Those of a file whose suites run these programs."""
    global OPTIONS
    parser = argparse.ArgumentParser(description=title.splitlines()[0])
    for name in ('driver', 'shim', 'apps', 'gpu', *more):
        parser.add_argument('--' + name, required=True)
    if suites:
        parser.add_argument('suites', nargs='+', choices=suites)
    parser.set_defaults(examples=None)
    OPTIONS = parser.parse_args()


def told():
    """Print what is wrong; the status to end with."""
    for message in WRONG[:40]:
        print(message)
    print(f'{len(WRONG)} wrong')
    return 1 if WRONG else 0


def main():
    read_options(__doc__, 'examples', 'table', suites=SUITES)
    for suite in OPTIONS.suites:
        SUITES[suite]()
    return told()


if __name__ == '__main__':
    sys.exit(main())
