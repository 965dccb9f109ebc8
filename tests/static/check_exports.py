#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check exports -- what the shim shows to a process, and needs from it

    check_exports.py SHIM ENTRY-NAMES HEADER

SHIM is the library, ENTRY-NAMES the program that prints the rows of
entry_points.def that become exports, HEADER is streampool.h with the control
functions. Any other name would take the place of the program's own.

A library that is preloaded into every process of a tree must also load in every
process: it needs nothing but the C library, and of that nothing newer than 2.28.
"""

import re
import subprocess
import sys

# Besides the entry points and the control functions: the look-up, and the mark by
# which a second copy of the library knows that there is a first; and what NVTX calls.
OWN = {"dlsym", "sp_first_copy", "InitializeInjectionNvtx2"}
MAY_NEED = re.compile(r"^(libc|libdl|libpthread|ld-linux[\w-]*)\.so\.\d+$")
NEWEST_GLIBC = (2, 28)


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def expected(entry_names, header):
    names = set(output(entry_names).split())
    with open(header, encoding="utf-8") as source:
        text = re.sub(r"/\*.*?\*/", "", source.read(), flags=re.S)
    return names | set(re.findall(r"\b(streampool_\w+)\s*\(", text)) | OWN


def exported(shim):
    return {line.split()[-1].partition("@")[0] for line in output("nm", "-D", "--defined-only", shim).splitlines()}


def check_names(have, want):
    for name in sorted(have - want):
        yield f"exported, but in no list: {name}"
    for name in sorted(want - have):
        yield f"in a list, but not exported: {name}"


def check_versions(symbols):
    """`symbols` is what `nm -D` prints."""
    for line in symbols.splitlines():
        match = re.search(r"(\S+)@+GLIBC_(\w[\w.]*)", line)
        if not match:
            continue
        name, version = match.groups()
        if version == "PRIVATE" or tuple(map(int, version.split(".")[:2])) > NEWEST_GLIBC:
            yield f"{name} needs GLIBC_{version}; {'.'.join(map(str, NEWEST_GLIBC))} is the newest allowed"


def check_needed(dynamic):
    """`dynamic` is what `readelf -d` prints."""
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic)
    if "libc.so.6" not in needed:
        yield "no NEEDED entry for libc.so.6: was this read at all?"
    for name in needed:
        if not MAY_NEED.match(name):
            yield f"needs {name}: a process without it would not start"


def checks(shim, entry_names, header):
    yield from check_names(exported(shim), expected(entry_names, header))
    yield from check_versions(output("nm", "-D", shim))
    yield from check_needed(output("readelf", "-d", "-W", shim))


def main():
    violations = list(checks(*sys.argv[1:4]))
    print("\n".join(violations) if violations else "exactly the listed names are exported")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
