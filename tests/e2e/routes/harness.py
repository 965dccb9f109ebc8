# SPDX-License-Identifier: Apache-2.0
"""Harness -- what the scripts of this folder share

    SCRIPT --list          the names of all cases
    SCRIPT NAME            run one; 0 passed, 1 failed, 77 not possible here

A case is a function. It starts programs of this folder, or of the system, with
the shim preloaded and the simulated driver on the library path, and judges how
they end and what they print. The environment says where things are: ROUTES_SHIM,
ROUTES_SIM, ROUTES_BIN, ROUTES_SOURCE, and ROUTES_CC, the compiler.
"""

import json
import os
import subprocess
import sys

SHIM = os.environ.get('ROUTES_SHIM', '')
SIM = os.environ.get('ROUTES_SIM', '')
BIN = os.environ.get('ROUTES_BIN', '')
SOURCE = os.environ.get('ROUTES_SOURCE', '')

cases = {}


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def case(function):
    cases[function.__name__] = function
    return function


def expect(condition, message):
    if not condition:
        raise Failed(message)


def start(*command, preload=None, driver=SIM, timeout=60, **variables):
    """Runs a program and returns it; program names without a slash are of this folder."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(('STREAMPOOL_', 'SIM_')) and k != 'LD_PRELOAD'}
    env['LD_LIBRARY_PATH'] = ':'.join(filter(None, [driver, BIN]))
    env.update(variables)
    preload = SHIM if preload is None else preload
    command = [c if i or '/' in c else os.path.join(BIN, c) for i, c in enumerate(command)]
    try:
        return subprocess.run(['env', f'LD_PRELOAD={preload}'] + command, env=env, check=False,
                              capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired as late:
        raise Failed(f'{command} does not end; it wrote {late.stdout!r} {late.stderr!r}') from late


def passes(*command, status=0, **how):
    done = start(*command, **how)
    expect(done.returncode == status,
           f'{command} ended with {done.returncode}, not {status}\n{done.stdout}{done.stderr}')
    return done


def reports_in(text):
    """The reports in JSON form that are in what a program wrote."""
    reports = []
    decoder = json.JSONDecoder()
    at = text.find('{')
    while at >= 0:
        report, end = decoder.raw_decode(text, at)
        reports.append(report)
        at = text.find('{', end)
    return reports


def main():
    if sys.argv[1:] == ['--list']:
        print('\n'.join(cases))
        return 0
    try:
        cases[sys.argv[1]]()
    except Failed as failure:
        print(failure)
        return 1
    except Skipped as reason:
        print('skipped:', reason)
        return 77
    return 0
