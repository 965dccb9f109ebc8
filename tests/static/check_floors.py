#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check floors -- who may include, call and use what

    check_floors.py ROOT [BUILD]

Reads the sources below ROOT and, where BUILD is given, the symbols that the
objects there leave undefined. The second finds what the first cannot: a driver
function called by its name inside the shim links, to our own hook, and recurses.

Prints one line a violation and exits with 1; `checks()` is for the self-test.
"""

import glob
import os
import re
import subprocess
import sys

import source_tree

STANDARD = {
    "assert.h", "errno.h", "inttypes.h", "limits.h", "stdalign.h", "stdarg.h", "stdbool.h",
    "stddef.h", "stdint.h", "stdlib.h", "string.h",
}  # fmt: skip

# floor: the floors it may include besides itself. "cuda" is NVIDIA's headers,
# "system" is anything else of the C library and the kernel.
FLOORS = {
    "include/streampool": set(),
    "model": {"streampool"},
    "shim/base": {"streampool", "system"},
    "shim/driver": {"base", "cuda", "system"},
    "shim/stamp": {"base", "driver", "system"},
    "shim/track": {"streampool", "base", "driver", "stamp", "system"},
    "shim/report": {"streampool", "base", "driver", "track", "system"},
    "shim/route": {"streampool", "base", "driver", "stamp", "track", "report", "system"},
    "shim/entry": {"streampool", "base", "driver", "stamp", "track", "report", "route", "system"},
    "tools": {"streampool", "system"},
}

# The report is written when the driver may be gone: it may name the entry
# points, and must not reach the functions behind them.
REPORT_MAY_NAME = {"driver/entry_points.h", "driver/entry_points.def"}

# Every floor that knows the driver may count; what is counted is the report's.
COUNTING = "report/counters.h"
MAY_COUNT = {"shim/stamp", "shim/track"}

# snprintf() for dumps: into a buffer, never to a file.
MODEL_HEADERS = STANDARD | {"stdio.h"}

# The caller serialises all calls of a model but those of magazines. What their
# owners use without its lock is atomic: the states of blocks and the map of
# pages, the ends of streams, and the magazines. Nothing else has a reason to be.
MAY_BE_ATOMIC = {
    "model/area.h",
    "model/magazine.h",
    "model/record.h",
    "model/ripe.h",
    "model/subject.h",
}
MODEL_SYMBOLS = re.compile(
    r"^(spm_\w+|malloc|calloc|realloc|free|abort|qsort|bsearch"
    r"|mem(cpy|move|set|cmp|chr)|str(len|cmp|ncmp|chr|nlen)|v?snprintf"
    r"|__(mem\w+|v?snprintf)_chk|__stack_chk_fail|__assert_fail|_GLOBAL_OFFSET_TABLE_)$"
)
SANITIZER_SYMBOL = re.compile(r"^__(asan|ubsan|tsan|sanitizer|gcov|llvm_prof)")

# The look-up answers with the addresses of our own hooks.
MAY_NAME_HOOKS = "driver_lookup.c.o"

MAX_LINES = 600
MAY_BE_LIKELY = {"model/block.c", "shim/route/on_memory.c", "shim/track/ledger.c", "model/fit.c"}
MAY_READ_ENVIRONMENT = {"shim/base/config.c"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def floor_of(path):
    for floor in FLOORS:
        if path.startswith(floor + "/"):
            return floor
    return None


def cuda_header(name):
    return name.startswith(("cuda", "nv", "vector_types", "driver_types"))


def include_is_allowed(path, quote, name):
    floor = floor_of(path)
    allowed = FLOORS[floor]
    if quote == '"':
        folder = name.rpartition("/")[0]
        if floor in ("model", "tools"):
            return folder == ""
        if floor == "include/streampool" or not folder:
            return False
        if "shim/" + folder == floor:
            return True
        if name == COUNTING and floor in MAY_COUNT:
            return True
        if floor == "shim/report" and folder == "driver":
            return name in REPORT_MAY_NAME
        return folder in allowed
    if name.startswith("streampool/"):
        return floor == "include/streampool" or "streampool" in allowed
    if name == "uthash.h":
        return os.path.basename(path) == "table.h"
    if cuda_header(name):
        return "cuda" in allowed
    if floor == "model":
        return name in MODEL_HEADERS or (name == "stdatomic.h" and path in MAY_BE_ATOMIC)
    return name in STANDARD or "system" in allowed


def check_includes(root, path, lines):
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if match and not include_is_allowed(path, *match.groups()):
            yield f"{path}:{number}: {floor_of(path)} may not include {match.group(2)}"


def without_comments(lines):
    text = re.sub(r'"(\\.|[^"\\\n])*"', '""', "\n".join(lines))
    blank = lambda match: re.sub(r"[^\n]", " ", match.group(0))
    return re.sub(r"/\*.*?\*/|//[^\n]*", blank, text, flags=re.S).split("\n")


def check_words(root, path, lines):
    for number, line in enumerate(without_comments(lines), 1):
        if re.search(r"\b(secure_)?getenv\s*\(|\benviron\b", line):
            if path not in MAY_READ_ENVIRONMENT:
                yield f"{path}:{number}: only config.c reads the environment"
        if re.search(r"\b(un)?likely\s*\(|__builtin_expect", line, re.I):
            if path not in MAY_BE_LIKELY and not line.lstrip().startswith("#define"):
                yield f"{path}:{number}: branch hints are for the hot path only"


def check_shape(root, path, lines):
    count = len(lines) - (lines[-1] == "")
    if count > MAX_LINES:
        yield f"{path}: {count} lines, more than {MAX_LINES}"
    licence = "SPDX-License-Identifier: Apache-2.0"
    if path.endswith(source_tree.C_ENDINGS):
        if lines[0] != f"/* {licence} */":
            yield f"{path}:1: the first line is not /* {licence} */"
    elif f"# {licence}" not in lines[:2]:
        yield f"{path}:1: no '# {licence}' in the first two lines"


def undefined(objects):
    """(object, symbol) for each symbol that an object expects from elsewhere."""
    if not objects:
        return
    answer = subprocess.run(["nm", "-u", "-A", *objects], capture_output=True, text=True, check=True)
    for line in answer.stdout.splitlines():
        name, _, symbol = line.rpartition(" ")
        yield name.partition(":")[0], symbol.partition("@")[0]


def check_symbols(build):
    shim = sorted(glob.glob(build + "/shim/*streampool_shim*.p/*.o"))
    shim += sorted(glob.glob(build + "/shim/**/libshim_*.a.p/*.o", recursive=True))
    model = sorted(glob.glob(build + "/model/*.p/*.o"))
    if not shim or not model:
        yield f"{build}: no objects of the shim or of the model to read"
    for name, symbol in undefined(shim):
        if re.match(r"^cu[A-Z]", symbol) and not name.endswith("/" + MAY_NAME_HOOKS):
            yield f"{name}: calls {symbol} by name; that is our own hook, use sp_driver"
    for name, symbol in undefined(model):
        if not MODEL_SYMBOLS.match(symbol) and not SANITIZER_SYMBOL.match(symbol):
            yield f"{name}: the model may not use {symbol}"


def checks(root, build=None):
    for path in source_tree.files(root):
        if not source_tree.is_code(root, path):
            continue
        lines = source_tree.lines(root, path)
        yield from check_shape(root, path, lines)
        if path.endswith(source_tree.C_ENDINGS) and floor_of(path):
            yield from check_includes(root, path, lines)
            yield from check_words(root, path, lines)
    if build:
        yield from check_symbols(build)


def main():
    violations = list(checks(*sys.argv[1:3]))
    print("\n".join(violations) if violations else "every floor keeps to its rights")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
