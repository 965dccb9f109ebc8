#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Suppressions -- what the user does not want to hear of, and where the program is to stop

    suppressions.py --driver LIBCUDA --shim SHIM --apps FOLDER [unittest options]

Programs with planted faults run under the shim with files of rules. A report without a
finding is no proof: each test also shows what is reported where the rule does not apply.
"""
import argparse
import os
import signal
import sys
import tempfile
import unittest

import shimrun

OPTIONS = None
STATUS = 7  # of a program whose report has findings

# What plant does, the kind of finding it is and how often it makes it.
PLANTED = (('double', 'double_free', 8), ('wrong', 'wrong_kind', 3), ('interior', 'interior', 3),
           ('context', 'after_context', 1), ('foreign', 'foreign', 5))


class Suppressions(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.rules = os.path.join(self.folder.name, 'my.rules')

    def run_app(self, app, *arguments, rules=None, mode='pool', **settings):
        settings.setdefault('STREAMPOOL_EXITCODE', str(STATUS))
        if rules is not None:
            with open(self.rules, 'w') as file:
                file.write(rules)
            settings['STREAMPOOL_SUPPRESS'] = self.rules
        command = [os.path.join(OPTIONS.apps, app)] + [str(a) for a in arguments]
        return shimrun.run(command, OPTIONS.shim, mode, OPTIONS.driver, settings, limit=60)

    def is_suppressed(self, rules, *arguments, app='sites', **settings):
        """Does the program end well and is its report empty? Anything in between fails."""
        run = self.run_app(app, *arguments, rules=rules, **settings)
        self.assertIsNotNone(run.report, run.err)
        found = shimrun.findings(run.report), run.report['leaks']['count']
        self.assertIn((run.status, found == ({}, 0)), ((0, True), (STATUS, False)),
                      f'{rules}: {run.status} {found}\n{run.err}')
        used = run.report['suppressed']['rules']
        if run.status == 0 and not run.report['library_leaks']:
            self.assertGreater(used, 0, rules)
        lines = len([line for line in rules.splitlines() if line and line[0] != '#'])
        self.assertEqual(used + len(run.report['unused_rules']), lines, f'{rules}\n{run.err}')
        return run.status == 0

    # rules

    def test_each_kind_of_wrong_free_is_suppressed_by_its_kind_and_by_no_other(self):
        for what, kind, times in PLANTED:
            for mode in ('pool', 'observe'):
                with self.subTest(kind=kind, mode=mode):
                    rule = kind.replace('_', '-') + ':^plant$'
                    run = self.run_app('plant', what, rules=rule, mode=mode)
                    self.assertEqual(shimrun.findings(run.report), {})
                    self.assertEqual(run.report['findings'], [])
                    self.assertEqual(run.report['suppressed'],
                                     {'rules': 1, 'wrong_frees': times, 'leaks': 0, 'bytes': 0})
                    self.assertEqual(run.status, 0)
                    others = ''.join(f'{other}:plant\n' for _, other, _ in PLANTED if other != kind)
                    run = self.run_app('plant', what, rules=others + 'leak:plant', mode=mode)
                    self.assertEqual(shimrun.findings(run.report), {kind: times})
                    self.assertEqual(run.status, STATUS)
                    self.assertEqual(len(run.report['unused_rules']), len(PLANTED))

    def test_leaks_of_every_kind_of_memory_are_suppressed_by_kind(self):
        plain = self.run_app('plant', 'leak')
        self.assertEqual(plain.status, STATUS)
        leaks = shimrun.leaks(plain.report)
        self.assertEqual(len(leaks), 9)
        for kind, (count, size) in leaks.items():
            with self.subTest(kind=kind):
                run = self.run_app('plant', 'leak', rules=f'leak: kind={kind} library=plant')
                rest = {other: what for other, what in leaks.items() if other != kind}
                self.assertEqual(shimrun.leaks(run.report), rest)
                self.assertEqual(run.report['suppressed'],
                                 {'rules': 1, 'wrong_frees': 0, 'leaks': count, 'bytes': size})
                self.assertEqual(run.report['leaks']['count'], sum(c for c, _ in rest.values()))
                self.assertEqual(run.report['leaks']['bytes'], sum(s for _, s in rest.values()))
                self.assertEqual(run.status, STATUS)

    def test_any_is_every_kind(self):
        everything = ('leak',) + tuple(what for what, _, _ in PLANTED)
        self.assertTrue(self.is_suppressed('any:plant', *everything, app='plant'))
        self.assertFalse(self.is_suppressed('leak:plant', *everything, app='plant'))
        self.assertFalse(self.is_suppressed('any:another', *everything, app='plant'))

    def test_a_place_is_told_by_function_and_library(self):
        for rule, wanted in (('leak:^keep_some$', True), ('leak:keep_*e', True),
                             ('leak:^some', False), ('leak:pin_some', False),
                             ('leak: function=keep_some library=^sites$', True),
                             ('leak: function=keep_some library=libkeeper', False),
                             ('leak:/sites$', True), ('leak:/another/sites$', False)):
            with self.subTest(rule=rule):
                self.assertEqual(self.is_suppressed(rule, 'keep', 2, 1000), wanted)

    def test_size_count_and_device_are_asked_for(self):
        for rule, acts, wanted in (
                ('leak: size=-1K', ('keep', 2, 1000), True),
                ('leak: size=-1K', ('keep', 2, 1025), False),
                ('leak: size=-1K', ('keep', 1, 1000, 'keep', 1, 5000), False),
                ('leak: size=1000-5000', ('keep', 1, 1000, 'keep', 1, 5000), True),
                ('leak: count=2', ('keep', 2, 1000), True),
                ('leak: count=2', ('keep', 3, 1000), False),
                ('double-free: count=2', ('twice', 2), True),
                ('double-free: count=2', ('twice', 3), False),
                ('double-free: kind=device size=5000', ('twice', 1), True),
                ('double-free: kind=pinned', ('twice', 1), False),
                # Of a block that went back to the pool the device is not remembered.
                ('double-free: device=0', ('twice', 1), False),
                ('leak: device=1', ('device', 1, 'keep', 1, 1000), True),
                ('leak: device=0', ('device', 1, 'keep', 1, 1000), False),
                ('leak: device=0', ('keep', 1, 1000), True),
                ('leak: device=0', ('keep', 1, 1000, 'device', 1, 'keep', 1, 1000), False),
                ('leak: device=1', ('keep', 1, 1000, 'device', 1, 'keep', 1, 1000), False)):
            with self.subTest(rule=rule, acts=acts):
                self.assertEqual(self.is_suppressed(rule, *acts), wanted)

    def test_what_no_rule_is_about_is_reported_still(self):
        run = self.run_app('sites', 'keep', 3, 1000, 'pin', 5000, 'twice', 2,
                           rules='leak:keep_some')
        self.assertEqual(run.status, STATUS)
        self.assertEqual(shimrun.findings(run.report), {'double_free': 2})
        self.assertEqual(shimrun.leaks(run.report), {'pinned': (1, 5000)})
        self.assertEqual(run.report['suppressed'],
                         {'rules': 1, 'wrong_frees': 0, 'leaks': 3, 'bytes': 3000})

    def test_without_an_exit_code_nothing_of_the_status_changes(self):
        self.assertEqual(self.run_app('sites', 'keep', 1, 100, rules='leak:no',
                                      STREAMPOOL_EXITCODE='0').status, 0)

    # what is said of it

    def test_the_text_says_what_was_left_out_and_what_was_of_no_use(self):
        run = self.run_app('sites', 'keep', 3, 2048, 'twice', 2, STREAMPOOL_REPORT='-',
                           rules='# mine\nleak:keep_some\n\nforeign:nobody\nany:drop_\nany:no2\n')
        self.assertIn('\nSuppressed by 2 rules: 2 wrong frees, and 6 KiB in 3 allocations never '
                      'freed\n', run.err)
        self.assertIn(f'\nRules that nothing matched\n  {self.rules}:4: foreign:nobody\n'
                      f'  {self.rules}:6: any:no2\n', run.err)
        self.assertIn('Everything else was freed, and freed once.', run.err)
        self.assertNotIn('Never freed', run.err)
        self.assertNotIn('Freed twice', run.err)

    def test_many_useless_rules_are_counted_in_text_and_listed_in_json(self):
        rules = ''.join(f'leak:no{i}\n' for i in range(13))
        text = self.run_app('sites', 'keep', 1, 10, rules=rules, STREAMPOOL_REPORT='-').err
        self.assertEqual(text.count(': leak:no'), 10)
        self.assertIn('  and 3 more\n', text)
        report = self.run_app('sites', 'keep', 1, 10, rules=rules).report
        self.assertEqual(report['unused_rules'],
                         [{'path': self.rules, 'line': i + 1, 'rule': f'leak:no{i}'}
                          for i in range(13)])

    def test_a_clean_program_with_rules_is_clean(self):
        run = self.run_app('plant', 'clean', rules='any:*')
        self.assertEqual((run.status, run.err), (0, ''))
        self.assertEqual([rule['line'] for rule in run.report['unused_rules']], [1])
        self.assertEqual(run.report['suppressed']['rules'], 0)

    # what is no rule

    def test_a_bad_line_is_named_and_the_others_are_in_force(self):
        run = self.run_app('sites', 'keep', 1, 1000,
                           rules='leak: libary=x\nleak:keep_some\ndoble-free:x\nleak: size=x\n')
        self.assertEqual(run.status, 0)
        lines = run.err.splitlines()
        self.assertEqual(len(lines), 3, run.err)
        for number, line, words in ((1, lines[0], 'libary=x does not begin with one of function='),
                                    (3, lines[1], 'doble-free is not one of use-after-free|out-of-bounds|use-before-alloc|race|overlap|overrun|'),
                                    (4, lines[2], 'size=x is not like size=8, 8-4096')):
            self.assertIn(f'streampool: {self.rules}:{number}: {words}', line)

    def test_a_file_that_cannot_be_read_is_named_and_the_program_runs(self):
        large = os.path.join(self.folder.name, 'large')
        with open(large, 'wb') as file:
            file.write(b'leak:*\n' * 160000)
        pipe = os.path.join(self.folder.name, 'pipe')
        os.mkfifo(pipe)
        for path, why in ((os.path.join(self.folder.name, 'none'), 'No such file or directory'),
                          (self.folder.name, 'Is a directory'),
                          (large, 'it is larger than 1 MiB'), (pipe, 'it is no regular file')):
            with self.subTest(why=why):
                run = self.run_app('sites', 'keep', 1, 1000, STREAMPOOL_SUPPRESS=path)
                self.assertEqual(run.err, f'streampool: STREAMPOOL_SUPPRESS={path} cannot be '
                                          f'read: {why}\n')
                self.assertEqual(run.status, STATUS)
                self.assertEqual(run.out, 'kept\n')

    def test_the_last_of_too_many_rules_is_not_in_force(self):
        rules = 'leak:no\n' * 1023
        self.assertEqual(self.run_app('sites', 'keep', 1, 10, rules=rules + 'leak:keep').status, 0)
        run = self.run_app('sites', 'keep', 1, 10, rules=rules + 'leak:no\nleak:keep')
        self.assertEqual(run.status, STATUS)
        self.assertIn(f'{self.rules}:1025: there are 1024 rules before', run.err)

    # libraries

    def test_what_a_known_library_keeps_is_no_leak_of_the_program(self):
        for mode in ('pool', 'observe'):
            run = self.run_app('sites', 'library', 3000, 'library', 5000, mode=mode)
            self.assertEqual(run.status, 0, run.err)
            self.assertEqual(run.report['leaks']['count'], 0)
            self.assertEqual(run.report['library_leaks'],
                             [{'library': 'libcufft_keeper.so', 'count': 2, 'bytes': 8000}])

    def test_it_is_told_in_one_line(self):
        run = self.run_app('sites', 'library', 3072, 'another', 512, 'library', 5120,
                           STREAMPOOL_REPORT='-')
        self.assertIn('\nHeld by libraries until the end: libcufft_keeper.so 8 KiB in 2, '
                      'libnccl_keeper.so 512 B in 1\n', run.err)
        self.assertIn('Everything else was freed, and freed once.', run.err)

    def test_it_is_a_leak_if_asked_for(self):
        run = self.run_app('sites', 'library', 3000, STREAMPOOL_LIBRARY_LEAKS='1')
        self.assertEqual(run.status, STATUS)
        self.assertEqual(shimrun.leaks(run.report), {'device': (1, 3000)})
        self.assertEqual(run.report['library_leaks'], [])

    def test_what_the_program_leaks_beside_it_is_reported(self):
        run = self.run_app('sites', 'library', 3000, 'keep', 1, 700)
        self.assertEqual(run.status, STATUS)
        self.assertEqual(shimrun.leaks(run.report), {'device': (1, 700)})

    def test_a_rule_of_the_user_comes_first(self):
        run = self.run_app('sites', 'library', 3000, rules='leak:libcufft')
        self.assertEqual(run.report['suppressed']['leaks'], 1)
        self.assertEqual(run.report['library_leaks'], [])
        self.assertEqual(run.report['unused_rules'], [])

    # where to stop

    def test_the_program_is_stopped_at_each_kind_of_wrong_free(self):
        for what, kind, _ in PLANTED:
            for mode in ('pool', 'observe'):
                for words in (kind.replace('_', '-'), 'any'):
                    with self.subTest(kind=kind, mode=mode, words=words):
                        run = self.run_app('plant', what, mode=mode, STREAMPOOL_ABORT_ON=words)
                        self.assertEqual(run.status, -signal.SIGABRT, run.err)
                        self.assertRegex(run.err, rf'^streampool: {kind.replace("_", "-")}: '
                                                  r'cuMem\w+\(0x[0-9a-f]+\) at plant\+0x')
                        self.assertTrue(run.err.endswith(
                            'streampool: STREAMPOOL_ABORT_ON asks to stop here\n'), run.err)
                others = ','.join(other for _, other, _ in PLANTED if other != kind)
                run = self.run_app('plant', what, mode=mode, STREAMPOOL_ABORT_ON=others)
                self.assertEqual((run.status, run.err), (STATUS, ''))

    def test_it_is_told_where_the_memory_came_from_and_went(self):
        run = self.run_app('sites', 'keep', 1, 10, 'twice', 2, STREAMPOOL_ABORT_ON='double-free')
        self.assertEqual(run.status, -signal.SIGABRT)
        self.assertEqual(run.out, 'kept\n', 'the program went on after its wrong free')
        place = r'at sites\+0x[0-9a-f]+ \(drop_twice\)\n'
        self.assertRegex(run.err, r'\Astreampool: double-free: cuMemFree\(0x[0-9a-f]+\) ' + place +
                         r'streampool:   freed before by cuMemFree ' + place +
                         r'streampool:   4.88 KiB of device memory, allocated ' + place)
        self.assertIsNone(run.report)

    def test_a_correct_program_is_not_stopped(self):
        for app, act in (('plant', 'clean'), ('plant', 'leak')):
            run = self.run_app(app, act, STREAMPOOL_ABORT_ON='any', STREAMPOOL_EXITCODE='0')
            self.assertEqual((run.status, run.err), (0, ''))

    def test_what_is_suppressed_does_not_stop_the_program(self):
        for rule, status in (('double-free:drop_twice', 0), ('double-free:keep_some', None),
                             ('leak:drop_twice', None), ('any: function=drop_ count=3', 0),
                             ('any: function=drop_ count=2', None)):
            with self.subTest(rule=rule):
                run = self.run_app('sites', 'twice', 3, rules=rule, STREAMPOOL_ABORT_ON='any')
                self.assertEqual(run.status, -signal.SIGABRT if status is None else status)
        self.assertEqual(run.out.count('code'), 2, 'the third one is one too many')

    def test_who_catches_the_signal_may_call_the_driver(self):
        run = self.run_app('sites', 'catch', 'twice', 1, STREAMPOOL_ABORT_ON='double-free')
        self.assertEqual(run.status, 3, run.err)

    def test_a_word_that_is_no_kind_is_named_and_the_others_count(self):
        run = self.run_app('plant', 'foreign', STREAMPOOL_ABORT_ON='doble-free,foreign')
        self.assertEqual(run.status, -signal.SIGABRT)
        self.assertIn('streampool: STREAMPOOL_ABORT_ON: doble-free is not one of use-after-free|out-of-bounds|use-before-alloc|race|overlap|overrun|'
                      'free-before-use|free-before-alloc|sync-free|double-free|wrong-kind|interior|after-context|foreign|argument-after-free|any; the word is left out\n',
                      run.err)
        run = self.run_app('plant', 'leak', STREAMPOOL_ABORT_ON='leak')
        self.assertEqual(run.status, STATUS)
        self.assertIn('leak is not one of', run.err)


def main():
    global OPTIONS
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ('driver', 'shim', 'apps'):
        parser.add_argument('--' + name, required=True)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=sys.argv[:1] + rest)


if __name__ == '__main__':
    main()
