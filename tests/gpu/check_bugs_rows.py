# SPDX-License-Identifier: Apache-2.0
"""Check bugs rows -- the programs of tests/examples/bugs on a GPU, under the shim and compute-sanitizer

What a program must be told is in its head (tests/examples/check_bugs.py). Beside it stands
what NVIDIA's memcheck says of the same program: how many errors, and how long it takes.
"""

import os
import re
import shutil
import sys

import ground
import shimrun

EXAMPLES = os.path.join(ground.ROOT, 'tests', 'examples')
sys.path.insert(0, EXAMPLES)

import check_bugs  # noqa: E402


class Options:
    """As check_bugs.py reads them from its arguments."""

    def __init__(self, shim, built):
        self.shim, self.built, self.driver = shim, built, None


def memcheck(check, program):
    """What it says in few words, and how long it took; None if it is not there."""
    tool = shutil.which('compute-sanitizer') or '/usr/local/cuda/bin/compute-sanitizer'
    if not os.path.exists(tool):
        return None
    run = check.run([tool, '--tool', 'memcheck', '--leak-check', 'full', *program.command])
    total = re.search(r'ERROR SUMMARY: (\d+) error', run.out)
    return f'memcheck: {total[1] if total else "no"} errors, {run.seconds:.1f} s'


def rows(name, check):
    for program in check_bugs.all_programs(check.folder):
        if program.path.endswith('.c'):
            ground.program(os.path.basename(program.command[0]), [program.path], check.include,
                           ('-O0', '-g'))
        bare = check.run(program.command)
        wrong = list(check_bugs.problems(program, Options(check.shim, check.folder)))
        if bare.status and program.ends_well_bare():
            wrong.append(f'bare ended with {bare.status}')
        said = memcheck(check, program) if program.path.endswith('.c') else None
        remarks = ', '.join(f'{each["kind"]} at line {each.get("site")}'
                            for each in program.expected()) or 'nothing, and nothing was found'
        check.row(f'{name} {program.name}', 'STREAMPOOL_STACK=both', wrong,
                  '; '.join(filter(None, [remarks, f'bare {bare.seconds:.1f} s', said])))


LINES = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'stack_lines.py')
FRAMEWORKS = {'torch': {'PYTORCH_NO_CUDA_MEMORY_CACHING': '1'}, 'cupy': {}, 'numba': {},
              'cuda_python': {}}


def line_here(name):
    with open(LINES) as file:
        return next(i for i, line in enumerate(file, 1) if line.rstrip().endswith('here: ' + name))


def lines(name, check):
    """Frameworks let go of the interpreter's lock before they allocate: are their lines known?"""
    for framework, settings in FRAMEWORKS.items():
        report = os.path.join(check.folder, f'lines-{framework}.json')
        if os.path.exists(report):
            os.remove(report)
        run = check.run([sys.executable, LINES, framework], 'pool', STREAMPOOL_STACK='python',
                        STREAMPOOL_REPORT=report, STREAMPOOL_REPORT_ON='error', **settings)
        if run.status == 77:
            check.row(f'{name} {framework}', '', None, run.out.strip())
            continue
        wanted = [os.path.basename(LINES), line_here(framework)]
        written = shimrun.read_report(report)
        seen = [[os.path.basename(frame['file']), frame['line']]
                for place in (written['leaks']['places'] if written else [])
                for frame in place['site']['python']]
        wrong = [] if wanted in seen else [f'ended with {run.status}; {wanted} is not in {seen}']
        check.row(f'{name} {framework}', 'STREAMPOOL_STACK=python', wrong, f'line {wanted[1]}')
