#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run the conformance program twice and compare what it says.

    check.py --driver LIBCUDA --shim SHIM --expected FILE CONFORMANCE
    check.py --driver LIBCUDA --shim SHIM --mode pool CONFORMANCE

With --expected the bare driver is compared with a file; with --mode the shim is
compared with the bare driver. Without --driver the real one is used. Cases whose
flag says that the shim differs on purpose are left out of the second comparison,
and must really differ: a difference that has gone is no difference.
"""
import argparse
import os
import subprocess
import sys


def lines(text):
    """Case name -> what was said, without blank lines and comments."""
    result = {}
    for line in text.splitlines():
        line = line.strip()
        if line and not line.startswith('#'):
            name, _, said = line.partition(' ')
            result[name] = said
    return result


def run(program, driver, shim, settings, arguments, limit):
    env = {k: v for k, v in os.environ.items() if not k.startswith(('STREAMPOOL_', 'SIM_', 'LD_'))}
    env.update(settings)
    if driver:
        env['LD_LIBRARY_PATH'] = os.path.dirname(os.path.abspath(driver))
    elif 'LD_LIBRARY_PATH' in os.environ:
        env['LD_LIBRARY_PATH'] = os.environ['LD_LIBRARY_PATH']
    if shim:
        env['LD_PRELOAD'] = os.path.abspath(shim)
    done = subprocess.run([program] + arguments, env=env, stdout=subprocess.PIPE, timeout=limit)
    return done.stdout.decode(), done.returncode


def flags(program):
    listed = subprocess.run([program, '--list'], stdout=subprocess.PIPE, check=True).stdout.decode()
    return {fields[0]: fields[1] for fields in (line.split('\t') for line in listed.splitlines())}


def compare(wanted, got, wanted_name, got_name, verbs, check_differs):
    wrong = 0
    for name in sorted(set(wanted) | set(got)):
        a, b = wanted.get(name, '(no such case)'), got.get(name, '(no such case)')
        if a.startswith('skipped') or b.startswith('skipped'):
            continue
        differs = check_differs and verbs.get(name) == 'differs'
        if (a != b) == differs:
            continue
        wrong += 1
        if differs:
            print(f'{name}: listed as different, but both say: {a}')
        else:
            print(f'{name}\n  {wanted_name}: {a}\n  {got_name}: {b}')
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('program')
    parser.add_argument('only', nargs='*', help='groups or cases')
    parser.add_argument('--driver', help='the libcuda.so.1 to run on')
    parser.add_argument('--shim', help='libstreampool_shim.so')
    parser.add_argument('--expected', help='file with what the bare driver is to say')
    parser.add_argument('--mode', help='STREAMPOOL_MODE of the run that is compared with the bare one')
    parser.add_argument('--jobs', default='', help='processes at once (default: one a processor)')
    parser.add_argument('--set', action='append', default=[], help='NAME=VALUE for that run')
    parser.add_argument('--limit', type=float, default=110, help='seconds for one run')
    options = parser.parse_args()

    settings = dict(item.split('=', 1) for item in options.set)
    alone = {k: v for k, v in settings.items() if k.startswith('SIM_')}
    verbs = flags(options.program)
    arguments = (['--jobs', options.jobs] if options.jobs else []) + options.only
    bare, status = run(options.program, options.driver, None, alone, arguments, options.limit)
    if status == 77:
        print('no driver')
        return 77
    bare = lines(bare)
    if options.expected:
        with open(options.expected) as file:
            wanted = lines(file.read())
        if options.only:
            wanted = {k: v for k, v in wanted.items()
                      if any(k == o or k.startswith(o + '.') for o in options.only)}
        wrong = compare(wanted, bare, 'expected', 'bare', verbs, False)
    else:
        settings.update(STREAMPOOL_MODE=options.mode, STREAMPOOL_REPORT='none')
        shimmed, _ = run(options.program, options.driver, options.shim, settings, arguments,
                         options.limit)
        wrong = compare(bare, lines(shimmed), 'bare', 'shim', verbs, options.mode == 'pool')
    print(f'{len(bare) - min(wrong, len(bare))} cases agree, {wrong} differ')
    return 1 if wrong or not bare else 0


if __name__ == '__main__':
    sys.exit(main())
