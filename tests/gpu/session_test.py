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
done = 0
print("{}", flush=True)
for line in sys.stdin:
    verb, count = line.split()
    with open(os.environ["TOLD"], "a") as file:
        file.write(f"{name} {verb} {count}\\n")
    done += verb == "run"
    if verb == os.environ.get("FAIL_AT") or done == int(os.environ.get("FAIL_AFTER", -1)):
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
        self.before = session.WORKLOADS, session.ROUNDS
        session.WORKLOADS, session.ROUNDS = stub, 2

    def tearDown(self):
        session.WORKLOADS, session.ROUNDS = self.before
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
            "a run 5", "b run 5", "c run 5", "b run 5", "c run 5", "a run 5",
            "b run 5", "c run 5", "a run 5", "c run 5", "a run 5", "b run 5",
            "a check 2", "b check 2", "c check 2",
        ])  # fmt: skip
        for name in "abc":
            self.assertEqual([round(rate, 6) for rate in result[name]["rates"]], [20, 20])
            self.assertEqual(result[name]["checksum"], "c")
            self.assertIsNone(result[name]["trouble"])

    def test_a_repetition_has_as_many_steps_as_the_fastest_does_in_its_time(self):
        columns = {"a": self.environment("a", EACH="0.5"), "b": self.environment("b", EACH="0.025")}
        _, told, _ = self.session(columns)
        self.assertEqual(told.count("a run 10"), 4)
        self.assertEqual(told.count("b run 10"), 4)

    def test_a_repetition_of_one_step_is_one_turn(self):
        result, told, _ = self.session({"a": self.environment("a", EACH="0.4")})
        self.assertEqual(told.count("a run 1"), 2)
        self.assertEqual(result["a"]["steps"], 1)
        self.assertEqual(result["a"]["rates"], [2.5, 2.5])

    def test_a_repetition_that_was_not_finished_does_not_count(self):
        columns = {"a": self.environment("a"), "b": self.environment("b", FAIL_AFTER="4")}
        result, told, _ = self.session(columns)
        self.assertEqual(told.count("b run 5"), 3)
        self.assertEqual(len(result["a"]["rates"]), 2)
        self.assertEqual(len(result["b"]["rates"]), 1)

    def test_who_fails_is_left_out_and_the_others_go_on(self):
        columns = {"a": self.environment("a"), "b": self.environment("b", FAIL_AT="run")}
        result, told, said = self.session(columns)
        self.assertEqual(told.count("a run 5"), 4)
        self.assertEqual(told.count("b run 4"), 1)
        self.assertEqual(told.count("b run 5"), 0)
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
