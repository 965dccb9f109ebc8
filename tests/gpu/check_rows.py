# SPDX-License-Identifier: Apache-2.0
"""Check rows -- what a row of scripts/gpu-check is made of: runs, reports, what is wrong"""

import json

import shimrun

# Where PyTorch's allocator gets its memory.
TORCH = {
    'its cache': {},
    'no cache': {'PYTORCH_NO_CUDA_MEMORY_CACHING': '1'},
    'cudaMallocAsync': {'PYTORCH_CUDA_ALLOC_CONF': 'backend:cudaMallocAsync'},
}


def compare(check, wanted, got, verbs, wanted_name, got_name):
    failures = []
    for name in sorted(set(wanted) | set(got)):
        a, b = wanted.get(name, 'no such case'), got.get(name, 'no such case')
        if a == b or 'skipped' in a or 'skipped' in b:
            continue
        if wanted_name == 'bare' and verbs.get(name) == 'differs':
            continue
        failures.append(f'{name}: {wanted_name} {a}, {got_name} {b}')
    return failures


def trouble(run, name):
    """Why a run is no run, as a list with at most one entry."""
    if run.died:
        return [f'{name} {run.died}: {run.err[-300:]}']
    if run.status != 0:
        return [f'{name} ended with {run.status}: {run.err[-300:]}']
    return []


def unplanted(*reports):
    """Findings of a program that planted none. Frameworks keep memory to the end on purpose."""
    found = [shimrun.findings(report) for report in reports]
    return [f'findings: {one}' for one in found if one]


def made(reports):
    """Kind -> allocations, of all processes together."""
    total = {}
    for report in reports:
        for kind, count in shimrun.made(report).items():
            total[kind] = total.get(kind, 0) + count
    return total


def found_text(report):
    words = [f'{count} {kind}' for kind, count in shimrun.findings(report).items()]
    words += [f'{count} leaked {kind}' for kind, (count, _) in shimrun.leaks(report).items()]
    return ', '.join(words) or 'no findings'


def speeds(bare, shim):
    return {'it/s bare': number(bare), 'it/s shim': number(shim)}


def number(value):
    return '' if value is None else f'{value:.3g}' if isinstance(value, float) else str(value)


def json_lines(text):
    """Workload name -> what it printed."""
    found = {}
    for line in text.splitlines():
        if line.startswith('{'):
            one = json.loads(line)
            found[one['name']] = one
    return found
