# SPDX-License-Identifier: Apache-2.0
"""Check bugs rows -- the programs of tests/examples/bugs on a GPU, under the shim and compute-sanitizer

What a program must be told is in its head (tests/examples/check_bugs.py). Beside it stands
what NVIDIA's memcheck and initcheck say of the same program: how many errors, and how many
times as long it takes. An error of theirs in a program with a bug counts as that bug found,
whatever it says of it; one in a program without is false.
"""

import os
import re
import shutil
import statistics
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


TOOLS = {'memcheck': ['--leak-check', 'full'], 'initcheck': []}
ANSWER = 15  # seconds; under them a kernel may wait for one that they do not let run beside it


class Tally:
    """How often a tool was right, over all programs, and how long that took."""

    def __init__(self):
        self.found = self.missed = self.false = 0
        self.factors = []

    def add(self, buggy, errors, factor):
        self.found += buggy and errors > 0
        self.missed += buggy and not errors
        self.false += not buggy and errors > 0
        self.factors.append(factor)

    def __str__(self):
        return (f'{self.found} found, {self.missed} missed, {self.false} false, '
                f'{statistics.median(self.factors):.2f} times as long as bare')


def sanitize(check, program, tool):
    """How many errors it counts, None if it gave no answer, and how long it took; None if it is
    not there."""
    path = shutil.which('compute-sanitizer') or '/usr/local/cuda/bin/compute-sanitizer'
    if not os.path.exists(path):
        return None
    run = check.run([path, '--tool', tool, *TOOLS[tool], *program.command], limit=ANSWER)
    total = re.search(r'ERROR SUMMARY: (\d+) error', run.out)
    return int(total[1]) if total else None, run.seconds


def is_built_here(program):
    """Once more with other settings it is the same program."""
    return program.path.endswith('.c') and not program.also


def one(name, check, program, tallies):
    buggy = bool(list(program.expected()) or program.told('Prints'))
    bare = check.run(program.command)
    timed = check.run(program.command, program.mode(), **program.settings())
    wrong = list(check_bugs.problems(program, Options(check.shim, check.folder)))
    if bare.status and program.ends_well_bare():
        wrong.append(f'bare ended with {bare.status}')
    remarks = [', '.join(f'{each["kind"]} at line {each.get("site")}' for each in program.expected())
               or ', '.join(program.told('Prints')) or 'nothing, and nothing was found']
    tallies['shim'].add(buggy, int(buggy != bool(wrong)), timed.seconds / bare.seconds)
    for tool in TOOLS:
        said = sanitize(check, program, tool) if is_built_here(program) else None
        if said and said[0] is None:
            remarks.append(f'{tool}: no answer in {ANSWER} s')
        elif said:
            tallies[tool].add(buggy, said[0], said[1] / bare.seconds)
            remarks.append(f'{tool}: {said[0]} errors')
    check.row(f'{name} {program.name}', 'STREAMPOOL_STACK=both', wrong, '; '.join(remarks))


def rows(name, check):
    tallies = {tool: Tally() for tool in ('shim', *TOOLS)}
    for program in check_bugs.all_programs(check.folder):
        if is_built_here(program):
            ground.program(os.path.basename(program.command[0]), [program.path], check.include,
                           ('-O0', '-g'))
        one(name, check, program, tallies)
    for tool, tally in tallies.items():
        if tally.factors:
            check.row(f'{name} in all', tool, [], str(tally))


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
