# SPDX-License-Identifier: Apache-2.0
"""Bench watch -- what finding mistakes costs, and what is found where there are none

Programs that make no mistake, so that whatever is found is false. compute-sanitizer is
measured beside the shim, in a process of its own that does fewer steps: under it they
take too long to be in turn with others.
"""

import os
import re
import shutil
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))

import bench_rows as rows  # noqa: E402
import bench_session as session  # noqa: E402
import shimrun  # noqa: E402

ANSWER = 45  # seconds; what takes longer says so in its cell
SHARE = 4  # of the steps that a workload's checksum takes


def found(reports):
    """In words: findings, and leaks that are counted as the program's; "nothing"."""
    words = []
    for report in reports:
        words += [f"{count} {kind}" for kind, count in shimrun.findings(report).items()]
        words += [f"{count} leaked, {kind}" for kind, (count, _) in shimrun.leaks(report).items()]
    return ", ".join(words) or ("nothing" if any(reports) else "no report")


def said(log):
    """The sanitizer's own totals."""
    errors = re.search(r"ERROR SUMMARY: (\d+) error", log)
    leaks = re.search(r"LEAK SUMMARY: (\d+) bytes leaked in (\d+) allocation", log)
    words = [f"{errors[1]} errors" if errors else "no summary"]
    if leaks:
        words.append(f"of these {leaks[2]} leaks")
    if "didn't terminate successfully" in log:
        words.append("did not end well")
    return ", ".join(words)


def sanitize(row, arguments, env, device, folder):
    """A column like those of Session.result()."""
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not os.path.exists(tool):
        raise session.Missing("no compute-sanitizer")
    log = os.path.join(folder, "sanitizer.log")
    process = session.Process(row.name, env, device,
                              [tool, "--tool", *arguments, "--log-file", log])  # fmt: skip
    steps = max(1, row.checked // SHARE)
    try:
        process.answer(ANSWER)
        process.tell("build", min(row.warm, SHARE), ANSWER)
        seconds = process.tell("run", steps, ANSWER)["seconds"]
    finally:
        process.end(ANSWER)
    with open(log, encoding="utf-8", errors="replace") as file:
        return {"rates": [steps / seconds], "found": said(file.read()), "trouble": None}


# the table


def factor(result, name):
    """How many times as long a step takes as bare, or None."""
    bare, mine = result["bare"]["rates"], result.get(name, {}).get("rates")
    if not mine or not bare:
        return None
    if len(mine) == len(bare):
        return statistics.median(b / m for b, m in zip(bare, mine))
    return statistics.median(bare) / statistics.median(mine)


def names():
    return [c.name for c in rows.WATCHING if c.shim] + list(rows.SANITIZERS)


def time_cell(result, name):
    seen = factor(result, name)
    if seen is None:
        return result.get(name, {}).get("trouble") or "n/a"
    goal = rows.WATCHING_GOALS.get(name)
    missed = " **missed**" if goal and seen > goal else ""
    return (f"{seen:.2f}" if seen < 10 else f"{seen:.0f}") + missed


def lines(results, cell):
    for name, result in results.items():
        yield [name] + [cell(result, column) for column in names()]


def time_lines(results):
    return lines(results, time_cell)


def found_lines(results):
    return lines(results, lambda result, name: result.get(name, {}).get("found", "n/a"))
