#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runner test -- what the conformance program says when its processes die

    runner_test.py --driver LIBCUDA --shim SHIM CONFORMANCE
"""
import argparse
import os
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--driver', required=True)
    parser.add_argument('--shim', required=True)
    parser.add_argument('program')
    options = parser.parse_args()
    wrong = []

    def run(arguments, status=0, **settings):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(('STREAMPOOL_', 'SIM_', 'LD_'))}
        env.update(settings, LD_LIBRARY_PATH=os.path.dirname(os.path.abspath(options.driver)))
        done = subprocess.run([options.program] + arguments, env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=60)
        if done.returncode != status:
            wrong.append(f'{arguments} {settings}: status {done.returncode}, not {status}')
        return done.stdout.decode().splitlines()

    def expect(condition, said):
        if not condition:
            wrong.append('\n'.join(said))

    # The fifth stream and what follows in its process; the case after it has a process of its own.
    cases = ['capture.mem_alloc', 'capture.captured_event']
    healthy = run(cases)
    said = run(cases, 1, SIM_FAIL='cuStreamCreate:6:2')
    expect(said == ['capture.mem_alloc global ended with status 99', healthy[1]], said)

    # The same before the first case: nobody gets as far as a line of his own.
    said = run(cases, 1, SIM_FAIL='cuStreamCreate:2:2')
    expect(said == [f'{name} ended with status 99' for name in cases], said)

    # A process that says all it has to say, and ends badly after it.
    cases = ['misuse.double_free', 'misuse.interior']
    said = run(cases, 1, LD_PRELOAD=os.path.abspath(options.shim), STREAMPOOL_EXITCODE='7',
               STREAMPOOL_REPORT='none')
    expect(said == [line + end for line, end in zip(run(cases), ('', ' ended with status 7'))],
           said)

    # However many processes there are, the lines are the same and in the same order.
    said = run(['--jobs', '1'])
    expect(len(said) > 100 and said == run(['--jobs', '8']), said)

    print('\n'.join(wrong) or 'as expected')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
