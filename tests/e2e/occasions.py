#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Occasions -- reports before the end: after a signal, an error, abort(); and none that was not asked for

    occasions.py --driver FILE --shim FILE --app FILE
"""

import argparse
import os
import pty
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import shimrun

OPTIONS = None
HELD = 100000  # bytes that apps/occasions.c holds


def appears(path, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if os.path.exists(path) and os.path.getsize(path):
            return True
        time.sleep(0.02)
    return False


def held(path):
    """The largest place of a report."""
    return max(place["bytes"] for place in shimrun.read_report(path)["leaks"]["places"])


class Occasions(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "report.json")

    def tearDown(self):
        self.folder.cleanup()

    def working(self, way, **settings):
        """Start the program, and wait until it works."""
        env = shimrun.environment(OPTIONS.driver, dict(settings, STREAMPOOL_REPORT=self.path))
        env["LD_PRELOAD"] = os.path.abspath(OPTIONS.shim)
        process = subprocess.Popen([OPTIONS.app, way], env=env, text=True, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def ended(self, way, status, **settings):
        run = shimrun.run([OPTIONS.app, way], OPTIONS.shim, "pool", OPTIONS.driver,
                          dict({"STREAMPOOL_REPORT": self.path}, **settings))  # fmt: skip
        self.assertEqual(run.status, status, run.err)
        return run

    def test_a_signal_has_a_report_written_while_the_program_works(self):
        process = self.working("wait", STREAMPOOL_REPORT_ON="usr1,exit")
        self.assertFalse(os.path.exists(self.path))
        process.send_signal(signal.SIGUSR1)
        self.assertTrue(appears(self.path))
        self.assertEqual(held(self.path), HELD)
        _, errors = process.communicate("", 10)
        self.assertEqual(process.returncode, 0, errors)

    def test_a_signal_that_is_not_asked_for_does_what_it_did(self):
        process = self.working("wait")
        process.send_signal(signal.SIGUSR1)
        process.communicate("", 10)
        self.assertEqual(process.returncode, -signal.SIGUSR1)

    def test_a_signal_that_the_program_handles_stays_its_own(self):
        process = self.working("handled", STREAMPOOL_REPORT_ON="usr1")
        process.send_signal(signal.SIGUSR1)
        output, errors = process.communicate("", 10)
        self.assertIn("signals 1", output)
        self.assertIn("has a use for SIGUSR1", errors)
        self.assertFalse(os.path.exists(self.path), "only usr1 was asked for")

    def test_abort(self):
        self.ended("abort", -signal.SIGABRT)
        self.assertFalse(os.path.exists(self.path))
        self.ended("abort", -signal.SIGABRT, STREAMPOOL_REPORT_ON="abort")
        self.assertEqual(held(self.path), HELD)

    def test_abort_where_there_is_little_stack(self):
        self.ended("small", -signal.SIGABRT)
        rules = os.path.join(self.folder.name, "rules")
        with open(rules, "w") as file:
            file.write("leak:no_function_of_this_name\n")
        for more in ({}, {"STREAMPOOL_STACK": "both"}, {"STREAMPOOL_SUPPRESS": rules}):
            self.ended("small", -signal.SIGABRT, STREAMPOOL_REPORT_ON="abort", **more)
            self.assertEqual(held(self.path), HELD)
            os.remove(self.path)

    def test_a_signal_where_there_is_little_stack(self):
        self.ended("ask", 0, STREAMPOOL_REPORT_ON="usr1")
        self.assertEqual(held(self.path), HELD)

    def test_a_handler_calls_exit_while_the_heap_works(self):
        for _ in range(5):
            self.ended("leave", 0)
            self.assertEqual(held(self.path), HELD)

    def test_a_pipe_that_nobody_reads_is_not_waited_for(self):
        os.mkfifo(self.path)
        process = self.working("wait")
        _, errors = process.communicate("", 10)
        self.assertEqual(process.returncode, 0, errors)
        self.assertIn(f"the report cannot be written to {self.path}: ", errors)

    def test_nobody_reads_the_errors(self):
        env = shimrun.environment(OPTIONS.driver, {"STREAMPOOL_REPORT": "-"})
        env["LD_PRELOAD"] = os.path.abspath(OPTIONS.shim)
        reader, writer = os.pipe()
        os.close(reader)
        process = subprocess.run([OPTIONS.app, "wait"], env=env, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=writer, timeout=20)  # fmt: skip
        os.close(writer)
        self.assertEqual(process.returncode, 0)

    def test_an_error_that_the_context_does_not_survive(self):
        fails = {"SIM_FAIL": "cuCtxSynchronize:1:700"}
        run = self.ended("failed", 3, STREAMPOOL_REPORT_ON="exit", **fails)
        self.assertIn("synchronised: 700", run.err)
        self.assertFalse(os.path.exists(self.path))
        self.ended("failed", 3, **fails)
        self.assertEqual(held(self.path), HELD)

    def test_an_error_writes_into_files_only(self):
        run = self.ended("failed", 3, STREAMPOOL_REPORT="-", SIM_FAIL="cuCtxSynchronize:1:700")
        self.assertNotIn("Never freed", run.err)

    def on_a_terminal(self, **settings):
        """What a report on stderr looks like when that is a terminal."""
        ours, theirs = pty.openpty()
        env = shimrun.environment(OPTIONS.driver, dict(settings, STREAMPOOL_REPORT="-"))
        env.update({"LD_PRELOAD": os.path.abspath(OPTIONS.shim), "TERM": settings.get("TERM", "xterm")})
        process = subprocess.Popen([OPTIONS.app, "wait"], env=env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=theirs)  # fmt: skip
        os.close(theirs)
        text = b""
        while b"Time saved" not in text:
            text += os.read(ours, 4096)
        process.wait()
        os.close(ours)
        return text

    def test_colours_are_for_a_terminal(self):
        self.assertIn(b"\033[1;33mNever freed\033[0m", self.on_a_terminal())
        self.assertNotIn(b"\033", self.on_a_terminal(NO_COLOR="1"))
        self.assertNotIn(b"\033", self.on_a_terminal(TERM="dumb"))
        run = self.ended("wait", 0, STREAMPOOL_REPORT="-")
        self.assertIn("Never freed", run.err)
        self.assertNotIn("\033", run.err)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("driver", "shim", "app"):
        parser.add_argument("--" + name, required=True)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
