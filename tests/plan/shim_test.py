#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shim test -- a recorded program gets through under the shim with what was planned for it

    shim_test.py ROOT PROGRAM DRIVER SHIM CLIENT TRACE...

The plan is made by dry run; here the calls are made once more, on the simulated driver, which gets
on by itself or not before somebody waits. With the room that the plan leaves for a run's own pace
every allocation is served, and the process has held no more. With less than what lives at once it
is not: the limit is in force.
"""

import json
import os
import subprocess
import sys
import unittest

ROOT, PROGRAM, DRIVER, SHIM, CLIENT = sys.argv[1:6]
TRACES = sys.argv[6:]
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import shimrun

MIB = 1 << 20

# Nanoseconds that the device works after each call: it keeps up, or never gets on.
PACES = ("20000", "0")

# More than the simulated driver's usual 4G.
MEMORY = "144G"


def plan(trace):
    command = [os.path.join(ROOT, "scripts", "streampool"), "plan", "--json", "--program", PROGRAM, trace]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def run(trace, pace, settings):
    command = [CLIENT, "--advance", pace, trace]
    return shimrun.run(command, SHIM, "pool", DRIVER, {"SIM_MEMORY": MEMORY, **settings})


def held(text):
    """The most that the process has held of the device, as the client has seen it."""
    return max(int(line[5:]) for line in text.splitlines() if line.startswith("high "))


class Served(unittest.TestCase):
    def test_a_run_gets_through_with_its_plan(self):
        for trace in TRACES:
            settings = plan(trace)["room"]
            limit = int(settings["STREAMPOOL_LIMIT"].rstrip("M")) * MIB
            for pace in PACES:
                with self.subTest(trace=os.path.basename(trace), pace=pace, **settings):
                    done = run(trace, pace, settings)
                    self.assertEqual(done.status, 0, done.err[-2000:])
                    self.assertLessEqual(held(done.out), limit)

    def test_the_limit_is_in_force(self):
        for trace in TRACES[:1]:
            least = plan(trace)["run"]["live_peak"] // MIB - 2
            done = run(trace, PACES[0], {"STREAMPOOL_LIMIT": f"{least}M"})
            self.assertNotEqual(done.status, 0)
            self.assertRegex(done.err, r"MemAlloc.* = 2\b")  # CUDA_ERROR_OUT_OF_MEMORY


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
