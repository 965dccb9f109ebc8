#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check called -- is there a test of each function that has a handler?

    check_called.py ROOT

A test that calls it by its name, or the handler by its own, in any version: that every way
leads to a handler is tested by tests/e2e/routes for all at once, and says nothing of what
it does.
"""

import os
import re
import sys

import check_submissions
import source_tree

FOLDERS = ("tests/conformance/", "tests/e2e/apps/", "tests/examples/", "tests/gpu/", "tests/shim/")
# The look-up of everything, for the programs above.
LIST = "tests/conformance/cu.def"
CALLED = re.compile(r"(?<!sp_driver\.)\b(?:sp_on_cu|cu\.|cu)([A-Z]\w*?)(?:_v\d+)?(?:_pt[sd][sz])?\b")


def called(text):
    """The functions that are named outside of comments and strings, without version and variant."""
    code = re.sub(r'/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', " ", text, flags=re.S)
    return {"cu" + name for name in CALLED.findall(code)}


def checks(table, texts):
    """`table`: entry_points.def; `texts`: of the tests"""
    seen = set().union(*map(called, texts))
    for name in sorted({row[0] for row in check_submissions.rows(table)["HOOK"]} - seen):
        yield f"{name} has a handler, and no test that calls it"


def main():
    root = sys.argv[1]
    paths = [p for p in source_tree.files(root) if p.startswith(FOLDERS) and p.endswith((".c", ".h")) and p != LIST]
    table = check_submissions.read(root, "shim", "driver", "entry_points.def")
    found = list(checks(table, [check_submissions.read(root, path) for path in paths]))
    for line in found:
        print(line)
    if not found:
        print(f"each is called in one of {len(paths)} files")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
