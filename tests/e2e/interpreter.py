#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Interpreter -- frames of C end where Python begins

    interpreter.py --driver FILE --shim FILE

What lies below an interpreter need not be a stack: greenlets copy parts of it away,
and an unwinder that goes on there ends the process.
"""

import argparse
import os
import sys
import unittest

import shimrun

OPTIONS = None
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "bugs", "leak.py")


def is_interpreters(frame):
    return os.path.basename(frame["path"] or "").startswith(("python", "libpython"))


class Interpreter(unittest.TestCase):
    def places(self, stack):
        run = shimrun.run([sys.executable, PROGRAM], OPTIONS.shim, "pool", OPTIONS.driver,
                          {"STREAMPOOL_STACK": stack})  # fmt: skip
        self.assertEqual(run.status, 0, run.err)
        places = run.report["leaks"]["places"]
        self.assertTrue(places)
        return [place["site"] for place in places]

    def test_no_frame_is_the_interpreters(self):
        for stack in ("native,32", "both,32"):
            for site in self.places(stack):
                self.assertFalse([frame for frame in site["native"] if is_interpreters(frame)])

    def test_what_the_interpreter_has_called_is_there(self):
        for site in self.places("native,32"):
            self.assertTrue(any("ffi" in frame["path"] or "ctypes" in frame["path"]
                                for frame in (site, *site["native"])))  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("driver", "shim"):
        parser.add_argument("--" + name, required=True)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
