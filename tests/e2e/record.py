#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Record -- is a recording what the program did, and is the program left alone by it?

    record.py --driver FILE --shim FILE --apps FOLDER --bench FOLDER --pack FILE

The recorder is compared with programs that say themselves what they did: apps/record.c, and the client
that makes the calls of a trace, of which the recording has to be that trace.
"""

import argparse
import bisect
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

import shimrun

OPTIONS = None
HEAD = "# streampool recording 1\n"
BUFFER = 1024  # lines that are in memory
TRACES = ("jax.sync", "streams.async", "mlp.async")
EVENT = re.compile(r"(k( \w+){2}|[a-zA-Z+-] \d+ \d+( \w+)*)$")


def without_time(line):
    """As apps/record.c prints it."""
    field = line.split()
    return " ".join(field if field[0] == "k" else field[:1] + field[2:])


class Blocks:
    """What is live, by where it begins: no two blocks have a byte in common."""

    def __init__(self):
        self.begins, self.bytes = [], {}

    def add(self, begin, size):
        at = bisect.bisect(self.begins, begin)
        before = self.begins[at - 1] if at else None
        if before is not None and before + self.bytes[before] > begin:
            return False
        if at < len(self.begins) and begin + size > self.begins[at]:
            return False
        self.begins.insert(at, begin)
        self.bytes[begin] = size
        return True

    def remove(self, begin):
        if begin not in self.bytes:
            return False
        del self.bytes[begin]
        self.begins.remove(begin)
        return True


class Recording(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "recording")

    def tearDown(self):
        self.folder.cleanup()

    def app(self, name):
        return os.path.join(OPTIONS.apps, name)

    def ended(self, *command, status=0, mode="pool", **settings):
        run = shimrun.run(list(command), OPTIONS.shim, mode, OPTIONS.driver,
                          dict({"STREAMPOOL_RECORD": self.path}, **settings))  # fmt: skip
        self.assertEqual(run.status, status, run.err)
        return run

    def lines(self, path=None):
        """All but the head."""
        with open(path or self.path) as file:
            text = file.read()
        self.assertTrue(text.startswith(HEAD), text[:100])
        self.assertTrue(text.endswith("\n"), text[-100:])
        lines = text[len(HEAD) :].splitlines()
        for line in lines:
            self.assertRegex(line, EVENT)
        return lines

    def packed(self, path=None):
        """The trace that is made of a recording."""
        small, trace = self.path + ".xz", self.path + ".trace"
        for command in ([path or self.path, small], ["--unpack", small, trace]):
            subprocess.run([sys.executable, OPTIONS.pack, *command], check=True)
        return trace

    # what it says

    def test_each_call_has_the_line_that_the_program_says(self):
        for mode in ("pool", "observe"):
            for more in ({}, {"STREAMPOOL_STACK": "native"}, {"STREAMPOOL_CHECK": "off"},
                         {"STREAMPOOL_CHECK": "order"}):  # fmt: skip
                run = self.ended(self.app("record"), "calls", mode=mode, **more)
                got = [without_time(line) for line in self.lines()]
                self.assertEqual(got, run.out.splitlines(), (mode, more))
                os.remove(self.path)

    def test_a_call_that_is_made_to_fail(self):
        run = self.ended(self.app("fail"), "1", STREAMPOOL_FAULT="nth=1,kind=device,error=999")
        self.assertIn("device 999", run.out)
        self.assertIn("a 0 0 65536 999", [without_time(line) for line in self.lines()])

    def test_times_do_not_run_backwards(self):
        self.ended(self.app("record"), "threads", "50")
        times = [int(line.split()[1]) for line in self.lines() if line[0] != "k"]
        self.assertEqual(times, sorted(times))
        self.assertLess(times[-1], 60e6)

    def test_the_order_of_threads_is_one_that_could_have_been(self):
        rounds = 1500
        for mode in ("pool", "observe"):
            self.ended(self.app("record"), "threads", str(rounds), mode=mode)
            self.check_order([line.split() for line in self.lines()], 4 * rounds)

    def check_order(self, events, count):
        blocks, streams, launches, last = Blocks(), {"0"}, 0, None
        tids = set()
        times = dict.fromkeys("aAfFkr", 0)
        for field in events:
            kind = field[0]
            if kind in times:
                times[kind] += 1
            if kind != "k":
                tids.add(field[2])
            if kind in "aA":
                self.assertTrue(blocks.add(int(field[3], 16), int(field[4])), field)
            if kind in "fF":
                self.assertTrue(blocks.remove(int(field[3], 16)), field)
            if kind == "+":
                streams.add(field[3])
            if kind == "-":
                streams.remove(field[3])
            if kind in "AFr":
                self.assertIn(field[-1], streams)
            if kind == "k":
                self.assertFalse(last and last[0] == "k" and last[1] == field[1], field)
                self.assertIn(field[1], streams)
                launches += int(field[2])
            last = field
        self.assertFalse(blocks.begins)
        self.assertEqual(launches, count)
        self.assertEqual({times[kind] for kind in "aAfFr"}, {count}, times)
        self.assertEqual(tids, {"0", "1", "2", "3", "4"})

    def test_of_a_trace_it_is_that_trace(self):
        for name in TRACES:
            trace = os.path.join(OPTIONS.bench, name)
            self.ended(self.app("client"), "--advance", "20000", trace, SIM_MEMORY="144G")
            with open(trace) as before, open(self.packed()) as now:
                # The client has a word of its own, and waits for all before it gives it back.
                wanted = ["h 4\n", *before, "c\n", "H "]
                got = list(now)
                got[-1] = got[-1][:2]
                self.assertEqual(got, wanted, name)

    def test_it_is_replayed_without_a_finding(self):
        self.ended(self.app("record"), "threads", "200")
        trace = self.packed()
        subprocess.run([os.path.join(OPTIONS.bench, "replay"), "--quick", trace], check=True)
        again = self.path + ".again"
        run = self.ended(self.app("client"), trace, STREAMPOOL_RECORD=again)
        self.assertEqual(shimrun.differences(run.report, run.out), [])
        self.assertEqual(shimrun.findings(run.report), {})

    # what becomes of the program

    def test_a_child_writes_nothing(self):
        run = self.ended(self.app("record"), "fork")
        self.assertEqual([without_time(line) for line in self.lines()], run.out.splitlines())
        self.assertNotIn("RECORD", run.err)

    def test_a_name_has_the_process_in_it(self):
        pattern = os.path.join(self.folder.name, "of.%r.%p.%%")
        self.ended(self.app("record"), "calls", STREAMPOOL_RECORD=pattern, RANK="3")
        (name,) = os.listdir(self.folder.name)
        self.assertRegex(name, r"^of\.3\.\d+\.%$")

    def test_a_path_that_is_none_is_said_once(self):
        pipe = os.path.join(self.folder.name, "pipe")
        os.mkfifo(pipe)
        for path in (self.path + "/of/nobody", self.folder.name, "/dev/null", pipe, "a" * 5000):
            run = self.ended(self.app("record"), "calls", STREAMPOOL_RECORD=path)
            self.assertEqual(run.err.count("STREAMPOOL_RECORD"), 1, run.err)
            self.assertRegex(run.err, "STREAMPOOL_RECORD: nothing is recorded: .*: .+")
            self.assertIn("- 0 ", run.out)
        self.assertEqual(os.listdir(self.folder.name), ["pipe"])

    def test_a_full_disk_costs_the_end_and_says_how_much(self):
        run = self.ended(self.app("record"), "full", "5000")
        lines = self.lines()
        self.assertTrue(len(lines) and len(lines) % BUFFER == 0)
        self.assertLessEqual(os.path.getsize(self.path), 100 << 10)
        self.assertEqual(run.err.count("File too large"), 1, run.err)
        lost = re.search(r"STREAMPOOL_RECORD: lines that are lost: (\d+)\n", run.err)
        self.assertEqual(len(lines) + int(lost.group(1)), 10000)
        self.packed()

    def test_a_file_that_somebody_else_writes_to_is_left_alone(self):
        run = self.working("hold", "2000")
        with open(self.path, "a") as file:
            file.write("mine\n")
        _, errors = run.communicate("", 20)
        self.assertEqual(run.returncode, 0)
        self.assertIn("somebody else has changed it", errors)
        self.assertIn(f"lines that are lost: {4000 % BUFFER}\n", errors)
        with open(self.path) as file:
            self.assertTrue(file.read().endswith("mine\n"))

    def working(self, *way):
        env = shimrun.environment(OPTIONS.driver, {"STREAMPOOL_RECORD": self.path})
        env.update(LD_PRELOAD=os.path.abspath(OPTIONS.shim), STREAMPOOL_REPORT="none")
        run = subprocess.Popen([self.app("record"), *way], env=env, text=True, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
        self.assertEqual(run.stdout.readline(), "ready\n")
        return run

    def test_who_is_killed_loses_what_was_in_memory(self):
        run = self.working("hold", "3000")
        run.send_signal(signal.SIGKILL)
        run.communicate()
        lines = self.lines()
        self.assertEqual(len(lines), 6000 - 6000 % BUFFER)
        self.packed()

    def test_who_aborts_loses_nothing_where_that_has_a_report(self):
        for on, count in (("exit", 0), ("abort", 2)):
            self.ended(self.app("record"), "abort", status=-signal.SIGABRT, STREAMPOOL_REPORT_ON=on)
            self.assertEqual(len(self.lines()), count)

    def test_an_error_that_the_context_does_not_survive_loses_nothing(self):
        self.ended(self.app("occasions"), "failed", status=3, SIM_FAIL="cuCtxSynchronize:1:700")
        self.assertEqual(len([line for line in self.lines() if line[0] == "a"]), 1)

    def test_descriptors_are_the_programs(self):
        run = self.ended(self.app("record"), "close")
        self.assertEqual(run.out, "own 0\n")
        self.assertEqual(len(self.lines()), 8000)

    def test_where_it_is_off_there_is_none(self):
        self.ended(self.app("record"), "calls", STREAMPOOL_RECORD="")
        self.ended(self.app("record"), "calls", mode="off")
        self.ended(self.app("record"), "calls", STREAMPOOL_DISABLE="1")
        self.assertEqual(os.listdir(self.folder.name), [])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("driver", "shim", "apps", "bench", "pack"):
        parser.add_argument("--" + name, required=True)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
