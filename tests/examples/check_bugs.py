#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check bugs -- has each program of bugs/ the report that it says it must have?

    check_bugs.py --shim FILE --built FOLDER [--driver FILE] [NAME...]

A program says in its head what is to be found, and no more may be found:

    Expect: double_free site=second allocation=made freed_at=first
    Expect: leak memory=device count=3 site=made
    Expect: out_of_bounds site=copy allocation=made access=write outside=1000
    Expect: argument_after_free site=late allocation=made freed_at=freed number=1 kernel=fill
    Expect: double_free site=third freed_at=second allocation=again reused=made reused_freed=first
    Expect: race site=copy allocation=made access=write earlier=set behind=write
    Bare: dies
    Settings: STREAMPOOL_POISON=free
    Also: STREAMPOOL_MODE=observe
    Prints: read 0xdfdfdfdf

The name of a place stands for the line that ends in the comment "here: NAME". Where
a place of C is, binutils say by its offset, not the report; of Python the report has
the line. "Bare": how it ends on the real driver without the shim, if not with 0; a signal
("dies"), or a status of its own, where what it shows takes the shim ("fails"). "Settings" are
the program's environment; it is run once more for each "Also", with what that has besides, and
the same is expected. Each line of "Prints" is one of what it prints.
"""

import argparse
import glob
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))

import shimrun  # noqa: E402

BUGS = os.path.join(HERE, "bugs")
PLACES = ("site", "allocation", "freed_at", "earlier", "reused", "reused_freed")


class Program:
    def __init__(self, path, built, also=""):
        self.file = os.path.basename(path)
        self.name = f"{self.file} {also}".rstrip()
        self.path = path
        self.also = also
        with open(path, encoding="utf-8") as source:
            self.lines = source.read().splitlines()
        self.command = [sys.executable, path] if path.endswith(".py") else [
            os.path.join(built, "bug-" + self.file.removesuffix(".c"))]  # fmt: skip

    def line(self, name):
        """Of the place that is called so."""
        found = [i for i, line in enumerate(self.lines, 1) if re.search(rf"here: {name}\b", line)]
        if len(found) != 1:
            raise SystemExit(f"{self.file}: {len(found)} lines are called {name}")
        return found[0]

    def told(self, word):
        """What stands behind @word in the head, for each line that has it."""
        found = (re.match(rf"[ */#]*{word}: (.*)", line) for line in self.lines)
        return [match[1].strip() for match in found if match]

    def ends_well_bare(self):
        return not self.told("Bare")

    def settings(self):
        told = [*self.told("Settings"), self.also]
        return dict(pair.split("=", 1) for text in told for pair in text.split())

    def mode(self):
        return self.settings().get("STREAMPOOL_MODE", "pool")

    def expected(self):
        """Each as a dictionary; those of places are lines."""
        for text in self.lines:
            match = re.match(r"[ */]*Expect: (\w+)(.*)", text)
            if not match:
                continue
            fields = dict(field.split("=") for field in match[2].split())
            for name in set(fields) & set(PLACES):
                fields[name] = self.line(fields[name])
            for name in set(fields) & {"count", "outside", "beyond", "number"}:
                fields[name] = int(fields[name])
            yield {"kind": match[1], **fields}


def all_programs(built):
    paths = glob.glob(os.path.join(BUGS, "*.c")) + glob.glob(os.path.join(BUGS, "*.py"))
    for path in sorted(paths):
        program = Program(path, built)
        yield program
        yield from (Program(path, built, also) for also in program.told("Also"))


def line_of(program, site):
    """The line of the program that a place of the report is in."""
    if site is None:
        return None
    for frame in site["python"]:
        if os.path.abspath(frame["file"]) == program.path:
            return frame["line"]
    for frame in (site, *site["native"]):
        if not frame["path"] or os.path.basename(frame["path"]) != os.path.basename(program.command[0]):
            continue
        told = subprocess.run(["addr2line", "-e", frame["path"], frame["offset"]],
                              stdout=subprocess.PIPE, check=True, text=True).stdout  # fmt: skip
        match = re.match(rf".*{re.escape(program.file)}:(\d+)", told)
        if match:
            return int(match[1])
    return None


def earlier(program, order):
    """What it is not behind."""
    if not order:
        return {}
    return {"earlier": line_of(program, order["earlier"]["site"]), "behind": order["earlier"]["kind"]}


def reused(program, other):
    """Who else has had the address."""
    if not other:
        return {}
    return {"reused": line_of(program, other["site"]), "reused_freed": line_of(program, other["freed_at"])}


def found(program, report):
    """What the report has, in the words of Expect."""
    for row in report["findings"]:
        block = row["allocation"]
        yield {
            "kind": row["kind"],
            "site": line_of(program, row["site"]),
            "allocation": line_of(program, block["site"]) if block else None,
            "freed_at": line_of(program, row["freed_at"]),
            **{name: row["use"][name] for name in ("access", "outside") if row["use"] and name in row["use"]},
            **reused(program, row["reused"]),
            **(row["overrun"] or {}),
            **(row["argument"] or {}),
            **earlier(program, row["order"]),
        }
    for row in report["leaks"]["places"]:
        yield {
            "kind": "leak",
            "memory": row["kind"],
            "count": row["count"],
            "site": line_of(program, row["site"]),
        }


def is_as(expected, seen):
    """Places that are not expected must not be there either."""
    return all(seen.get(name) == expected.get(name) for name in {*expected, *seen})


def problems(program, options):
    run = shimrun.run(program.command, options.shim, program.mode(), options.driver,
                      {"STREAMPOOL_STACK": "both", **program.settings()})  # fmt: skip
    if run.status or not run.report:
        yield f"ended with {run.status}: {run.err.strip()[-300:]}"
        return
    seen = list(found(program, run.report))
    for expected in program.expected():
        match = next((each for each in seen if is_as(expected, each)), None)
        if match is None:
            yield f"not found: {expected}"
        else:
            seen.remove(match)
    printed = run.out.splitlines()
    yield from (f"not printed: {text}" for text in program.told("Prints") if text not in printed)
    yield from (f"found, and not expected: {each}" for each in seen)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--shim", required=True)
    parser.add_argument("--built", required=True, help="folder of the programs")
    parser.add_argument("--driver", help="libcuda.so.1 to run on, instead of the system's")
    parser.add_argument("names", nargs="*", help="of programs; all if there is none")
    options = parser.parse_args()
    failed = 0
    for program in all_programs(options.built):
        if options.names and program.file not in options.names:
            continue
        wrong = list(problems(program, options))
        failed += bool(wrong)
        print(f"{'FAILED' if wrong else 'ok    '} {program.name}")
        for text in wrong:
            print(f"       {text}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
