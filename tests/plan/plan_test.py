#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plan test -- what scripts/streampool plan says is so, and what it cannot read it names

    plan_test.py ROOT PROGRAM [TRACE.xz...]

Small runs whose smallest memory can be told by hand, and recorded ones, of which only what any plan
promises is known: with it the run is served, and with one page less it is not. The second opinion
on both is another call of the program, with the plan as its limit.
"""

import functools
import json
import lzma
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT, PROGRAM = sys.argv[1:3]
TRACES = sys.argv[3:]
LAUNCHER = os.path.join(ROOT, "scripts", "streampool")
MIB = 1 << 20
GRAIN = 2 * MIB


def call(*arguments):
    command = [LAUNCHER, "plan", "--program", PROGRAM, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def call_into(target, *arguments):
    command = [LAUNCHER, "plan", "--program", PROGRAM, *arguments]
    return subprocess.run(command, stdout=target, stderr=subprocess.PIPE, text=True, check=False)


def replays_of(trace):
    """The processes that replay it."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/cmdline", "rb") as arguments:
                words = arguments.read().split(b"\0")
        except OSError:
            continue  # it has ended
        if words[:2] == [PROGRAM.encode(), trace.encode()]:
            found.append(int(process))
    return found


def eventually(question, seconds=20):
    end = time.monotonic() + seconds
    while not question() and time.monotonic() < end:
        time.sleep(0.05)
    return question()


@functools.lru_cache(maxsize=None)
def answer_to(*arguments):
    """Of a file that stays as it is: several tests want the same."""
    return call("--json", *arguments)


# A build that checks each step is too slow for them (meson.build).
recorded = unittest.skipUnless(TRACES, "no recorded run was given")


class Planned(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def file(self, text, name="run.trace"):
        path = os.path.join(self.folder, name)
        if path.endswith(".xz"):
            text = lzma.compress(text.encode())
        else:
            text = text.encode()
        with open(path, "wb") as target:
            target.write(text)
        return path

    def plan(self, *arguments):
        """What is found, the status being that of a plan."""
        done = answer_to(*arguments) if arguments[-1] in TRACES else call("--json", *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return json.loads(done.stdout)

    def refused(self, status, *arguments):
        done = call(*arguments)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout if status == 1 else done.stderr


def best(found):
    return found["rows"][found["plan"]]


def limit_of(settings):
    return int(settings["STREAMPOOL_LIMIT"].rstrip("M")) * MIB


def cap_of(settings):
    return int(settings["STREAMPOOL_LAYOUT"].partition("cap=")[2].rstrip("M")) * MIB


def blocks(*sizes):
    return "".join(f"a {size * MIB}\n" for size in sizes)


class Small(Planned):
    """Runs of which the answer is known."""

    def test_what_lives_at_once_is_needed_and_is_enough(self):
        found = self.plan(self.file(blocks(10, 10, 10)))
        self.assertEqual(found["run"]["live_peak"], 30 * MIB)
        self.assertEqual(limit_of(best(found)["settings"]), 30 * MIB)
        self.assertEqual(limit_of(found["verified"]["less"]), 28 * MIB)
        self.assertEqual(found["verified"]["refused"], {"allocation": 3, "bytes": 10 * MIB})

    def test_what_was_freed_is_had_again(self):
        found = self.plan(self.file((blocks(10) + "f 1\n") * 5 + blocks(4)))
        self.assertEqual(limit_of(best(found)["settings"]), 10 * MIB)

    def test_a_page_is_the_least_there_is(self):
        found = self.plan(self.file("a 100\n"))
        self.assertEqual(limit_of(best(found)["settings"]), GRAIN)
        self.assertEqual(limit_of(found["verified"]["less"]), 0)
        self.assertEqual(found["verified"]["refused"]["allocation"], 1)

    def test_a_sliced_pool_gets_the_cap_that_its_pages_need(self):
        """Slices of 6 do not fit twice into a page of 10, so each of three has one for itself; so do
        two of 4."""
        found = self.plan("--layout", "sliced:page=10M", self.file(blocks(6, 6, 6, 4, 4)))
        self.assertEqual(limit_of(best(found)["settings"]), 30 * MIB)
        rows = {row["settings"].get("STREAMPOOL_LAYOUT"): row for row in self.usual(blocks(6, 6, 6, 4, 4))}
        capped = [row for layout, row in rows.items() if layout and layout.startswith("sliced:page=6M,cap=")]
        self.assertEqual(len(capped), 1, list(rows))
        self.assertEqual(cap_of(capped[0]["settings"]), 30 * MIB)  # of 6: five pages
        self.assertEqual(limit_of(capped[0]["settings"]), 30 * MIB)

    def usual(self, text):
        return self.plan(self.file(text))["rows"]

    def test_streams_are_honoured(self):
        """Two streams hand one block over by an event, or have one each without."""
        run = "+ 1\n+ 1\nA {0} 1\nk 1 1000\nF 1 1\n{1}A {0} 2\nF 1 2\n".format(10 * MIB, "{0}")
        ordered = self.plan("--layout", "direct", self.file(run.format("r 0 1\nw 2 0\n")))
        apart = self.plan("--layout", "direct", self.file(run.format("")))
        self.assertEqual(best(ordered)["peak"], 10 * MIB)
        # Without the event the device that is behind still uses the first; or the second stream is
        # made to wait for it, which is asked for when memory is short.
        self.assertEqual((best(apart)["peak"], best(apart)["cap"]), (20 * MIB, 10 * MIB))
        self.assertGreater(best(apart)["asked"], best(ordered)["asked"])
        idle = self.plan("--lag", "0", "--layout", "direct", self.file(run.format("")))
        self.assertEqual(best(idle)["peak"], 10 * MIB)
        self.assertEqual((idle["devices"], apart["devices"]), ([0], [0, 256, None]))

    def test_what_is_worth_it_is_beaten_by_none(self):
        """By no other that needs no more and keeps the host no longer."""
        rows = [row for row in self.usual((blocks(10) + "f 1\n") * 5 + blocks(4, 3)) if row["served"]]
        figures = [(row["cap"], row["maps"] + row["waits"]) for row in rows]
        beaten = [any(a <= cap and b <= cost and (a, b) != (cap, cost) for a, b in figures) for cap, cost in figures]
        self.assertEqual([row["worth_it"] for row in rows], [not is_beaten for is_beaten in beaten])
        self.assertEqual(set(beaten), {True, False}, figures)

    def test_what_the_driver_refused_is_not_planned_for(self):
        found = self.plan(self.file("! 2\n" + blocks(2)))
        self.assertEqual((found["run"]["refused"], found["run"]["allocations"]), (1, 1))


class Recorded(Planned):
    """Real programs, where the build is not too slow for them, and recordings."""

    @recorded
    def test_with_the_plan_a_run_is_served_and_with_one_page_less_it_is_not(self):
        for trace in TRACES:
            with self.subTest(trace=trace):
                found = self.plan(trace)
                self.assertTrue(found["verified"]["is_verified"])
                self.assertIn("refused", found["verified"])
                self.again(trace, best(found)["settings"], found["verified"]["less"])

    def again(self, trace, enough, less):
        """A limit is exact: a plan for just this layout and heap finds the same, and none below."""
        layout = ["--layout", enough["STREAMPOOL_LAYOUT"]] if "STREAMPOOL_LAYOUT" in enough else []
        found = self.plan("--limit", enough["STREAMPOOL_LIMIT"], *layout, trace)
        self.assertLessEqual(best(found)["cap"], limit_of(enough))
        self.assertEqual(limit_of(less), limit_of(enough) - GRAIN)

    @recorded
    def test_a_cap_holds_and_one_page_less_does_not(self):
        """What is found for a sliced pool, with the cap written into the layout."""
        for trace in TRACES:
            self.check_caps(trace)

    def check_caps(self, trace):
        rows = [row for row in self.plan(trace)["rows"] if ",cap=" in row["settings"].get("STREAMPOOL_LAYOUT", "")]
        self.assertTrue(rows)
        for row in rows:
            layout = row["settings"]["STREAMPOOL_LAYOUT"]
            page = int(layout.partition("page=")[2].partition("M")[0]) * MIB
            cap = cap_of(row["settings"])
            self.assertEqual(cap % page, 0)
            self.plan("--layout", layout, trace)
            less = f"sliced:page={page // MIB}M,cap={(cap - page) // MIB}M"
            self.assertIn("is refused", self.refused(1, "--layout", less, trace))

    @recorded
    def test_a_plan_is_no_smaller_than_what_lives(self):
        for trace in TRACES:
            found = self.plan(trace)
            self.assertTrue(any(row["served"] for row in found["rows"]))
            for row in filter(lambda row: row["served"], found["rows"]):
                self.assertGreaterEqual(row["cap"], found["run"]["live_peak"])
                self.assertGreaterEqual(row["peak"] + GRAIN, row["cap"])

    def test_a_recording_is_planned_as_what_it_is_packed_to(self):
        trace = self.file(
            "+ 1\nA 8388608 1\nk 1 3\nr 0 1\nw 0 0\nF 1 1\nt 1\na 4194304\nf 1\n"
        )
        recording = (
            "# a recording\n\n+ 5 0 7f00 1\nA 6 0 a000 8388608 0 7f00\nk 7f00 3\nr 7 0 e0 7f00\nw 8 0 0 e0\n"
            "Q 8 0 7f00 600\nm 8 0 HtoD 5\nF 9 0 a000 7f00\na 9 1 a000 4194304 0\nf 9 1 a000\nf 9 1 b000\n"
        )
        ways = [self.file(recording), self.file(recording, "run.xz"), trace]
        answers = [self.plan(way) for way in ways]
        for answer in answers:
            del answer["trace"]
            for row in answer["rows"]:
                row.pop("ns_a_call", None)
        self.assertEqual(answers[0], answers[1])
        self.assertEqual(answers[0], answers[2])

    def test_events_of_a_later_version_are_left_out(self):
        """A recording that says that it is one may have events that nobody here knows."""
        lines = "a 1 0 a000 4096 0\nZ 2 0 something else\n"
        self.assertEqual(self.plan(self.file("# streampool recording 1\n" + lines))["run"]["allocations"], 1)
        self.assertIn("no event begins like this: Z", self.refused(2, self.file(lines)))
        path = self.file("# streampool recording 2\n" + lines)
        self.assertIn(f"{path}:1: a recording of version 2", self.refused(2, path))

    def test_the_part_of_a_line_that_a_recording_ends_with_is_left_out(self):
        """With what is there it would be a block of 40 bytes, or a line with too few words."""
        lines = "# streampool recording 1\na 1 0 a000 4096 0\n"
        for part in ("a 2 0 b000 40", "a 2 0 b000 4096 0", "F 2 0 a0", "k"):
            with self.subTest(part=part):
                self.assertEqual(self.plan(self.file(lines + part))["run"]["allocations"], 1)

    def test_no_number_of_launches_is_too_large(self):
        """A recording has launches in a row as one number, however long the program runs."""
        for number in (1 << 32, 10**5000):
            digits = "5" * 5000 if number > 1 << 64 else number
            recording = f"# streampool recording 1\na 1 0 a000 4096 0\nk 0 {digits}\n"
            self.assertEqual(self.plan(self.file(recording))["run"]["allocations"], 1)

    def test_streams_that_were_there_before_are_made(self):
        found = self.plan(self.file("A 1 0 a0 4096 0 77\nA 2 1 b0 4096 0 2\nA 2 2 c0 4096 0 2\nA 3 0 d0 4096 0 1\n"))
        self.assertEqual(found["run"]["streams"], 3)  # one, and two threads' own; 1 is the legacy stream
        self.assertEqual(found["run"]["allocations"], 4)


class Told(Planned):
    """What people read."""

    def test_the_text_says_what_to_set(self):
        trace = self.file(blocks(10, 10, 10))
        done = call(trace)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        found = self.plan(trace)
        lines = [line for line in done.stdout.split("\n") if line.startswith("    STREAMPOOL_")]
        told = [dict(word.split("=", 1) for word in shlex.split(line)) for line in lines]
        self.assertEqual(told, [best(found)["settings"], found["verified"]["less"], found["room"]])
        self.assertEqual([limit_of(settings) // MIB for settings in told], [30, 28, 32])
        self.assertIn("Verified by replay", done.stdout)
        self.assertEqual(sum(line.startswith("* ") for line in done.stdout.split("\n")), 2)  # and what * means
        self.assertIn("30 MiB live at most", done.stdout)

    def test_no_limit_is_told_that_the_shim_takes_for_none(self):
        done = call(self.file("a 100\n"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertNotIn("STREAMPOOL_LIMIT=0M", done.stdout)
        self.assertIn("One page less is no memory at all", done.stdout)

    def test_a_plan_that_cannot_be_written_is_told(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = call_into(full, self.file(blocks(1)))
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, "streampool plan: the plan cannot be written: No space left on device\n")

    def test_a_reader_that_has_had_enough_is_not_complained_of(self):
        reader, writer = os.pipe()
        os.close(reader)
        with open(writer, "w", encoding="ascii") as nobody:
            done = call_into(nobody, self.file(blocks(1)))
        self.assertEqual((done.returncode, done.stderr), (2, ""))

    def test_a_layout_is_quoted_for_the_shell(self):
        done = call("--layout", "sliced:page=4M ; direct", self.file(blocks(3)))
        self.assertIn("STREAMPOOL_LAYOUT='sliced:page=4M;direct' ", done.stdout)

    def test_a_run_that_does_not_fit_is_told_what_it_needs(self):
        said = self.refused(1, "--limit", "28M", self.file(blocks(10, 10, 10)))
        self.assertIn("does not fit 28 MiB. 30 MiB live at most", said)
        self.assertIn("STREAMPOOL_LIMIT=30M", said)
        self.assertEqual(call("--limit", "30M", self.file(blocks(10, 10, 10))).returncode, 0)

    def test_a_layout_that_cannot_serve_it_says_which_allocation(self):
        said = self.refused(1, "--layout", "exclusive:max=4M", self.file(blocks(4, 5)))
        self.assertIn("allocation 2, of 5242880 bytes, is refused", said)
        self.assertIn("none of these serves the run", said)

    def test_help_is_there(self):
        self.assertEqual(call("--help").returncode, 0)
        self.assertIn("TRACE", call("--help").stdout)


# what a trace may not be: text, the line that is named, part of the reason
BAD_TRACES = (
    ("z 1\n", 1, "no event begins like this"),
    ("a 512\n\na 512\n", 2, "no event begins like this"),
    ("a 512\na\n", 2, "not the numbers"),
    ("a 512 7\n", 1, "not the numbers"),
    ("a -512\n", 1, "not the numbers"),
    ("a 0\n", 1, "no size"),
    ("a 99999999999999999999999\n", 1, "no size"),
    (f"a {(1 << 40) + 1}\n", 1, "no size"),
    (f"a {1 << 40}\na 512\n", 2, "more lives than a device has"),
    ("a 512\nf 2\n", 2, "no such block"),
    ("a 512\nf 1\nf 1\n", 3, "no such block, or not any more"),
    ("A 512 1\n", 1, "no such stream"),
    ("+ 1\n- 1\nA 512 1\n", 3, "no such stream"),
    ("- 0\n", 1, "the legacy stream does not end"),
    ("w 0 0\n", 1, "no such event"),
    ("r 1 0\n", 1, "not the next event"),
    ("r 0 0\nx 0\ne 0\n", 3, "no such event, or not any more"),
    ("a 512\nk 0 9999999999\n", 2, "a number is too large"),
    ("k 5 1\na 512\n", 1, "no such stream"),
    ("", 0, "there is no event in it"),
    ("\xff\xfe\n", 1, "no event begins like this"),
)

# the same of recordings
BAD_RECORDINGS = (
    ("a 1 0 a000 512 0\nz 2 0 1\n", 2, "no event begins like this: z"),
    ("a 1 0 a000 512 0\n# 1\nA 2 0 a000 512 0\n", 3, "A has 7 words, and this has 6"),
    ("a 1 0 a000 many 0\n", 1, "many is no whole number"),
    ("a 1 0 a000 512 0\na 2 0 here 512 0\n", 2, "here is no handle"),
)


class Bad(Planned):
    """Input that is none: the file and the line are named, and the status is 2."""

    def test_a_line_that_is_no_event_is_named(self):
        for text, line, reason in BAD_TRACES:
            with self.subTest(text=text):
                path = self.file(text)
                self.assertIn(f"{path}:{line}: {reason}", self.refused(2, path))

    def test_a_line_that_no_recording_has_is_named(self):
        for text, line, reason in BAD_RECORDINGS:
            with self.subTest(text=text):
                path = self.file(text)
                self.assertIn(f"{path}:{line}: {reason}", self.refused(2, path))

    def test_a_recording_that_ends_in_the_middle_of_an_address_is_one(self):
        """The free of an unknown block, which a recording may have."""
        self.plan(self.file("a 1 0 a000 512 0\nf 2 0 a0"))

    def test_a_file_that_cannot_be_read_is_named(self):
        missing = os.path.join(self.folder, "none")
        self.assertIn(f"{missing}: No such file", self.refused(2, missing))
        self.assertIn(f"{self.folder}: Is a directory", self.refused(2, self.folder))
        path = self.file("no xz", "plain")
        os.rename(path, path + ".xz")
        self.assertIn(f"{path}.xz: ", self.refused(2, path + ".xz"))
        whole = self.file(blocks(1) * 1000, "cut.xz")
        os.truncate(whole, os.path.getsize(whole) // 2)
        self.assertIn(f"{whole}: ", self.refused(2, whole))

    def test_what_cannot_be_unpacked_is_named(self):
        packer = os.path.join(ROOT, "tools", "replay", "pack_trace.py")
        path = self.file("no xz")
        os.rename(path, path + ".xz")
        target = os.path.join(self.folder, "target")
        done = subprocess.run([sys.executable, packer, "--unpack", path + ".xz", target],
                              capture_output=True, text=True, check=False)  # fmt: skip
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, rf"^{path}\.xz: .+\n$")
        self.assertFalse(os.path.exists(target))

    def test_a_run_without_allocations_has_no_plan(self):
        path = self.file("k 0 1\nc\n")
        self.assertIn(f"{path}: nothing was allocated", self.refused(2, path))

    def test_a_layout_that_is_none_is_explained(self):
        said = self.refused(2, "--layout", "sliced:page=2M,slice=4M", self.file(blocks(1)))
        self.assertIn("slice", said)
        self.assertIn("4194304", said)

    def test_an_argument_that_is_none_is_named(self):
        trace = self.file(blocks(1))
        self.assertIn("12X is no size", self.refused(2, "--limit", "12X", trace))
        self.assertIn("0 is no size", self.refused(2, "--limit", "0", trace))
        self.assertIn("0.5 is no size", self.refused(2, "--limit", "0.5", trace))
        self.assertIn("99999999T is more than there can be", self.refused(2, "--limit", "99999999T", trace))
        self.assertIn("is more than there can be", self.refused(2, "--limit", "9" * 400, trace))
        self.assertIn("some is no number", self.refused(2, "--lag", "some", trace))
        self.assertIn("--nonsense", self.refused(2, "--nonsense", trace))
        self.assertIn("TRACE", self.refused(2))
        self.assertIn("/nowhere is not there", self.refused(2, "--program", "/nowhere", trace))


class Ended(Planned):
    def test_who_is_ended_leaves_nobody_behind(self):
        """A run that takes long is replayed by one and by those that it has started."""
        trace = self.file("a 1000000000\nk 0 1\nf 1\n" * 600000)
        for number in (signal.SIGTERM, signal.SIGINT):
            # No pipe: whoever is left behind would keep that open.
            said = self.file("", "said")
            with open(said, "w", encoding="ascii") as target:
                running = subprocess.Popen([LAUNCHER, "plan", "--program", PROGRAM, trace], stderr=target)
            with running:
                self.assertTrue(eventually(lambda: len(replays_of(trace)) >= 2), "it has not begun")
                running.send_signal(number)
            self.assertTrue(eventually(lambda: not replays_of(trace), 1), replays_of(trace))
            with open(said, encoding="ascii") as source:
                self.assertEqual((running.returncode, source.read()), (128 + number, ""))


class Doubtful(Planned):
    """What the program that replays should never say."""

    def program(self, answer, status):
        path = self.file(f"#!/bin/sh\ncat <<END\n{answer}\nEND\nexit {status}\n", "program")
        os.chmod(path, 0o755)
        return path

    def test_a_plan_that_does_not_hold_is_told(self):
        trace = self.file(blocks(10, 10, 10))
        found = self.plan(trace)
        found["verified"]["is_verified"] = False
        program = self.program(json.dumps(found), 1)
        said = self.refused(1, "--program", program, trace)
        self.assertIn("NOT verified", said)
        self.assertNotIn("Verified by replay", said)

    def test_a_program_that_does_not_end_well_is_named(self):
        trace = self.file(blocks(1))
        program = self.program("", 7)
        self.assertIn(f"{program} has ended with 7", self.refused(2, "--program", program, trace))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
