#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check submissions -- is every call known that may give a stream work?

    check_submissions.py ROOT INCLUDE

INCLUDE is a folder with cuda.h and cudaTypedefs.h. Each function there has to be
among those that submit (shim/driver/submissions.def, or a handler that is named
below), or in shim/driver/other_calls.def with the class that says why it does not.
A kernel on a stream that nobody noticed would use memory that has a new owner,
and no other test would see it.

cuda.h is the list of functions; cudaTypedefs.h has each of their versions, and
a row has to be there for every version of a function that submits.

What shim/route/*.def say of a function by its symbol has to be of one with a hook: a
submission that is misspelt in record.def is recorded as any other, and compiles.
"""

import os
import re
import sys

# Submit, too, and have a handler: route/on_launch.c. Of most the stream is in a structure.
HANDLED = {"cuLaunchKernelEx", "cuLaunchCooperativeKernelMultiDevice", "cuGraphLaunch"}
# Lists of shim/route, one macro a function: PREFIX_<symbol>.
TOLD = ("record.def", "uses.def", "arguments.def")
# What takes no stream and is in no class but this one is taken at its word.
PLAIN = "PLAIN"
STREAM = re.compile(r"\b(CUstream\s+\w+|CUlaunchConfig\b|CUDA_LAUNCH_PARAMS\w*)")
IMPLICIT = re.compile(r"cu(Memcpy|Memset|Launch)")


def read(*path):
    with open(os.path.join(*path), encoding="utf-8", errors="replace") as source:
        return source.read()


def base(symbol):
    """cuMemcpy2D_v2_ptds is a version, and a variant, of cuMemcpy2D."""
    return re.sub(r"_v\d+$", "", re.sub(r"_pt[sd][sz]$", "", symbol))


def functions(text):
    """cuda.h: name without version and variant -> does any of them have a stream?"""
    found = {}
    for symbol, arguments in re.findall(r"\bCUresult\s+CUDAAPI\s+(cu[A-Z]\w*)\s*\(([^;]*?)\)\s*;", text):
        has_stream = bool(STREAM.search(arguments) or re.search(r"_pt[sd][sz]$", symbol))
        found[base(symbol)] = found.get(base(symbol), False) or has_stream
    return found


def typedefs(text):
    """cudaTypedefs.h: {(name, version, variant)}"""
    pattern = r"\bCUDAAPI\s*\*\s*PFN_(cu[A-Z]\w*?)_v(\d+)(_pt[sd][sz])?\s*\)"
    return {(name, int(since), suffix or "") for name, since, suffix in re.findall(pattern, text)}


def rows(text):
    """The rows of a list: kind -> {(name, version, variant)}"""
    found = {"HOOK": set(), "RETRY": set(), "SUBMIT": set(), "CALL": set()}
    pattern = r"^SP_(HOOK|RETRY|SUBMIT|CALL|SUBMIT_PAIR|SUBMIT_DEFAULT)\((\w+),\s*\w+,\s*(\d+),\s*(\w*)"
    for kind, name, since, fourth in re.findall(pattern, text, re.M):
        if kind == "SUBMIT_PAIR":
            found["SUBMIT"] |= {(name, int(since), ""), (name, int(fourth), "_ptsz")}
        elif kind == "SUBMIT_DEFAULT":
            found["SUBMIT"] |= {(name, int(since), ""), (name, 7000, "_ptds")}
        else:
            found[kind].add((name, int(since), fourth))
    return found


def others(text):
    return dict(re.findall(r"^SP_OTHER\((\w+),\s*(\w+)\)", text, re.M))


def check_functions(found, submitting, other):
    for name, has_stream in sorted(found.items()):
        if name in submitting:
            continue
        what = "takes a stream" if has_stream else "is a copy, a set or a launch" if IMPLICIT.match(name) else ""
        if name not in other:
            yield f"{name} {what or 'takes no stream, it seems,'} and is in no class"
        elif what and other[name] == PLAIN:
            yield f"{name} {what} and is listed as {PLAIN}"


def check_versions(defined, listed, submitting):
    for row in sorted(defined - listed):
        if row[0] in submitting:
            yield f"{row[0]} of CUDA {row[1]}{row[2]} has no row"


def check_rows(defined, listed, newest):
    """What the headers would have if they had it: the reverse of check_versions."""
    for row in sorted(listed - defined):
        if row[1] <= newest:
            yield f"the row {row[0]} of CUDA {row[1]}{row[2]} is of no function of the headers"


def check_lists(submitting, other, names):
    for name in sorted(submitting & set(other)):
        yield f"{name} submits and does not"
    if names != sorted(set(names)):
        yield "other_calls.def is not sorted by name"


def check_told(symbols, told):
    """`told`: name of a list -> its text"""
    for name, text in told.items():
        for symbol in re.findall(r"^#define (?:RECORD|USES|ARGUMENTS)_(\w+)", text, re.M):
            if symbol not in symbols:
                yield f"{name} has {symbol}, which is no function with a hook"


def hooked(*texts):
    """The symbols of all rows that are exported, without the variant."""
    pattern = r"^SP_(?:HOOK|RETRY|SUBMIT|SUBMIT_PAIR|SUBMIT_DEFAULT)\(\w+,\s*(\w+)"
    return {symbol for text in texts for symbol in re.findall(pattern, text, re.M)}


def checks(*texts):
    """`texts`: entry_points.def, submissions.def, other_calls.def, cuda.h, cudaTypedefs.h"""
    table, submissions, other_calls, cuda, cuda_typedefs = (
        re.sub(r"/\*.*?\*/", " ", text, flags=re.S) for text in texts
    )
    lists = rows(table)
    submitted = rows(submissions)["SUBMIT"]
    handled = {row for row in lists["HOOK"] if row[0] in HANDLED}
    listed = submitted | handled
    submitting = {row[0] for row in submitted} | HANDLED
    other = others(other_calls)
    names = re.findall(r"^SP_OTHER\((\w+)", other_calls, re.M)
    newest = int(re.search(r"#define\s+CUDA_VERSION\s+(\d+)", cuda)[1])
    defined = typedefs(cuda_typedefs)

    yield from check_functions(functions(cuda), submitting, other)
    yield from check_versions(defined, listed, submitting)
    yield from check_rows(defined, listed, newest)
    yield from check_lists(submitting, other, names)


def main():
    root, include = sys.argv[1:3]
    driver = os.path.join(root, "shim", "driver")
    texts = [read(driver, name) for name in ("entry_points.def", "submissions.def", "other_calls.def")]
    texts += [read(include, name) for name in ("cuda.h", "cudaTypedefs.h")]
    found = list(checks(*texts))
    told = {name: read(root, "shim", "route", name) for name in TOLD}
    found += check_told(hooked(*texts[:2]), told)
    version = re.search(r"#define\s+CUDA_VERSION\s+(\d+)", texts[3])[1]
    count = len(functions(texts[3]))
    if count < 300:
        found.append(f"only {count} functions were found in cuda.h: was this read at all?")
    for line in found:
        print(f"CUDA {int(version) // 1000}.{int(version) % 1000 // 10}: {line}")
    if not found:
        print(f"{count} functions of CUDA {version}, all in a class")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
