#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Injected -- STREAMPOOL_FAULT, in a program that asks for memory of every kind

    injected.py --driver LIBCUDA --shim SHIM --app FAIL

`fail` prints which code each of its calls was given; that, the report and the log
have to agree on every run. What else is wrong is collected and printed.
"""
import argparse
import re
import sys

import shimrun

ROUNDS = 12
OPTIONS = None
WRONG = []

# As `fail` calls them; a rule knows the third by the name of the second.
CALLS = ('device', 'async', 'from_pool', 'pitch', 'managed', 'array', 'mipmap', 'vmm', 'mapped',
         'pinned', 'registered')


def note(condition, message):
    if not condition:
        WRONG.append(message)


def run(rule, mode='pool', rounds=ROUNDS, **settings):
    return shimrun.run([OPTIONS.app, str(rounds)], OPTIONS.shim, mode, OPTIONS.driver,
                       {'STREAMPOOL_FAULT': rule, **settings})


def failing(rule, mode='pool', rounds=ROUNDS):
    """A run under a rule, and its codes: call -> list."""
    done = run(rule, mode, rounds)
    got = {line.split()[0]: [int(code) for code in line.split()[1:]]
           for line in done.out.splitlines()}
    failed = sum(code != 0 for codes in got.values() for code in codes)
    label = f'{rule} {mode}'
    note(done.status == 0 and list(got) == list(CALLS), f'{label}: {done.status} {done.out}')
    note(re.findall(r'^streampool: fault (\d+): cu', done.err, re.M) ==
         [str(i + 1) for i in range(failed)], f'{label}: {failed} failed\n{done.err}')
    if mode == 'off':
        note(done.report is None, f'{label}: a report')
    else:
        note(sum(row['failed'] for row in done.report['faults']) == failed,
             f'{label}: {failed} failed, {done.report["faults"]}')
        note(not shimrun.leaks(done.report) and not shimrun.findings(done.report),
             f'{label}: {shimrun.leaks(done.report)} {shimrun.findings(done.report)}')
    return done, got


def expect(rule, wanted, mode='pool'):
    """The codes @wanted, call -> those it begins with; every other call succeeds."""
    done, got = failing(rule, mode)
    for call, codes in got.items():
        should = (wanted.get(call, []) + [0] * ROUNDS)[:ROUNDS]
        note(codes == should, f'{rule} {mode}: {call} {codes}, not {should}')
    return done


def kinds():
    """Each fails where a rule says so, in every mode that acts, and what failed was not made."""
    for mode in ('pool', 'observe'):
        usual = shimrun.made(expect('nth=1000', {}, mode).report)
        for kind in CALLS:
            if kind == 'from_pool':
                continue
            done = expect(f'kind={kind},every=4,times=1,error=999', {kind: [0, 0, 0, 999]}, mode)
            made = shimrun.made(done.report)
            wanted = {name: count - (name == kind) for name, count in usual.items()}
            note(made == wanted, f'{kind} {mode}: {made}, not {wanted}')
    expect('kind=async,nth=13', {'from_pool': [2]})
    expect('every=1', {}, 'off')
    expect('', {})
    expect('kind=shared+imported', {})


def rules():
    """Numbers, sizes, names of codes, several rules."""
    expect('kind=device,nth=3,error=illegal_address', {'device': [0, 0, 700]})
    expect('kind=pinned,after=9', {'pinned': [0] * 9 + [2, 2, 2]})
    expect('size=2M,nth=1,error=CUDA_ERROR_INVALID_VALUE', {'vmm': [1]})
    expect('size=-64K,nth=30', {'from_pool': [0] * 5 + [2]})
    done = expect('kind=async,nth=1;kind=async,nth=2,error=3;kind=device,nth=1,error=4',
                  {'async': [2, 3], 'device': [4]})
    note([(row['rule'], row['matched'], row['failed'], row['error'], row['seed'])
          for row in done.report['faults']] ==
         [('kind=async,nth=1', 24, 1, 2, None), ('kind=async,nth=2,error=3', 24, 1, 3, None),
          ('kind=device,nth=1,error=4', 12, 1, 4, None)], f'{done.report["faults"]}')


def places():
    """A place that was told in one run is a rule of the next."""
    told = failing('kind=managed,nth=1')[0].err
    place = re.search(r'fault 1: cuMemAllocManaged of 65536 bytes by (fail\+0x[0-9a-f]+) failed '
                      r'with CUDA_ERROR_OUT_OF_MEMORY \(call 1 of the rule\)$', told, re.M)
    note(place, f'no place in {told}')
    if place:
        expect(f'site={place.group(1)},nth=2', {'managed': [0, 2]})
    expect('site=f*l+0x,kind=array,nth=1', {'array': [2]})
    expect('site=libcuda', {})


def seeds():
    """The same seed fails the same calls, in any mode; another one others; one drawn is told."""
    rule = 'kind=device+async+pinned,p=0.3'
    wanted = failing(f'{rule},seed=42', rounds=60)[1]
    failed = sum(code != 0 for codes in wanted.values() for code in codes)
    note(40 < failed < 104, f'{failed} of 240 with p=0.3')
    for mode in ('pool', 'observe'):
        note(failing(f'{rule},seed=42', mode, 60)[1] == wanted, f'not the same again, {mode}')
    note(failing(f'{rule},seed=43', rounds=60)[1] != wanted, 'seed 43 is seed 42')
    done, got = failing(rule, rounds=60)
    told = re.search(r'streampool: STREAMPOOL_FAULT, rule 1: in this run it is (.*)', done.err)
    note(told and told.group(1) == f'{rule},seed={done.report["faults"][0]["seed"]}', done.err)
    note(told and failing(told.group(1), rounds=60)[1] == got, f'{told} is not the same again')
    drawn = {run(rule).report['faults'][0]['seed'] for _ in range(3)}
    note(len(drawn) == 3, f'three runs drew {drawn}')


def words():
    """What is wrong is told, and then nothing fails; the report in text form."""
    done = expect('nth=1;kind=devise', {})
    note('streampool: STREAMPOOL_FAULT is wrong, and nothing is made to fail: rule 2 (kind=devise): '
         'kind=devise will not do: kind= takes device, async, ' in done.err and done.report['faults'] == [], done.err)
    done = run('kind=array,nth=2;p=0.5,kind=mapped,seed=1', rounds=4, STREAMPOOL_REPORT='-',
               STREAMPOOL_LOG='0')
    note('\nMade to fail by STREAMPOOL_FAULT\n  kind=array,nth=2: 1 of 4 calls\n'
         '  p=0.5,kind=mapped,seed=1: ' in done.err and 'fault 1:' not in done.err, done.err)


def main():
    global OPTIONS
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--driver', required=True)
    parser.add_argument('--shim', required=True)
    parser.add_argument('--app', required=True, help='the program `fail`')
    OPTIONS = parser.parse_args()
    for suite in (kinds, rules, places, seeds, words):
        suite()
    for message in WRONG[:40]:
        print(message)
    print(f'{len(WRONG)} wrong')
    return 1 if WRONG else 0


if __name__ == '__main__':
    sys.exit(main())
