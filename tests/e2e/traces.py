#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Traces -- a recorded program alone and under the shim, on the simulated driver

    traces.py --driver LIBCUDA --shim SHIM --client CLIENT [--set NAME=VALUE]... TRACE...
    traces.py --driver LIBCUDA --client CLIENT --plant TRACE

The client makes the calls of a trace (apps/client.c), once on a device that never
gets on unless somebody waits, and once on one that keeps up. The oracle ends it if
a byte is served twice; an answer other than the recorded one ends it, too. Under
the shim it has to say what it says alone, the report may know of nothing but what
the program itself never freed, all memory is served by the pool, and no more is
taken from the device than the bounds below.

--plant: a client that uses memory in no order is caught.
"""
import argparse
import os
import sys

import shimrun

MIB = 1 << 20

# What the recorded programs had is more than the simulated driver's usual 4G.
MEMORY = '144G'

# Nanoseconds that the device works after each call: how far behind it is. With each the
# bound: a multiple of the live peak, and beside it the 64 MiB that may always be pending,
# and a chunk of 32. On a device that keeps up the multiple is what may be pending, 1/8,
# and what may be idle, 1/64. On one that never gets on, what a sole stream freed is its to
# have again (model/wait.c), which takes more where sizes differ: 1.16 of the live peak in
# gpt2.sync, 1.03 in resnet50.sync; most, 1.9, in generate.sync.
PACES = (
    (20000, 1 + 1 / 8 + 1 / 64, 96),
    (0, 2, 96),
)


def figures(text):
    """The lines that do not depend on who serves, and the peaks: `live` and `high`."""
    lines = text.splitlines()
    same = [line for line in lines if not line.startswith('high ')]
    return same, {line[:4]: int(line[5:]) for line in lines if line[:5] in ('live ', 'high ')}


def ended(run, name):
    if run.status == 0:
        return []
    return [f'{name}: {run.died or run.status}\n{run.out[-500:]}{run.err[-2000:]}']


def used(words):
    """What a run did that was clean: something, all of it in memory, and all of it judged."""
    wrong = []
    if words.get('visits', 0) < 1000 or words.get('spins', 1) or words.get('mismatches', 1):
        wrong.append(f'launches: {words}')
    # A visit touches its block and the counter.
    if words.get('judged') != 2 * words.get('visits', 0):
        wrong.append(f'the oracle judged something else: {words}')
    return wrong


def reported(run):
    if not run.report:
        return ['no report']
    wrong = shimrun.differences(run.report, run.out)
    served = {row['kind']: row['pooled'] for row in run.report['memory'] if row['pooled']}
    if served != shimrun.made(run.report):
        wrong.append(f'pooled {served} of {shimrun.made(run.report)}')
    return wrong


def compare(trace, pace, share, more, options):
    """What is wrong with @trace at this pace."""
    settings = dict(setting.split('=', 1) for setting in options.set)
    command = [options.client, '--advance', str(pace), trace]
    sim = {'SIM_MEMORY': MEMORY}
    alone = shimrun.run(command, driver=options.driver, settings=sim)
    pooled = shimrun.run(command, options.shim, 'pool', options.driver, {**sim, **settings})
    wrong = ended(alone, 'alone') + ended(pooled, 'pool')
    if wrong:
        return wrong
    same, peaks = figures(pooled.out)
    if same != figures(alone.out)[0]:
        wrong.append(f'\n  alone: {alone.out}  shim:  {pooled.out}')
    words = same[0].split()
    wrong += used(dict(zip(words[::2], map(int, words[1::2]))))
    wrong += reported(pooled)
    live, high = peaks['live'], peaks['high']
    if high > live * share + more * MIB:
        wrong.append(f'{high / MIB:.0f} MiB for {live / MIB:.0f} MiB, more than {share} of it '
                     f'and {more} MiB')
    print(f'{os.path.basename(trace)}, {pace} ns: {words[1]} launches, {live / MIB:.0f} MiB live, '
          f'{figures(alone.out)[1]["high"] / live:.3f} of it alone, {high / live:.3f} under the '
          f'shim, {alone.seconds:.2f} s and {pooled.seconds:.2f} s')
    return wrong


def planted(trace, options):
    run = shimrun.run([options.client, '--plant', trace], driver=options.driver,
                      settings={'SIM_MEMORY': MEMORY})
    if run.died and 'oracle' in run.err:
        return []
    return [f'a program in no order was not caught: {run.status} {run.out}{run.err[-2000:]}']


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--driver', required=True)
    parser.add_argument('--shim')
    parser.add_argument('--client', required=True)
    parser.add_argument('--set', action='append', default=[], help='an environment variable')
    parser.add_argument('--plant', action='store_true')
    parser.add_argument('traces', nargs='+')
    options = parser.parse_args()
    wrong = []
    for trace in options.traces:
        if options.plant:
            wrong += planted(trace, options)
            continue
        for pace, share, more in PACES:
            wrong += [f'{os.path.basename(trace)}, {pace} ns: {message}'
                      for message in compare(trace, pace, share, more, options)]
    for message in wrong:
        print(message)
    print(f'{len(wrong)} wrong')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
