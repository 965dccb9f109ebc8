#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GPU check test -- what hangs is ended with its children, and a row says what was seen"""

import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import types
import unittest

FOLDER = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(FOLDER))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'e2e'))
sys.dont_write_bytecode = True

import check_beside  # noqa: E402
import check_rows  # noqa: E402
import check_torture  # noqa: E402
import ranks  # noqa: E402
import shimrun  # noqa: E402


def load_script():
    loader = importlib.machinery.SourceFileLoader('gpu_check',
                                                  os.path.join(ROOT, 'scripts', 'gpu-check'))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader('gpu_check', loader))
    loader.exec_module(module)
    return module


GPU_CHECK = load_script()


def options(**given):
    return types.SimpleNamespace(**{'only': None, 'quick': False, 'limit': 60, 'rounds': None,
                                    'processes': None, **given})


def report(made, findings=0):
    return {'memory': [{'kind': 'device', 'made': made, 'pooled': made}],
            'finding_counts': {'foreign': findings}, 'leaks': {'places': []}}


class StubCheck(GPU_CHECK.Check):
    """Its runs are given: what was printed, a status, the allocations in each report."""

    def __init__(self, *runs):
        self.folder = tempfile.mkdtemp()
        self.options, self.rows, self.runs = options(), [], list(runs)
        self.started = time.monotonic()

    def save(self, name, text, how='w'):
        pass

    def run(self, command, mode=None, limit=60, **settings):
        line, status, counts = self.runs.pop(0)
        reports = [report(count) for count in counts]
        return shimrun.Run(json.dumps(line), 'why', status, 1, None, reports)


class StepTest(unittest.TestCase):
    def wanted(self, *patterns):
        check = types.SimpleNamespace(options=options(only=patterns))
        return [name for name in ('peers-driver', 'peers-nccl', 'torch', 'torture')
                if GPU_CHECK.Check.wanted(check, name)]

    def test_a_family_and_a_pattern_name_steps(self):
        self.assertEqual(self.wanted('peers'), ['peers-driver', 'peers-nccl'])
        self.assertEqual(self.wanted('peers-nccl'), ['peers-nccl'])
        self.assertEqual(self.wanted('tor*'), ['torch', 'torture'])

    def test_rounds_are_shared_out(self):
        self.assertEqual(check_torture.share(options()), (20, 5000))
        self.assertEqual(check_torture.share(options(quick=True)), (4, 2500))
        self.assertEqual(check_torture.share(options(rounds=100000, processes=8)), (8, 12500))
        self.assertEqual(check_torture.share(options(rounds=10, processes=20)), (20, 1))


class RowTest(unittest.TestCase):
    def rows(self, *runs, **more):
        check = StubCheck(*runs)
        check.python('x', 'group', 'kind', {}, **more)
        return [(row['result'], row['remarks']) for row in check.rows]

    def test_reports_of_all_processes_count(self):
        line = {'name': 'w', 'checksum': '1'}
        self.assertEqual(self.rows((line, 0, []), (line, 0, [3, 4]), processes=2),
                         [('equal', '7 of 7 from the pool')])
        self.assertEqual(self.rows((line, 0, []), (line, 0, [3]), processes=2),
                         [('FAILED', '1 reports of 2 processes')])

    def test_what_cannot_be_done_bare_is_not_run_and_under_the_shim_has_failed(self):
        able, unable = {'name': 'w', 'checksum': '1'}, {'name': 'w', 'unable': 'no compiler'}
        self.assertEqual(self.rows((unable, 0, []), (unable, 0, [1])), [('not run', 'no compiler')])
        self.assertEqual(self.rows((able, 0, []), (unable, 0, [1]))[0][0], 'FAILED')
        self.assertEqual(self.rows((able, 77, [])), [('not run', 'why')])

    def test_findings_of_any_process_are_found(self):
        self.assertEqual(check_rows.unplanted(report(1), report(1, 2)),
                         ["findings: {'foreign': 2}"])


def is_gone(process):
    """An orphan that nobody waits for may stay as a zombie."""
    try:
        with open(f'/proc/{process}/stat') as file:
            return file.read().rpartition(')')[2].split()[0] == 'Z'
    except FileNotFoundError:
        return True


class ProcessTest(unittest.TestCase):
    def test_who_hangs_is_ended_with_its_children(self):
        run = shimrun.run(['sh', '-c', 'sleep 60 & echo $!; wait'], limit=0.5)
        self.assertEqual(run.died, 'ran past its time')
        time.sleep(0.2)
        self.assertTrue(is_gone(int(run.out)))

    def test_a_rank_that_fails_ends_the_other(self):
        start = time.monotonic()
        processes = [subprocess.Popen(['sleep', '60']), subprocess.Popen(['sh', '-c', 'exit 3'])]
        self.assertEqual(ranks.wait_for(processes), 3)
        self.assertLess(time.monotonic() - start, 30)

    def test_ranks_are_merged_by_workload(self):
        texts = ['NCCL says\n{"name": "a", "checksum": "1", "it_s": 5}\n',
                 '{"name": "a", "checksum": "2", "it_s": 6}\n']
        self.assertEqual(list(ranks.merge(texts)),
                         [{'name': 'a', 'checksum': '1 2', 'it_s': 5}])


class Beside(unittest.TestCase):
    KNOWN = 'wait graph laps 500 acts 90 lost 7\n'

    def test_what_is_known_of_the_driver_is_a_remark(self):
        lost, remark = check_beside.judge(check_beside.read(
            self.KNOWN + 'wait kernel laps 510 acts 91 lost 0\n'))
        self.assertEqual(lost, [])
        self.assertEqual(remark, '2 pairs; waits beside graph launches: 7 of 500 lost')

    def test_anything_else_that_is_lost_fails(self):
        lost, _ = check_beside.judge(check_beside.read(
            self.KNOWN + 'record graph laps 400 acts 5 lost 1\n'))
        self.assertEqual(lost, ['record beside graph: 1 of 400 lost'])


if __name__ == '__main__':
    unittest.main()
