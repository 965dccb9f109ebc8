# SPDX-License-Identifier: Apache-2.0
"""Submissions -- is everything that the device executes noted by the shim?

cupti_client.c says which functions of the driver caused the kernels, copies and
sets of a program; submissions.c says which functions the shim notes. What is in
the first list and not in the second is work that nobody would wait for.
"""

import glob
import os
import subprocess

import ground

FOLDER = os.path.dirname(os.path.abspath(__file__))
TOOLKIT = '/usr/local/cuda'
NOTED = ('hook', 'submit')
NOBODY = '-'  # no function that CUPTI knows: a private table, or a call before it was there


def noted(include):
    """The exported names that the shim does not merely forward."""
    shim = ['-I', os.path.join(ground.ROOT, 'shim'), '-I', os.path.join(ground.ROOT, 'include')]
    program = os.path.join(ground.FOLDER, 'submissions')
    ground.call([os.environ.get('CC', 'cc'), '-std=gnu11', *include, *shim, '-o', program,
                 os.path.join(FOLDER, 'submissions.c')], None, 60)
    text = subprocess.run([program], stdout=subprocess.PIPE, check=True).stdout.decode()
    return {name for kind, name in map(str.split, text.splitlines()) if kind in NOTED}


def client(include):
    """The library for CUDA_INJECTION64_PATH; RuntimeError where there is no CUPTI."""
    includes = glob.glob(TOOLKIT + '/extras/CUPTI/include') + [TOOLKIT + '/include']
    places = [TOOLKIT + '/extras/CUPTI/lib64', TOOLKIT + '/lib64', TOOLKIT + '/lib']
    found = [place for place in places if glob.glob(place + '/libcupti.so')]
    if not found:
        raise RuntimeError('no libcupti.so in ' + ', '.join(places))
    path = os.path.join(ground.FOLDER, 'cupti_client.so')
    ground.call([os.environ.get('CC', 'cc'), '-std=gnu11', '-O2', '-shared', '-fPIC', *include,
                 *(word for one in includes for word in ('-isystem', one)), '-o', path,
                 os.path.join(FOLDER, 'cupti_client.c'), '-L' + found[0], '-lcupti',
                 '-Wl,-rpath,' + found[0]], None, 60)
    return path


def read(text):
    """[(kind, function, count)], as the client writes it."""
    rows = (line.split() for line in text.splitlines())
    return [(kind, function, int(count)) for kind, function, count in rows]


def judge(rows, names):
    """What is wrong with @rows, where @names are noted: a list of texts, empty if nothing is."""
    wrong = []
    if not any(kind != 'lost' and count for kind, _, count in rows):
        wrong.append('nothing was recorded')
    for kind, function, count in rows:
        if kind == 'lost':
            if count:
                wrong.append(f'{count} records were lost')
        elif function == NOBODY:
            wrong.append(f'{count} times a {kind} that no known function caused')
        elif function not in names:
            wrong.append(f'{count} times a {kind} by {function}, which is not noted')
    return wrong


def summary(rows):
    """In words, for a table."""
    totals = {}
    for kind, _, count in rows:
        totals[kind] = totals.get(kind, 0) + count
    functions = sorted({function for kind, function, count in rows if count and kind != 'lost'})
    said = ', '.join(f'{count} {kind}' for kind, count in totals.items() if kind != 'lost')
    return f'{said} by {" ".join(functions)}'
