#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lines -- does a report name the function, file and line of a place?

    lines.py --driver D --shim S --lost L --plugin P --empty E --debuginfod I
             [--linked L] [--mislaid M]

The lines are found by the comments in the sources. What needs libdw or objcopy
is skipped where there is none. --linked is lost optimised at link time, and
--mislaid is a program in C++: both are left out where they cannot be built.
"""

import argparse
import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(FOLDER))
sys.dont_write_bytecode = True

import shimrun  # noqa: E402

OPTIONS = None


def has_libdw():
    try:
        return bool(ctypes.CDLL('libdw.so.1'))
    except OSError:
        return False


NEEDS_LIBDW = unittest.skipUnless(has_libdw(), 'libdw.so.1 (Debian: libdw1) cannot be loaded')
NEEDS_OBJCOPY = unittest.skipUnless(shutil.which('objcopy'), 'there is no objcopy')


def here(source, word):
    """(path, line) of the comment `here: word` in a source file of ours."""
    path = os.path.join(FOLDER, source)
    with open(path, encoding='utf-8') as file:
        found = [number for number, line in enumerate(file, 1) if f'/* here: {word} */' in line]
    assert len(found) == 1, (source, word, found)
    return os.path.realpath(path), found[0]


def frame(function, source, word):
    path, line = here(source, word)
    return {'function': function, 'source': path, 'line': line}


def site_of(report, kind):
    places = [place for place in report['leaks']['places'] if place['kind'] == kind]
    assert len(places) == 1, report['leaks']
    return places[0]['site']


def frames(site):
    """All functions of a site, the innermost first."""
    return [{key: site[key] for key in ('function', 'source', 'line')}, *site['inlined_into']]


class Lines(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='lines-')
        self.addCleanup(shutil.rmtree, self.folder)

    def run_it(self, *command, libraries=(), **settings):
        folders = [*libraries, os.path.dirname(os.path.abspath(OPTIONS.driver))]
        settings['LD_LIBRARY_PATH'] = ':'.join(folders)
        run = shimrun.run(command, shim=OPTIONS.shim, driver=OPTIONS.driver, settings=settings)
        self.assertEqual(run.status, 0, run.err)
        return run

    def text_of(self, *command, **settings):
        return self.run_it(*command, STREAMPOOL_REPORT='-', **settings).err

    def called(self, name, library):
        """A folder in which @library goes by @name."""
        shutil.copy(library, os.path.join(self.folder, name))
        return self.folder

    def stripped(self, link=None):
        """A copy of lost without names; with a link to @link as its debug information."""
        path = os.path.join(self.folder, 'lost')
        subprocess.run(['objcopy', '--strip-all', OPTIONS.lost, path], check=True)
        if link:
            subprocess.run(['objcopy', f'--add-gnu-debuglink={link}', path], check=True)
        return path

    def debug_of_lost(self):
        path = os.path.join(self.folder, 'lost.debug')
        subprocess.run(['objcopy', '--only-keep-debug', OPTIONS.lost, path], check=True)
        return path

    def expect_no_lines(self, report, exported=True):
        """Nothing of the static function, and of what was inlined only where that ended up."""
        for kind, name in ('device', None), ('managed', 'main'), ('pinned', 'lose_pinned'):
            self.assertEqual(frames(site_of(report, kind)),
                             [{'function': name if exported else None, 'source': None, 'line': None}])

    # what is named

    @NEEDS_LIBDW
    def test_static_function(self):
        report = self.run_it(OPTIONS.lost).report
        self.assertEqual(frames(site_of(report, 'device')), [frame('lose_plain', 'lost.c', 'plain')])

    @NEEDS_LIBDW
    def test_inlined_functions_from_the_innermost_outwards(self):
        report = self.run_it(OPTIONS.lost).report
        self.assertEqual(frames(site_of(report, 'managed')), [
            frame('lose_managed', 'lost.c', 'managed'),
            frame('lose_between', 'lost.c', 'between'),
            frame('main', 'lost.c', 'main'),
        ])

    @NEEDS_LIBDW
    def test_inlined_at_link_time(self):
        if not OPTIONS.linked:
            self.skipTest('the compiler is not gcc')
        report = self.run_it(OPTIONS.linked).report
        self.assertEqual(frames(site_of(report, 'managed')), [
            frame('lose_managed', 'lost.c', 'managed'),
            frame('lose_between', 'lost.c', 'between'),
            frame('main', 'lost.c', 'main'),
        ])

    @NEEDS_LIBDW
    @NEEDS_OBJCOPY
    def test_no_list_of_which_unit_has_which_addresses(self):
        """As clang writes it."""
        path = os.path.join(self.folder, 'lost')
        subprocess.run(['objcopy', '--remove-section=.debug_aranges', OPTIONS.lost, path], check=True)
        report = self.run_it(path).report
        self.assertEqual(frames(site_of(report, 'device')), [frame('lose_plain', 'lost.c', 'plain')])

    @NEEDS_LIBDW
    def test_text(self):
        text = self.text_of(OPTIONS.lost)
        at = {word: '%s:%d' % here('lost.c', word) for word in ('plain', 'managed', 'between', 'main')}
        self.assertRegex(text, r' lost\+0x[0-9a-f]+ ' + re.escape(f'(lose_plain) at {at["plain"]}\n'))
        self.assertRegex(text, r' lost\+0x[0-9a-f]+ ' + re.escape(
            f'(lose_managed) at {at["managed"]}, inlined into lose_between at {at["between"]}, '
            f'inlined into main at {at["main"]}\n'))

    @NEEDS_LIBDW
    def test_cpp(self):
        if not OPTIONS.mislaid:
            self.skipTest('there is no C++ compiler')
        report = self.run_it(OPTIONS.mislaid).report
        self.assertEqual(frames(site_of(report, 'device')), [
            frame('tank::Box<double>::hold(unsigned long)', 'mislaid.cpp', 'hold')])
        self.assertEqual(frames(site_of(report, 'managed')), [
            frame('bool tank::share<long>(long)', 'mislaid.cpp', 'share'),
            frame('main', 'mislaid.cpp', 'main')])

    # what is not

    def test_switched_off(self):
        report = self.run_it(OPTIONS.lost, STREAMPOOL_SYMBOLS='0').report
        self.expect_no_lines(report, exported=False)
        self.assertEqual(site_of(report, 'pinned')['symbol'], 'lose_pinned')
        text = self.text_of(OPTIONS.lost, STREAMPOOL_SYMBOLS='0')
        self.assertRegex(text, r' lost\+0x[0-9a-f]+ \(lose_pinned\)\n')
        self.assertNotIn(' at /', text)

    def test_without_libdw_exported_names_are_left(self):
        folder = self.called('libdw.so.1', OPTIONS.empty)
        report = self.run_it(OPTIONS.lost, libraries=[folder]).report
        self.expect_no_lines(report)
        if OPTIONS.mislaid:
            report = self.run_it(OPTIONS.mislaid, libraries=[folder]).report
            self.assertEqual(site_of(report, 'device')['function'],
                             'tank::Box<double>::hold(unsigned long)')

    def test_library_that_was_unloaded(self):
        site = site_of(self.run_it(OPTIONS.lost, 'plugin', OPTIONS.plugin).report, 'device')
        self.assertEqual(frames(site), [{'function': None, 'source': None, 'line': None}])
        self.assertIsNone(site['path'])

    # debug information in a file of its own

    @NEEDS_LIBDW
    @NEEDS_OBJCOPY
    def test_link_is_followed(self):
        debug = self.debug_of_lost()
        path = self.stripped(link=debug)
        expected = [frame('lose_plain', 'lost.c', 'plain')]
        self.assertEqual(frames(site_of(self.run_it(path).report, 'device')), expected)
        os.mkdir(os.path.join(self.folder, '.debug'))
        os.rename(debug, os.path.join(self.folder, '.debug', 'lost.debug'))
        self.assertEqual(frames(site_of(self.run_it(path).report, 'device')), expected)

    @NEEDS_OBJCOPY
    def test_link_to_debug_information_of_another_build(self):
        debug = self.debug_of_lost()
        note = os.path.join(self.folder, 'note')
        section = f'.note.gnu.build-id={note}'
        subprocess.run(['objcopy', '--dump-section', section, debug, debug + '.same'], check=True)
        with open(note, 'r+b') as file:
            file.seek(-1, os.SEEK_END)
            last = file.read()[0]
            file.seek(-1, os.SEEK_END)
            file.write(bytes([last ^ 1]))
        subprocess.run(['objcopy', '--update-section', section, debug, debug + '.other'], check=True)
        for ending, lines in ('.same', 1), ('.other', 0):
            report = self.run_it(self.stripped(link=debug + ending)).report
            named = [frame for frame in frames(site_of(report, 'device')) if frame['line']]
            self.assertEqual(len(named), lines, ending)

    @NEEDS_OBJCOPY
    def test_link_to_what_is_no_debug_information_of_this_file(self):
        target = os.path.join(self.folder, 'linked')
        for content in (OPTIONS.plugin, OPTIONS.shim, __file__, os.devnull):
            shutil.copyfile(content, target)
            path = self.stripped(link=target)
            self.expect_no_lines(self.run_it(path).report)
        os.unlink(target)
        self.expect_no_lines(self.run_it(path).report)
        os.mkdir(target)
        self.expect_no_lines(self.run_it(path).report)
        os.rmdir(target)
        os.symlink('lost', target)
        self.expect_no_lines(self.run_it(path).report)
        os.unlink(target)
        os.mkfifo(target)
        self.expect_no_lines(self.run_it(path).report)

    @NEEDS_LIBDW
    @NEEDS_OBJCOPY
    def test_no_server_is_asked(self):
        asked = os.path.join(self.folder, 'asked')
        self.run_it(self.stripped(), libraries=[self.called('libdebuginfod.so.1', OPTIONS.debuginfod)],
                    DEBUGINFOD_URLS='http://127.0.0.1:9', ASKED=asked)
        self.assertFalse(os.path.exists(asked), 'debuginfod was asked')


def main():
    global OPTIONS
    parser = argparse.ArgumentParser()
    for name in ('driver', 'shim', 'lost', 'plugin', 'empty', 'debuginfod'):
        parser.add_argument('--' + name, required=True, type=os.path.abspath)
    for name in ('linked', 'mislaid'):
        parser.add_argument('--' + name, type=os.path.abspath)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == '__main__':
    main()
