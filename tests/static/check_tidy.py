#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check tidy -- clang-tidy finds nothing in the model and the shim

    check_tidy.py ROOT BUILD

Reads the compiler's command lines from BUILD/compile_commands.json; one process
a core. Skipped where clang-tidy is not installed.
"""

import concurrent.futures
import json
import os
import shutil
import subprocess
import sys

SKIP = 77

# gcc's own warning switches are unknown to clang, and that is no finding. The
# path analyser gets a seventh of its usual budget a function: with all of it the
# macros of uthash take a minute, and what it found was found early.
EXTRA = ["-Wno-unknown-warning-option"]
EXTRA += ["-Xclang", "-analyzer-config", "-Xclang", "max-nodes=30000"]


def sources(root, build):
    """The files of the model and the shim that this build compiles, each once."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as commands:
        entries = json.load(commands)
    paths = {os.path.normpath(os.path.join(entry["directory"], entry["file"])) for entry in entries}
    folders = tuple(os.path.join(os.path.abspath(root), name) + os.sep for name in ("model", "shim"))
    return sorted(path for path in paths if path.startswith(folders) and path.endswith(".c"))


def tidy(path, build):
    """What clang-tidy says about one file; nothing when it is content."""
    extra = ["--extra-arg=" + argument for argument in EXTRA]
    answer = subprocess.run(
        ["clang-tidy", "--quiet", "-p", build, *extra, path],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return answer.stdout if answer.returncode else ""


def checks(paths, build):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from filter(None, pool.map(lambda path: tidy(path, build), paths))


def main():
    if not shutil.which("clang-tidy"):
        print("clang-tidy is not here")
        return SKIP
    root, build = sys.argv[1:3]
    violations = list(checks(sources(root, build), build))
    print("\n".join(violations) if violations else "clang-tidy is content")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
