#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Submissions test -- work by a function that is not noted is found

    submissions_test.py PROGRAM        the one made of submissions.c
"""

import subprocess
import sys
import unittest

import submissions

NAMES = {'cuLaunchKernel', 'cuMemcpyHtoDAsync_v2'}


class JudgeTest(unittest.TestCase):
    def judge(self, text):
        return submissions.judge(submissions.read(text), NAMES)

    def test_work_by_what_is_noted_is_right(self):
        self.assertEqual(
            self.judge('kernel cuLaunchKernel 7\ncopy cuMemcpyHtoDAsync_v2 2\nlost - 0\n'), [])

    def test_work_by_another_function_is_wrong(self):
        self.assertEqual(self.judge('kernel cuLaunchKernel 7\nset cuMemsetD2D8_v2 2\nlost - 0\n'),
                         ['2 times a set by cuMemsetD2D8_v2, which is not noted'])

    def test_the_other_convention_is_another_function(self):
        self.assertTrue(self.judge('kernel cuLaunchKernel_ptsz 1\nlost - 0\n'))

    def test_work_by_nobody_is_wrong(self):
        self.assertEqual(self.judge('kernel - 3\nlost - 0\n'),
                         ['3 times a kernel that no known function caused'])

    def test_nothing_seen_and_something_lost_prove_nothing(self):
        self.assertEqual(self.judge('lost - 0\n'), ['nothing was recorded'])
        self.assertEqual(self.judge('kernel cuLaunchKernel 7\nlost - 4\n'), ['4 records were lost'])

    def test_a_summary_names_each_function_once(self):
        rows = submissions.read('kernel cuB 1\nkernel cuA 2\ncopy cuA 4\nlost - 0\n')
        self.assertEqual(submissions.summary(rows), '3 kernel, 4 copy by cuA cuB')


class ProgramTest(unittest.TestCase):
    def test_it_tells_what_is_noted_from_what_is_forwarded(self):
        text = subprocess.run([PROGRAM], stdout=subprocess.PIPE, check=True).stdout.decode()
        kinds = {name: kind for kind, name in map(str.split, text.splitlines())}
        self.assertEqual(kinds['cuLaunchKernelEx'], 'hook')
        self.assertEqual(kinds['cuMemFreeAsync_ptsz'], 'hook')
        self.assertEqual(kinds['cuModuleLoadData'], 'retry')
        self.assertNotIn('cuCtxGetId', kinds)


if __name__ == '__main__':
    PROGRAM = sys.argv.pop(1)
    unittest.main()
