#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check format -- the C files look as .clang-format says

    check_format.py ROOT

Other major versions of clang-format lay out the same settings differently, so
any but 14 counts as absent, and the test as skipped. Tables (.def) are aligned
by hand.
"""

import re
import shutil
import subprocess
import sys

import source_tree

MAJOR = "14"
SKIP = 77


def formatter():
    for name in ("clang-format-" + MAJOR, "clang-format"):
        if shutil.which(name):
            answer = subprocess.run([name, "--version"], capture_output=True, text=True, check=True)
            if re.search(rf"version {MAJOR}\.", answer.stdout):
                return name
    return None


def checks(root, program):
    paths = [path for path in source_tree.files(root) if path.endswith((".c", ".h"))]
    answer = subprocess.run(
        [program, "--dry-run", "--Werror", "--ferror-limit=1", *paths],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    complaints = [line for line in answer.stderr.splitlines() if "error:" in line]
    if answer.returncode and not complaints:
        complaints = [answer.stderr]
    yield from complaints


def main():
    program = formatter()
    if not program:
        print(f"clang-format {MAJOR} is not here")
        return SKIP
    violations = list(checks(sys.argv[1], program))
    print("\n".join(violations) if violations else "formatted")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
