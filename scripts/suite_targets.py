#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Suite targets -- what Ninja has to make for the tests of these suites

    suite_targets.py BUILD SUITE...

A path of BUILD a line, from what Meson knows of its tests and targets. A build with a
sanitizer takes several times as long as one without, and runs a third of the tests: the
programs of the others need not be there. Exits with 1 if a suite has no test.
"""

import json
import os
import sys


def known(build, what):
    with open(os.path.join(build, "meson-info", f"intro-{what}.json"), encoding="utf-8") as file:
        return json.load(file)


def targets(build, suite):
    """The ids of what the tests of one suite depend on, and how many tests there are."""
    tests = [
        test
        for test in known(build, "tests")
        if suite in (name.rpartition(":")[2] for name in test["suite"])
    ]
    return {target for test in tests for target in test["depends"]}, len(tests)


def main():
    build, *suites = sys.argv[1:]
    wanted = set()
    for suite in suites:
        found, count = targets(build, suite)
        if not count:
            raise SystemExit(f"suite_targets: {build} has no test of the suite {suite}")
        wanted |= found
    for target in known(build, "targets"):
        if target["id"] in wanted:
            for path in target["filename"]:
                print(os.path.relpath(os.path.realpath(path), os.path.realpath(build)))


if __name__ == "__main__":
    main()
