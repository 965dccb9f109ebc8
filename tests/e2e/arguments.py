#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Arguments -- what a kernel is given is told as what it is, and in correct programs nothing is

    arguments.py --driver LIBCUDA --old LIBCUDA --shim SHIM --examples FOLDER --conformance FILE
        --apps FOLDER

The programs with a freed block in an argument are those of tests/examples/bugs, whose report
check_bugs.py looks at. Here is what follows from it, and what must not.
"""
import argparse
import json
import os
import sys
import tempfile
import unittest

import shimrun

OPTIONS = None
CHECK = {'STREAMPOOL_CHECK': 'arguments'}
KIND = 'argument_after_free'


def run(command, mode='pool', driver=None, **settings):
    return shimrun.run(command, OPTIONS.shim, mode, driver or OPTIONS.driver, {**CHECK, **settings})


def bug(name):
    return [os.path.join(OPTIONS.examples, 'bug-' + name)]


def app(name, *arguments):
    return [os.path.join(OPTIONS.apps, name), *map(str, arguments)]


class Arguments(unittest.TestCase):
    def questions(self, command, **settings):
        """How often the driver was asked to describe a parameter, and to launch."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'calls')
            self.assertEqual(run(command, SIM_CALLS=path, **settings).status, 0)
            with open(path, encoding='utf-8') as source:
                calls = dict(line.split() for line in source)
        return [int(calls.get(name, 0)) for name in ('cuFuncGetParamInfo', 'cuLaunchKernel')]

    def test_it_is_found_whoever_serves_the_memory(self):
        for mode, settings in (('pool', {}), ('pool', {'STREAMPOOL_BACKING': 'native'}),
                               ('observe', {}), ('pool', {'STREAMPOOL_QUARANTINE': '1M'})):
            result = run(bug('argument_after_free'), mode, **settings)
            self.assertEqual((result.status, shimrun.findings(result.report)), (0, {KIND: 1}),
                             f'{mode} {settings} {result.err}')

    def test_it_is_not_looked_for_unless_asked(self):
        for check in ('off', 'uses'):
            result = run(bug('argument_after_free'), STREAMPOOL_CHECK=check)
            self.assertEqual(shimrun.findings(result.report), {})
            asked, launched = self.questions(bug('argument_after_free'), STREAMPOOL_CHECK=check)
            self.assertEqual((asked, launched), (0, 2))

    def test_each_kernel_is_asked_about_once(self):
        asked, launched = self.questions(app('random', 1, 600))
        self.assertGreater(launched, 200)
        self.assertGreater(asked, 0)
        self.assertLessEqual(asked, 8 * 6)

    def test_the_text_says_that_no_access_is_proven(self):
        result = run(bug('argument_after_free'), STREAMPOOL_REPORT='-')
        self.assertIn('Given to a kernel after it was freed: 1 time\n', result.err)
        self.assertIn('): argument 1 of kernel fill, not proven access ', result.err)
        self.assertIn('\n    freed before by cuMemFree ', result.err)
        self.assertIn('\n    16 KiB of device memory, allocated ', result.err)

    def test_for_tools_it_is_a_warning(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'report.sarif')
            run(bug('argument_after_free'), STREAMPOOL_REPORT=path)
            with open(path, encoding='utf-8') as source:
                (only,) = json.load(source)['runs'][0]['results']
        self.assertEqual((only['ruleId'], only['level']), ('argument-after-free', 'warning'))
        self.assertIn(', argument 1 of kernel fill, not proven access, in 16 KiB of device memory',
                      only['message']['text'])
        self.assertEqual([each['message']['text'] for each in only['relatedLocations']],
                         ['allocated here', 'freed before here'])

    def test_it_counts_as_any_finding_does(self):
        for name, status in (('argument_after_free', 7), ('argument_correct', 0)):
            result = run(bug(name), STREAMPOOL_EXITCODE='7')
            self.assertEqual(result.status, status, result.err)
        result = run(bug('argument_after_free'), STREAMPOOL_ABORT_ON='argument-after-free')
        self.assertEqual(result.died, 'killed by SIGABRT')
        self.assertIn(', argument 1 of kernel fill, not proven access', result.err)
        result = run(bug('argument_after_free'), STREAMPOOL_ABORT_ON='use-after-free')
        self.assertEqual(result.status, 0, result.err)

    def test_it_is_suppressed_by_its_kind_and_by_no_other(self):
        for kind, status in (('argument-after-free', 0), ('use-after-free', 7)):
            with tempfile.NamedTemporaryFile('w', suffix='.rules') as rules:
                rules.write(f'{kind}:*\n')
                rules.flush()
                result = run(bug('argument_after_free'), STREAMPOOL_EXITCODE='7',
                             STREAMPOOL_SUPPRESS=rules.name)
            self.assertEqual(result.status, status, f'{kind}: {result.err}')

    def test_correct_programs_have_none(self):
        programs = (
            [OPTIONS.conformance], bug('argument_correct'), bug('correct'), app('captures', 10),
            app('threads', 10), app('pools', 100, 1), app('schedules', '--seed', 1, '--count', 300),
        )  # fmt: skip
        for command in programs:
            for time in ('virtual', 'threads'):
                result = run(command, SIM_TIME=time, SIM_DEVICES='2')
                self.assertEqual(result.status, 0, f'{command} {time}: {result.err}')
                # Of the conformance program each case is a process.
                least = 20 if command == [OPTIONS.conformance] else 1
                self.assertGreaterEqual(len(result.reports), least, command)
                for report in result.reports:
                    self.assertNotIn(KIND, shimrun.findings(report), f'{command} {time}')

    def test_a_driver_that_cannot_describe_is_named_once(self):
        result = run(bug('argument_after_free'), driver=OPTIONS.old)
        self.assertEqual((result.status, shimrun.findings(result.report)), (0, {}), result.err)
        said = [line for line in result.err.splitlines() if line.startswith('streampool: ')]
        self.assertEqual(len(said), 1, result.err)
        self.assertIn('STREAMPOOL_CHECK=arguments', said[0])


def main():
    global OPTIONS
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--driver', required=True)
    parser.add_argument('--old', required=True, help='libcuda.so.1 before CUDA 12.4')
    parser.add_argument('--shim', required=True)
    parser.add_argument('--examples', required=True, help='folder of the programs with bugs')
    parser.add_argument('--conformance', required=True)
    parser.add_argument('--apps', required=True, help='folder of the end-to-end programs')
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == '__main__':
    main()
