#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Symbols -- a CPU-only pool needs no driver, no thread, no clock and no output

    symbols.py LIBRARY

Exits 77 where there is no nm.
"""

import re
import shutil
import subprocess
import sys

ALLOWED = re.compile(
    r"__assert_fail|abort|calloc|free|memcmp|memcpy|memmove|memset|strlen"
    r"|__(memcpy|memmove|memset)_chk|__stack_chk_fail|__cxa_finalize|__gmon_start__|_ITM_\w+"
    r"|__(asan|ubsan|tsan|sanitizer|gcov)_\w+|__gcov\w*|_dl_\w+|__tls_get_addr"
)


def main(library):
    if not shutil.which("nm"):
        print("symbols: no nm here")
        return 77
    listing = subprocess.run(
        ["nm", "-D", "-u", library], capture_output=True, text=True, check=True
    ).stdout
    names = [line.split()[-1].split("@")[0] for line in listing.splitlines() if line.strip()]
    strange = [name for name in names if not ALLOWED.fullmatch(name)]
    for name in strange:
        print(f"symbols: {library} needs {name}")
    if not names:
        print("symbols: nm says nothing")
        return 1
    return 1 if strange else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
