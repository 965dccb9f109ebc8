#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Twice -- the same program in two processes says the same

    twice.py PROGRAM [ARGUMENT...]

The processes differ in what they should not depend on: where their memory lies,
and what is in it. Exits with 1 if their output differs, or is none.
"""

import os
import subprocess
import sys


def run(arguments, **settings):
    environment = {**os.environ, **settings}
    done = subprocess.run(
        arguments, capture_output=True, text=True, check=False, env=environment
    )  # fmt: skip
    if done.returncode or not done.stdout:
        raise SystemExit(f"{arguments[0]} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def main():
    first = run(sys.argv[1:], MALLOC_PERTURB_="1", MALLOC_ARENA_TEST="1")
    second = run(sys.argv[1:], MALLOC_PERTURB_="254", MALLOC_TOP_PAD_="1000000", SHIFTED="x" * 5000)
    print(first, end="")
    if first != second:
        print(second, end="")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
