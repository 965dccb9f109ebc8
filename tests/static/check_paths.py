#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check paths -- nothing in the tree is true on one machine only

    check_paths.py ROOT

A path below somebody's home, or below a folder that only one machine has, works
for its author and for nobody else. Every text file of the tree is read, except
tables of measured data (.tsv, .txt, .ptx), which quote what a machine said.
"""

import re
import sys

import source_tree

PRIVATE = re.compile(r"((?<![\w.$}])|(?<=-[IL]))/(home|root|work|Users|mnt|media)/[\w.]")
DATA = (".tsv", ".txt", ".ptx", ".bin")


def checks(root):
    for path in source_tree.files(root):
        if path.endswith(DATA):
            continue
        for number, line in enumerate(source_tree.lines(root, path), 1):
            match = PRIVATE.search(line)
            if match:
                yield f"{path}:{number}: {match.group(0)}... is a path of one machine"


def main():
    violations = list(checks(sys.argv[1]))
    print("\n".join(violations) if violations else "no path of one machine")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
