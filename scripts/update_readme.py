#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Update README -- the blocks of README.md that come from the code

    scripts/update_readme.py [--check] [--tables PROGRAM] [README]

A block stands between <!-- begin NAME --> and <!-- end NAME -->; `sp_tables
NAME` prints what belongs there, from the same lists that the shim is compiled
from. With --check nothing is written, and a block that differs is an error.
"""

import argparse
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BLOCK = re.compile(r"(<!-- begin (\w+) -->\n)(.*?)(<!-- end \2 -->)", re.S)


def table(program, name):
    answer = subprocess.run([program, name], capture_output=True, text=True, check=False)
    if answer.returncode or not answer.stdout:
        raise SystemExit(f"{program} {name}: no such table")
    return "\n" + answer.stdout.rstrip("\n") + "\n\n"


def filled(text, tables):
    """`text` with each block replaced by what `tables(name)` returns."""
    return BLOCK.sub(lambda match: match[1] + tables(match[2]) + match[4], text)


def stale(text, tables):
    """The names of the blocks that are out of date."""
    return [match[2] for match in BLOCK.finditer(text) if match[3] != tables(match[2])]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--tables", default=os.path.join(ROOT, "build", "shim", "sp_tables"))
    parser.add_argument("readme", nargs="?", default=os.path.join(ROOT, "README.md"))
    options = parser.parse_args()

    with open(options.readme, encoding="utf-8") as source:
        text = source.read()
    if not BLOCK.search(text):
        print(f"{options.readme}: no block to fill")
        return 1
    tables = lambda name: table(options.tables, name)
    old = stale(text, tables)
    if options.check:
        print(f"out of date: {', '.join(old)}; run scripts/update_readme.py" if old else "up to date")
        return 1 if old else 0
    if old:
        with open(options.readme, "w", encoding="utf-8") as target:
            target.write(filled(text, tables))
        print(f"updated: {', '.join(old)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
