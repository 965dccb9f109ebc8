#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GPU bench session test -- turns are in turn, and memory is whose it is"""

import os
import tempfile
import types
import unittest

import bench_session as session

# Instead of bench_workloads.py: a line in a file for each thing it was told.
STUB = """
import json, os, sys
name = os.environ["COLUMN"]
print("{}", flush=True)
for line in sys.stdin:
    verb, count = line.split()
    with open(os.environ["TOLD"], "a") as file:
        file.write(f"{name} {verb} {count}\\n")
    if verb == os.environ.get("FAIL_AT"):
        sys.exit("out of luck")
    print(json.dumps({"seconds": int(count) * float(os.environ["EACH"]), "checksum": "c"}), flush=True)
"""
ROW = types.SimpleNamespace(name="stub", warm=3, rehearsal=4, checked=2)


class FixedDevice:
    """Says what it was given, one value after the other, and the last one for ever."""

    def __init__(self, *values):
        self.values = list(values)

    def used(self):
        return self.values.pop(0) if len(self.values) > 1 else self.values[0]


class SessionTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        stub = os.path.join(self.folder.name, "stub.py")
        self.told = os.path.join(self.folder.name, "told")
        with open(stub, "w", encoding="ascii") as file:
            file.write(STUB)
        self.before, session.WORKLOADS = session.WORKLOADS, stub

    def tearDown(self):
        session.WORKLOADS = self.before
        self.folder.cleanup()

    def environment(self, column, **more):
        return {**os.environ, "COLUMN": column, "TOLD": self.told, "EACH": "0.05", **more}

    def session(self, columns, reps=2):
        said = []
        one = session.Session(ROW, columns, FixedDevice(None), reps, 0.5, said.append)
        one.run()
        with open(self.told, encoding="ascii") as file:
            return one.result(), file.read().splitlines(), said

    def test_columns_take_turns_and_another_one_begins_each_time(self):
        columns = {name: self.environment(name) for name in "abc"}
        result, told, _ = self.session(columns)
        self.assertEqual(told, [
            "a build 3", "b build 3", "c build 3",
            "a run 4", "b run 4", "c run 4",
            "a run 10", "b run 10", "c run 10",
            "b run 10", "c run 10", "a run 10",
            "a check 2", "b check 2", "c check 2",
        ])  # fmt: skip
        for name in "abc":
            self.assertEqual([round(rate, 6) for rate in result[name]["rates"]], [20, 20])
            self.assertEqual(result[name]["checksum"], "c")
            self.assertIsNone(result[name]["trouble"])

    def test_a_turn_has_as_many_steps_as_the_fastest_does_in_its_time(self):
        columns = {"a": self.environment("a", EACH="0.5"), "b": self.environment("b", EACH="0.02")}
        _, told, _ = self.session(columns)
        self.assertEqual(told.count("a run 25"), 2)
        self.assertEqual(told.count("b run 25"), 2)

    def test_who_fails_is_left_out_and_the_others_go_on(self):
        columns = {"a": self.environment("a"), "b": self.environment("b", FAIL_AT="run")}
        result, told, said = self.session(columns)
        self.assertEqual(told.count("a run 10"), 2)
        self.assertEqual(told.count("b run 4"), 1)
        self.assertEqual(told.count("b run 10"), 0)
        self.assertNotIn("b check 2", told)
        self.assertEqual(result["b"]["rates"], [])
        self.assertEqual(result["b"]["trouble"], "ended with 1: out of luck")
        self.assertIn("stub, b: ended with 1: out of luck", said)
        self.assertIsNone(result["a"]["trouble"])

    def test_a_peak_is_the_processes_own(self):
        # Other processes hold 100 at first, and 500 later.
        process = session.Process("stub", self.environment("a"), None)
        process.answer(10)
        for device, level, peak in (
            (FixedDevice(100, 120), 20, 20),
            (FixedDevice(500, 510), 30, 30),
            (FixedDevice(530, 500), 0, 30),
        ):
            process.device = device
            process.tell("run", 1)
            self.assertEqual(process.level, level)
            self.assertEqual(process.peak, peak)
        process.end()

    def test_the_peak_between_two_looks_counts(self):
        peak = session.Peak(FixedDevice(100, 170, 120))
        peak.start()
        while peak.peak < 170:
            pass
        peak.stop()
        self.assertEqual((peak.before, peak.peak, peak.after), (100, 170, 120))


if __name__ == "__main__":
    unittest.main()
