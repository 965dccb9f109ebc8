#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Find CUDA -- which folder holds the driver's headers

Meson asks this before anything is compiled. A folder counts when it holds both
cuda.h and cudaTypedefs.h: some distributions ship the first without the second.
An explicit --include is taken or refused, never replaced by something else.

Prints two lines, the folder and CUDA_VERSION as major.minor; or, on the error
output, what was looked at and what to do, and exits with 1.
"""

import argparse
import glob
import os
import re
import shutil
import site
import subprocess
import sys

NEEDED = ("cuda.h", "cudaTypedefs.h")
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

HELP = """\
The CUDA driver headers (cuda.h and cudaTypedefs.h) were not found.
Looked in: {looked}.
Do one of these, then configure again:
  scripts/setup                                      fetches them into .cuda-headers/
  pip install nvidia-cuda-runtime-cu12               for this user or virtual environment
  meson setup BUILD -Dcuda-include=/path/to/include  if they are somewhere else"""


def packages():
    """The folders pip and conda install into, of this python and of the one on PATH."""
    found = list(sys.path)
    found += site.getsitepackages() if hasattr(site, "getsitepackages") else []
    found.append(site.getusersitepackages())
    for name in ("python3", "python"):
        other = shutil.which(name)
        if not other or os.path.realpath(other) == os.path.realpath(sys.executable):
            continue
        code = "import sys; print('\\n'.join(sys.path))"
        try:
            answer = subprocess.run([other, "-c", code], capture_output=True, text=True, timeout=20)
            found += answer.stdout.split("\n")
        except (OSError, subprocess.TimeoutExpired):
            pass
    return [folder for folder in dict.fromkeys(found) if folder and os.path.isdir(folder)]


def candidates():
    """Folders to try, best first, each with the reason it is tried."""
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield os.path.join(os.environ[variable], "include"), "$" + variable
    yield "/usr/local/cuda/include", "/usr/local/cuda"
    nvcc = shutil.which("nvcc")
    if nvcc:
        home = os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))
        yield os.path.join(home, "include"), "nvcc on PATH"
    if os.environ.get("CONDA_PREFIX"):
        prefix = os.environ["CONDA_PREFIX"]
        for folder in ["include"] + sorted(glob.glob(prefix + "/targets/*/include")):
            yield os.path.join(prefix, folder), "$CONDA_PREFIX"
    yield os.path.join(ROOT, ".cuda-headers", "include"), ".cuda-headers"
    for folder in packages():
        for include in sorted(glob.glob(folder + "/nvidia/*/include"), reverse=True):
            yield include, "pip package"
    yield "/usr/include", "/usr/include"


def holds_headers(folder):
    return all(os.path.isfile(os.path.join(folder, name)) for name in NEEDED)


def version(folder):
    """CUDA_VERSION of the headers: 12090 is printed as 12.9."""
    with open(os.path.join(folder, "cuda.h"), encoding="utf-8", errors="replace") as header:
        match = re.search(r"^\s*#define\s+CUDA_VERSION\s+(\d+)", header.read(), re.M)
    if not match:
        return "unknown"
    number = int(match.group(1))
    return f"{number // 1000}.{number % 1000 // 10}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--include", default="", help="take this folder or fail")
    wanted = parser.parse_args().include

    if wanted:
        if not holds_headers(wanted):
            print(f"-Dcuda-include={wanted}: no cuda.h and cudaTypedefs.h there.", file=sys.stderr)
            return 1
        folder = os.path.abspath(wanted)
        print(folder, version(folder), sep="\n")
        return 0

    reasons = []
    for folder, reason in candidates():
        if holds_headers(folder):
            print(os.path.normpath(folder), version(folder), sep="\n")
            return 0
        if reason not in reasons:
            reasons.append(reason)
    for missing in ("$CUDA_HOME", "nvcc on PATH", "pip package"):
        if missing not in reasons:
            reasons.append(missing + " (none)")
    print(HELP.format(looked=", ".join(reasons)), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
