#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Update README -- the blocks of Markdown that come from the code

    scripts/update_readme.py [--check] [--tables PROGRAM] [PAGE]...

If no page is named, these are README.md and shim/driver/README.md. A block
stands between <!-- begin NAME --> and <!-- end NAME -->; `sp_tables NAME` prints
what belongs there, from the same lists that the shim is compiled from. With
--check nothing is written, and a block that differs is an error. So is a page
without any.
"""

import argparse
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGES = ("README.md", "shim/driver/README.md")
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


def update(page, tables, check):
    """Return: is it as it should be now?"""
    with open(page, encoding="utf-8") as source:
        text = source.read()
    if not BLOCK.search(text):
        print(f"{page}: no block to fill")
        return False
    old = stale(text, tables)
    if not old:
        return True
    if check:
        print(f"{page}: out of date: {', '.join(old)}; run scripts/update_readme.py")
        return False
    with open(page, "w", encoding="utf-8") as target:
        target.write(filled(text, tables))
    print(f"{page}: updated: {', '.join(old)}")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--tables", default=os.path.join(ROOT, "build", "shim", "sp_tables"))
    parser.add_argument("pages", nargs="*", default=[os.path.join(ROOT, page) for page in PAGES])
    options = parser.parse_args()

    tables = lambda name: table(options.tables, name)
    good = [update(page, tables, options.check) for page in options.pages]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
