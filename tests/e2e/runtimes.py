#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runtimes -- the places of a program that reaches the driver through NVIDIA's runtime

    runtimes.py --driver LIBCUDA --shim SHIM --apps FOLDER [unittest options]

A place is where the program has called the runtime, whether or not frames are kept.
"""
import argparse
import os
import sys
import unittest

import shimrun

OPTIONS = None
SIZES = {'keep_plain': 1000, 'keep_deep': 2000, 'keep_sized': 3000, 'keep_other': 4000,
         'keep_in_thread': 5000, 'keep_direct': 6000, 'keep_tensor': 9000}


class Runtimes(unittest.TestCase):
    app = 'between_plain'

    def run_app(self, *acts, **settings):
        run = shimrun.run([self.path(), *map(str, acts)], OPTIONS.shim, 'pool', OPTIONS.driver,
                          settings)
        self.assertEqual(run.status, 0, run.err)
        return run

    def path(self):
        return os.path.join(OPTIONS.apps, self.app)

    def functions(self, *acts, **settings):
        """Function -> leaks; each place must be one, and in the program."""
        found = {}
        for place in self.run_app(*acts, **settings).report['leaks']['places']:
            symbol, path = place['site']['symbol'], place['site']['path']
            self.assertEqual(path, self.path(), place)
            self.assertEqual(place['bytes'], place['count'] * SIZES[symbol], place)
            found[symbol] = found.get(symbol, 0) + place['count']
        return found

    def test_a_place_is_the_call_of_the_runtime(self):
        for start in ('early', 'late'):
            with self.subTest(start=start):
                self.assertEqual(
                    self.functions(start, 'keep', 9, 'deep', 300, 'sized', 500, 'thread', 5,
                                   'direct', 3),
                    {'keep_plain': 9, 'keep_deep': 300, 'keep_sized': 500, 'keep_other': 500,
                     'keep_in_thread': 5, 'keep_direct': 3})

    def test_a_loop_is_one_place(self):
        for stack in ('off', 'python'):
            run = self.run_app('early', 'keep', 50, STREAMPOOL_STACK=stack)
            self.assertEqual([place['count'] for place in run.report['leaks']['places']], [50])
            self.assertEqual(run.report['leaks']['places'][0]['site']['symbol'], 'keep_plain')

    def test_what_a_library_holds_through_the_runtime_is_its(self):
        report = self.run_app('early', 'library', 512, 'keep', 1).report
        self.assertEqual(report['leaks']['count'], 1)
        held, = report['library_leaks']
        self.assertEqual((held['library'], held['count'], held['bytes']),
                         ('libcufft_keeper.so', 1, 512))

    def test_an_allocator_is_passed_over_like_the_runtime(self):
        for stack in ('off', 'python', 'native'):
            with self.subTest(stack=stack):
                run = self.run_app('early', 'workspace', 512, 'tensor', 20, 'keep', 1,
                                   STREAMPOOL_STACK=stack)
                held, = run.report['library_leaks']
                self.assertEqual((held['library'], held['count'], held['bytes']),
                                 ('libtorch_cuda_keeper.so', 1, 512))
                self.assertEqual(run.report['leaks']['count'], 21)
        self.assertEqual(self.functions('early', 'tensor', 20, 'keep', 3),
                         {'keep_tensor': 20, 'keep_plain': 3})

    def test_frames_of_c_begin_in_the_runtime(self):
        run = self.run_app('early', 'keep', 1, STREAMPOOL_STACK='native')
        site = run.report['leaks']['places'][0]['site']
        self.assertIn('libcudart', site['path'])
        self.assertIn('keep_plain', [frame['symbol'] for frame in site['native']])

    def test_a_finding_names_the_program(self):
        finding, = self.run_app('early', 'twice').report['findings']
        self.assertEqual(finding['kind'], 'double_free')
        for place in (finding['site'], finding['freed_at'], finding['allocation']['site']):
            self.assertEqual(place['symbol'], 'drop_twice')


class Framed(Runtimes):
    app = 'between_framed'


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ('driver', 'shim', 'apps'):
        parser.add_argument('--' + name, required=True)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
