#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Count results -- how many tests passed, failed and were skipped

Reads the log of each `meson test` run that is named, as LABEL=BUILD-FOLDER, and
what scripts/test checked without Meson, as LABEL:pass, :fail or :skip. A Criterion
program counts as as many tests as it says it ran; any other program as one. A
program that ended badly fails at least once, whatever it printed.

The last line is `N passed, N failed`, with `, N skipped` when there are any.
Exits with 1 if a test failed, or if none ran.
"""

import json
import re
import sys

# Criterion's closing line. A test that crashed is among the failing ones too.
SYNTHESIS = re.compile(r"Synthesis: Tested: \d+ \| Passing: (\d+) \| Failing: (\d+)")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
SKIPPED = ("SKIP", "IGNORED")
VERDICTS = {"pass": [1, 0, 0], "fail": [0, 1, 0], "skip": [0, 0, 1]}


def count_program(result, output):
    """(passed, failed, skipped) of one program that Meson ran."""
    if result in SKIPPED:
        return 0, 0, 1
    if result == "EXPECTEDFAIL":
        return 1, 0, 0
    passed = failed = 0
    found = SYNTHESIS.findall(COLOUR.sub("", output))
    for passing, failing in found:
        passed += int(passing)
        failed += int(failing)
    if result == "OK":
        return (passed, failed, 0) if found else (1, 0, 0)
    return passed, max(failed, 1), 0


def count_log(path):
    """Totals of one testlog.json, and the names of the programs that failed."""
    totals, broken = [0, 0, 0], []
    with open(path, encoding="utf-8", errors="replace") as log:
        for line in log:
            test = json.loads(line)
            output = test.get("stdout", "") + test.get("stderr", "")
            counts = count_program(test["result"], output)
            totals = [a + b for a, b in zip(totals, counts)]
            if counts[1]:
                broken.append(f"{test['name']} ({test['result']})")
    return totals, broken


def main():
    total = [0, 0, 0]
    for argument in sys.argv[1:]:
        label, _, verdict = argument.rpartition(":")
        if verdict in VERDICTS:
            counts, broken = VERDICTS[verdict], [label] if verdict == "fail" else []
        else:
            label, _, folder = argument.partition("=")
            try:
                counts, broken = count_log(folder + "/meson-logs/testlog.json")
            except (OSError, ValueError, KeyError) as error:
                counts, broken = [0, 1, 0], [f"no readable log: {error}"]
        print(f"{label:32} {counts[0]:5} passed {counts[1]:5} failed {counts[2]:5} skipped")
        for name in broken:
            print(f"    FAILED {name}")
        total = [a + b for a, b in zip(total, counts)]

    closing = f"{total[0]} passed, {total[1]} failed"
    print(closing + (f", {total[2]} skipped" if total[2] else ""))
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main())
