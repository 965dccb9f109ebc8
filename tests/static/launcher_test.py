#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Launcher test -- scripts/streampool does to the environment what it says

    launcher_test.py ROOT SHIM
"""

import os
import subprocess
import sys
import tempfile
import unittest

ROOT, SHIM = sys.argv[1], os.path.realpath(sys.argv[2])
LAUNCHER = os.path.join(ROOT, "scripts", "streampool")


def launch(*arguments, **variables):
    """Run the launcher with nothing but PATH and these variables set."""
    variables["PATH"] = os.environ["PATH"]
    return subprocess.run([LAUNCHER, *arguments], env=variables, capture_output=True, text=True, check=False)


class Launcher(unittest.TestCase):
    def preload(self, before):
        answer = launch("--library", SHIM, "sh", "-c", "echo $LD_PRELOAD", LD_PRELOAD=before)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return answer.stdout.strip()

    def test_the_shim_comes_first_and_once(self):
        with tempfile.TemporaryDirectory() as folder:
            other = os.path.join(folder, "other.so")
            os.symlink(SHIM, other)
            self.assertEqual(self.preload(""), SHIM)
            self.assertEqual(self.preload(SHIM), SHIM)
            self.assertEqual(self.preload(other), f"{SHIM}:{other}")
            self.assertEqual(self.preload(f"{other} libstreampool_shim.so:{SHIM}"), f"{SHIM}:{other}")

    def test_options_become_variables(self):
        answer = launch("--library", SHIM, "--mode", "observe", "--batch-bytes=3M", "env")
        self.assertIn("STREAMPOOL_MODE=observe\n", answer.stdout)
        self.assertIn("STREAMPOOL_BATCH_BYTES=3M\n", answer.stdout)

    def test_ranges_are_asked_for_by_name(self):
        answer = launch("--library", SHIM, "--ranges", "env")
        self.assertIn(f"NVTX_INJECTION64_PATH={SHIM}\n", answer.stdout)
        self.assertNotIn("NVTX_", launch("--library", SHIM, "env").stdout)

    def test_the_programs_own_options_stay_its_own(self):
        answer = launch("--library", SHIM, "--", "echo", "--mode", "x y")
        self.assertEqual(answer.stdout, "--mode x y\n")

    def test_the_exit_status_is_the_programs(self):
        self.assertEqual(launch("--library", SHIM, "sh", "-c", "exit 7").returncode, 7)

    def test_help_is_for_whoever_asks_the_launcher(self):
        for option in ("-h", "--help"):
            answer = launch(option)
            self.assertEqual(answer.returncode, 0, answer.stderr)
            self.assertIn("--library FILE", answer.stdout)
            self.assertNotIn("set -euo", answer.stdout)
        self.assertNotIn("--library", launch("--library", SHIM, "--", "echo", "--help").stdout)
        self.assertIn("-p: not found", launch("--library", SHIM, "--", "-p").stderr)

    def test_plan_is_the_launchers_own_unless_it_is_behind_two_dashes(self):
        answer = launch("plan", "--help")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertIn("TRACE", answer.stdout)
        answer = launch("plan", "/nowhere/run.trace")
        self.assertEqual(answer.returncode, 2)
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "plan")
            with open(program, "w", encoding="ascii") as file:
                file.write("#!/bin/sh\necho $LD_PRELOAD\n")
            os.chmod(program, 0o755)
            path = os.pathsep.join([folder, os.environ["PATH"]])
            answer = subprocess.run([LAUNCHER, "--library", SHIM, "--", "plan"], env={"PATH": path},
                                    capture_output=True, text=True, check=False)  # fmt: skip
            self.assertEqual(answer.stdout, SHIM + "\n", answer.stderr)

    def test_check_reads_the_options_of_env_in_a_script(self):
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "script")
            with open(script, "w", encoding="ascii") as file:
                file.write("#!/usr/bin/env -S sh -u\n")
            os.chmod(script, 0o755)
            answer = launch("--library", SHIM, "--check", script)
            self.assertEqual(answer.returncode, 0, answer.stderr)
            self.assertIn("would be loaded", answer.stdout)

    def test_check_tells_what_would_happen_and_runs_nothing(self):
        answer = launch("--library", SHIM, "--check", "sh", "-c", "echo ran")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertIn("would be loaded", answer.stdout)
        self.assertNotIn("ran\n", answer.stdout)

    def test_check_refuses_what_cannot_be_preloaded(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "program")
            with open(program, "wb") as file:
                file.write(b"\x7fELF no interpreter")
            os.chmod(program, 0o755)
            answer = launch("--library", SHIM, "--check", program)
            self.assertEqual(answer.returncode, 2)
            self.assertIn("not dynamically linked", answer.stderr)
            os.chmod(program, 0o4755)
            self.assertIn("set-uid", launch("--library", SHIM, "--check", program).stderr)

    def test_a_mistake_is_named(self):
        self.assertIn("no such file", launch("--library", "/nowhere", "true").stderr)
        self.assertIn("--mode needs a value", launch("--mode").stderr)
        self.assertIn("no program", launch("--library", SHIM).stderr)
        self.assertIn("not found", launch("--library", SHIM, "--check", "no-such-program").stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
