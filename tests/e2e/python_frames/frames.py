#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frames -- what python.c takes, and what Python itself says of the same stack

    frames.py --library FRAMES --host HOST [--python PYTHON]... [SUITE...]

Runs the suites of scenes.py, `embedded` with the host and `headers`, in each interpreter that
is named, or in this one; without a suite all of them, and `cost` for the eyes. By hand
for all versions that pyenv has:

    B=build/tests/e2e/python_frames
    tests/e2e/python_frames/frames.py --library $B/libpython_frames.so --host $B/python-host \\
        $(printf -- '--python %s ' ~/.pyenv/versions/3.*/bin/python)
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

SUITES = ('scenes', 'lines', 'refusals', 'stress', 'ending', 'embedded', 'headers',
          'strangers')
KNOWN = [f'3.{minor}' for minor in range(8, 15)]
WHERE = ('import os, sys, sysconfig as s; '
         'print("%d.%d" % sys.version_info[:2] + "t" * bool(s.get_config_var("Py_GIL_DISABLED"))); '
         'print(sys.prefix); '
         'print(os.path.join(s.get_config_var("LIBDIR") or "", s.get_config_var("INSTSONAME") or "")); '
         'print(s.get_path("include"))')
HERE = os.path.dirname(os.path.abspath(__file__))
SHIM = os.path.join(HERE, '..', '..', '..', 'shim')
SKIPPED = 77


def run(command, **environment):
    answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100,
                            env={**os.environ, **environment})
    said = answer.stdout.decode(errors='replace').strip()
    return answer.returncode, said


def scene(options, python, suite):
    status, said = run([python, os.path.join(HERE, 'scenes.py'), options.library, suite])
    if suite == 'ending' and status == 0:
        ends = re.search(r'(\d+) of (\d+) late threads', said)
        status = not ends or ends.group(1) != ends.group(2) or ends.group(2) == '0'
    return status, said


def embedded(options, python):
    """The host's words: the method, perhaps the list, and the program; then the program."""
    _, prefix, library, _ = run([python, '-c', WHERE])[1].split('\n')
    if '.so' not in library or not os.path.exists(library):
        return SKIPPED, 'this interpreter is in no library'
    status, said = run([options.host, options.library, library], PYTHONHOME=prefix)
    wanted = (r'4 <string> (Of\.)?method (5 <string> <listcomp> )?5 <string> <module>\s+'
              r'6 <string> <module>')
    return status or not re.fullmatch(wanted, said), said


def headers(python):
    """python_layout.c and this version's own structures, where its headers are installed."""
    include = run([python, '-c', WHERE])[1].split('\n')[3]
    if not os.path.exists(os.path.join(include, 'Python.h')) or not shutil.which('cc'):
        return SKIPPED, 'no headers, or no compiler'
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, 'headers')
        status, said = run(['cc', '-w', '-I' + include, '-I' + os.path.join(include, 'internal'),
                            '-I' + SHIM, '-o', program, os.path.join(HERE, 'headers.c'),
                            os.path.join(SHIM, 'track', 'python_layout.c')])
        return (status, said) if status else run([program])


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('--library', required=True)
    parser.add_argument('--host', required=True)
    parser.add_argument('--python', action='append')
    parser.add_argument('suites', nargs='*')
    options = parser.parse_args()
    worst = 0
    for python in options.python or [sys.executable]:
        version = run([python, '-c', WHERE])[1].split('\n')[0]
        for suite in options.suites or SUITES + ('cost',):
            if version not in KNOWN:
                status, said = SKIPPED, 'not a version that python.c knows'
            elif suite == 'embedded':
                status, said = embedded(options, python)
            elif suite == 'headers':
                status, said = headers(python)
            else:
                status, said = scene(options, python, suite)
            result = {0: 'ok', SKIPPED: 'skipped'}.get(status, f'WRONG ({int(status)})')
            print(f'{version} {suite}: {result}: {said}', flush=True)
            worst = worst if worst not in (0, SKIPPED) else int(status)
    return worst


if __name__ == '__main__':
    sys.exit(main())
