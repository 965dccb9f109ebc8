#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stacks -- what keeping the calls that led to an allocation costs

    stacks.py --shim FILE --deep FILE [--driver FILE] [--pairs N]

A pair of calls ten and thirty frames deep, with every setting of STREAMPOOL_STACK, on the
simulated driver or on the real one: a Markdown table of nanoseconds.
"""

import argparse
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))

import shimrun  # noqa: E402

SETTINGS = ("off", "native,4", "native", "native,64", "python", "both")
DEPTHS = (10, 30)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--shim", required=True)
    parser.add_argument("--deep", required=True, help="the program")
    parser.add_argument("--driver", help="libcuda.so.1 to run on, instead of the system's")
    parser.add_argument("--pairs", default="200000")
    options = parser.parse_args()
    print("| STREAMPOOL_STACK | frames deep | cuMemAlloc, ns a pair | cuMemAllocAsync |")
    print("|---|---:|---:|---:|")
    for depth in DEPTHS:
        for setting in SETTINGS:
            run = shimrun.run([options.deep, str(depth), options.pairs], options.shim, "pool",
                              options.driver, {"STREAMPOOL_STACK": setting, "STREAMPOOL_REPORT": "none"})  # fmt: skip
            if run.status:
                sys.exit(f"{setting}: ended with {run.status}: {run.err}")
            sync, later = run.out.split()
            print(f"| {setting} | {depth} | {sync} | {later} |", flush=True)


if __name__ == "__main__":
    main()
