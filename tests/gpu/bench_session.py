# SPDX-License-Identifier: Apache-2.0
"""Bench session -- one workload under every allocator, in turn

One process for each allocator, all alive at once, and only one of them at work:
the others wait for their input. So the columns of a row are measured within
seconds of each other, and each has its own memory.
"""

import ctypes
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time

WORKLOADS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bench_workloads.py")
POLL = 0.002  # seconds
ROUNDS = 8  # of a repetition: a machine that others use changes within a second


class Failed(Exception):
    """A process did not do what it was told; the text says why."""


class Missing(Failed):
    """It cannot be run on this machine."""


class Device:
    """The memory in use on the first GPU, as its management library sees it.

    No allocator can hide from that. It is asked from here, not in the program, and
    nothing of the program runs for it. Of the calling process's own: a context,
    that keeps the device awake, for the first process would pay for that.
    """

    class Memory(ctypes.Structure):
        _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]

    def __init__(self):
        self.library = None
        try:
            library = ctypes.CDLL("libnvidia-ml.so.1")
            self.handle, self.memory = ctypes.c_void_p(), self.Memory()
            failed = library.nvmlInit_v2() or library.nvmlDeviceGetHandleByIndex_v2(
                0, ctypes.byref(self.handle)
            )
        except OSError:
            return
        if not failed:
            self.library = library
            self.wake()

    @staticmethod
    def wake():
        driver, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
        if driver.cuInit(0) or driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0):
            raise Failed("no context on the first device")

    def used(self):
        """Bytes, or None where there is no such library."""
        if not self.library:
            return None
        self.library.nvmlDeviceGetMemoryInfo(self.handle, ctypes.byref(self.memory))
        return self.memory.used


class Peak(threading.Thread):
    """The most that was in use between start() and stop()."""

    def __init__(self, device):
        super().__init__(daemon=True)
        self.device, self.over = device, threading.Event()
        self.before = self.after = self.peak = device.used()

    def run(self):
        if self.before is None:
            return
        while not self.over.wait(POLL):
            self.peak = max(self.peak, self.device.used())

    def stop(self):
        self.over.set()
        self.join()
        self.after = self.device.used()
        if self.after is not None:
            self.peak = max(self.peak, self.after)


class Process:
    """One allocator's process. Its level is the memory it holds, its peak the most it held.

    As nobody else changes anything while it is at work, what changes then is its own.
    """

    def __init__(self, name, env, device, tool=()):
        self.device, self.level, self.peak = device, 0, 0
        self.process = subprocess.Popen(
            [*tool, sys.executable, WORKLOADS, name], env=env, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.errors = b""
        self.reader = threading.Thread(target=self.read_errors, daemon=True)
        self.reader.start()
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)

    def read_errors(self):
        for line in self.process.stderr:
            self.errors = (self.errors + line)[-4000:]

    def answer(self, limit):
        end, text = time.monotonic() + limit, b""
        while not text.endswith(b"\n"):
            if not self.selector.select(max(0, end - time.monotonic())):
                raise Failed(f"no answer in {limit:.0f} s")
            more = os.read(self.process.stdout.fileno(), 65536)
            if not more:
                self.process.wait()
                self.reader.join(1)  # a child of its may still hold the other end
                last = self.errors.decode(errors="replace").strip().splitlines()[-1:]
                raise Failed(f"ended with {self.process.returncode}: {''.join(last)[:200]}")
            text += more
        line = json.loads(text)
        if "missing" in line:
            raise Missing(line["missing"])
        return line

    def tell(self, verb, number, limit=60):
        """Have it work, and see what that does to the device's memory."""
        peak = Peak(self.device)
        peak.start()
        try:
            self.process.stdin.write(f"{verb} {number}\n".encode())
            self.process.stdin.flush()
            return self.answer(limit)
        except BrokenPipeError:
            return self.answer(1)
        finally:
            peak.stop()
            if peak.before is not None and verb != "check":
                self.peak = max(self.peak, self.level + peak.peak - peak.before)
                self.level += peak.after - peak.before

    def end(self, limit=20):
        """Gone, and its memory with it."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.reader.join(1)
        for pipe in (self.selector, self.process.stdout, self.process.stderr):
            pipe.close()


class Session:
    """One row: @columns is name -> environment; @reps repetitions of about @seconds each.

    A repetition is a few rounds, in each of which every column has a short turn.
    """

    def __init__(self, row, columns, device, reps, seconds, say):
        self.row, self.columns, self.device, self.say = row, columns, device, say
        self.reps, self.repetition_seconds = reps, seconds
        self.processes, self.trouble = {}, {}
        self.building = {}
        self.rehearsed = {}
        self.seconds = {name: [] for name in columns}
        self.steps, self.rounds = 0, 1  # steps of a turn
        self.checksums = {}

    def each(self, names, act):
        """Have every column act; what fails is said, and left out from there on."""
        for name in names:
            if name in self.trouble:
                continue
            try:
                act(name, self.processes[name])
            except Missing:
                raise
            except Failed as failure:
                self.trouble[name] = str(failure)
                self.say(f"{self.row.name}, {name}: {failure}")
                self.processes[name].end()

    def run(self):
        names = list(self.columns)
        try:
            for name in names:
                self.processes[name] = Process(self.row.name, self.columns[name], self.device)
            self.each(names, lambda name, process: process.answer(120))
            self.say(f"{self.row.name}: imported")
            self.each(names, self.build)
            self.say(f"{self.row.name}: built")
            self.each(names, self.rehearse)
            self.divide()
            for repetition in range(self.reps):
                self.repeat(repetition, names)
            self.say(f"{self.row.name}: measured")
            self.each(names, self.check)
        finally:
            for process in self.processes.values():
                process.end()

    def build(self, name, process):
        before = time.monotonic()
        process.tell("build", self.row.warm, 120)
        self.building[name] = time.monotonic() - before

    def rehearse(self, name, process):
        """As many steps for each, so that a pool has its size, and to see how fast they are."""
        self.rehearsed[name] = process.tell("run", self.row.rehearsal)["seconds"]

    def divide(self):
        """Steps are the same for all: what the fastest does in the time of a repetition."""
        steps = 1
        if self.rehearsed:
            steps = self.row.rehearsal * self.repetition_seconds / min(self.rehearsed.values())
        self.rounds = max(1, min(ROUNDS, round(steps)))
        self.steps = max(1, round(steps / self.rounds))

    def repeat(self, repetition, names):
        seconds = dict.fromkeys(names, 0.0)

        def turn(name, process):
            seconds[name] += process.tell("run", self.steps)["seconds"]

        for round_ in range(self.rounds):
            first = (repetition + round_) % len(names)
            self.each(names[first:] + names[:first], turn)
        for name in set(names) - set(self.trouble):
            self.seconds[name].append(seconds[name])

    def check(self, name, process):
        """The last that a process does: the next one may need its memory."""
        self.checksums[name] = process.tell("check", self.row.checked)["checksum"]
        process.end()

    def result(self):
        """Column -> what was measured, or why it was not."""
        found = {}
        for name in self.columns:
            process = self.processes[name]
            steps = self.steps * self.rounds
            found[name] = {
                "steps": steps,
                "rates": [steps / seconds for seconds in self.seconds[name]],
                "build_seconds": self.building.get(name),
                "peak_mib": None if self.device.used() is None else process.peak / 2**20,
                "checksum": self.checksums.get(name),
                "trouble": self.trouble.get(name),
            }
        return found
