# SPDX-License-Identifier: Apache-2.0
"""Shimrun -- run a program alone or under the shim, and read the report it leaves

Used by the end-to-end tests on the simulated driver and by scripts/gpu-check on
the real one. A run never raises for what the program did: the status says it.
"""
import glob
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

MARGIN = 5  # seconds for a process to end after it was told to


class Run:
    """What one process left: text, status, seconds, its report (None if there was none), and
    those of the processes that it started as well."""

    def __init__(self, out, err, status, seconds, report, reports):
        self.out, self.err, self.status, self.seconds = out, err, status, seconds
        self.report, self.reports = report, reports

    @property
    def died(self):
        """Why it did not end in the ordinary way, or an empty text."""
        if self.status == 'timeout':
            return 'ran past its time'
        if self.status < 0:
            return f'killed by {signal.Signals(-self.status).name}'
        return ''


def environment(driver=None, settings=None):
    """Ours, without what would reach the program by accident."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(('STREAMPOOL_', 'SIM_')) and k != 'LD_PRELOAD'}
    if driver:
        env['LD_LIBRARY_PATH'] = os.path.dirname(os.path.abspath(driver))
    env.update(settings or {})
    return env


def run(command, shim=None, mode=None, driver=None, settings=None, limit=60, cwd=None):
    """Run @command; under @shim in @mode if they are given, on @driver or on the real one."""
    folder = tempfile.mkdtemp(prefix='shimrun-')
    env = environment(driver, settings)
    if shim:
        env['LD_PRELOAD'] = os.path.abspath(shim)
        env.setdefault('STREAMPOOL_REPORT', os.path.join(folder, 'report.%p.json'))
        if mode:
            env['STREAMPOOL_MODE'] = mode
    start = time.monotonic()
    process = subprocess.Popen(command, env=env, cwd=cwd, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, start_new_session=True)
    try:
        out, err = process.communicate(timeout=limit)
        status = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        try:
            out, err = process.communicate(timeout=MARGIN)
        except subprocess.TimeoutExpired:
            out = err = b''
        status = 'timeout'
    report, reports = None, []
    if status != 'timeout':  # who was killed may have been writing
        report = read_report(os.path.join(folder, f'report.{process.pid}.json'))
        reports = [read_report(path) for path in sorted(glob.glob(os.path.join(folder, '*.json')))]
    shutil.rmtree(folder, ignore_errors=True)
    return Run(out.decode(errors='replace'), err.decode(errors='replace'), status,
               time.monotonic() - start, report, reports)


def read_report(path):
    """The report at @path, or None. A launcher may have forked: then the one that is there."""
    if not os.path.exists(path):
        others = glob.glob(os.path.join(os.path.dirname(path), 'report.*.json'))
        if len(others) != 1:
            return None
        path = others[0]
    with open(path) as file:
        return json.load(file)


# what a report says


def made(report):
    """Kind -> allocations ever made of it."""
    return {row['kind']: row['made'] for row in report['memory'] if row['made']} if report else {}


def pooled(report):
    """Allocations that were served by the shim."""
    return sum(row['pooled'] for row in report['memory']) if report else 0


def leaks(report):
    """Kind -> (count, bytes) still held at the end."""
    found = {}
    for row in report['leaks']['places'] if report else []:
        count, size = found.get(row['kind'], (0, 0))
        found[row['kind']] = (count + row['count'], size + row['bytes'])
    return found


def findings(report):
    """Kind of misuse -> times."""
    return {k: v for k, v in report['finding_counts'].items() if v} if report else {}


def planted(text):
    """What a program says about itself: (leaks, findings, made), as the functions above."""
    leaked, found, counts = {}, {}, {}
    for words in (line.split() for line in text.splitlines()):
        if words[:1] == ['leak']:
            leaked[words[1]] = (int(words[2]), int(words[3]))
        elif words[:1] == ['finding']:
            found[words[1]] = int(words[2])
        elif words[:1] == ['made']:
            counts.update(zip(words[1::2], map(int, words[2::2])))
    return leaked, found, counts


def differences(report, text):
    """What @report says otherwise than @text, the program's own account; empty if nothing."""
    leaked, found, counts = planted(text)
    wrong = []
    got = leaks(report)
    for kind in sorted(set(leaked) | set(got)):
        count, size = leaked.get(kind, (0, 0))
        if got.get(kind, (0, 0))[0] != count or size >= 0 and got.get(kind, (0, 0))[1] != size:
            wrong.append(f'leaked {kind}: {got.get(kind)} reported, {leaked.get(kind)} planted')
    got = findings(report)
    for kind in sorted(set(found) | set(got)):
        if got.get(kind, 0) != found.get(kind, 0):
            wrong.append(f'{kind}: {got.get(kind, 0)} reported, {found.get(kind, 0)} planted')
    got = made(report)
    for kind, count in sorted(counts.items()):
        if got.get(kind, 0) != count:
            wrong.append(f'made {kind}: {got.get(kind, 0)} reported, {count} made')
    return wrong
