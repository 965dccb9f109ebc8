# SPDX-License-Identifier: Apache-2.0
"""Check beside -- does the driver keep a stream's order while other threads give it work?

One thing it does not: a wait may be lost beside a launch of a graph. The shim keeps
its own waits apart from those (shim/stamp/graph_gate.h), and relies on the rest.
"""

from check_rows import trouble

KNOWN = ('wait', 'graph')  # the order and the act


def read(text):
    """(order, act) -> (how often it was tried, how often it was lost)"""
    found = {}
    for line in text.splitlines():
        order, act, _, laps, _, _, _, lost = line.split()
        found[order, act] = int(laps), int(lost)
    return found


def judge(found):
    """What nobody knew of the driver, and a remark on what is known."""
    lost = [f'{order} beside {act}: {lost} of {laps} lost'
            for (order, act), (laps, lost) in found.items() if lost and (order, act) != KNOWN]
    laps, waits = found.get(KNOWN, (0, 0))
    return lost, f'{len(found)} pairs; waits beside graph launches: {waits} of {laps} lost'


def rows(name, check):
    run = check.run([check.program(name, [check.source('beside.c')])], limit=60)
    failures = trouble(run, 'bare')
    found = {} if failures else read(run.out)
    lost, remark = judge(found)
    check.row(name, 'bare driver', failures + lost, remark)
