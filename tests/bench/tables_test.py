# SPDX-License-Identifier: Apache-2.0
"""Tables test -- a target that is missed is said to be missed

    tables_test.py

Figures are made up: lines as the programs print them.
"""

import unittest

import tables
from figures import ASYNC, GLIBC, MICRO, NOBODY, REPLAY, TORCH, Figures
from targets import MIB, TARGETS


def micro(workload, peer, **known):
    fields = [str(known.get(key.replace(".", "_").replace(" ", "_"), "n/a")) for key in MICRO]
    return "\t".join(["micro", workload, peer, *fields])


def replay(trace, contender, **known):
    given = {"live": 1000 * MIB, "allocations": 1000, **known}
    fields = [str(given.get(key.replace(" ", "_"), 0)) for key in REPLAY]
    return "\t".join(["replay", trace, contender, *fields])


def verdicts(*lines):
    figures = Figures(lines)
    rows = [tables.target_line(target, figures) for target in TARGETS]
    return {row[0]: row[3].strip("*") for row in rows if row}


class TargetsTest(unittest.TestCase):
    def one(self, name, *lines):
        found = [verdict for target, verdict in verdicts(*lines).items() if target.startswith(name)]
        self.assertEqual(len(found), 1, f"{name}: {found}")
        return found[0]

    def test_what_was_not_measured_is_not_judged(self):
        self.assertEqual(verdicts(), {})
        self.assertEqual(verdicts(micro("churn, 4k live", ASYNC, p50=100)), {})

    def test_a_multiple_of_glibc_is_met_up_to_the_bound(self):
        for ours, verdict in ((499, "met"), (500, "met"), (501, "missed")):
            lines = (
                micro("churn, 4k live", ASYNC, p50=ours),
                micro("churn, 4k live", GLIBC, p50=100),
            )
            self.assertEqual(self.one("churn, 4k live / glibc", *lines), verdict)

    def test_a_speedup_is_met_from_the_bound_on(self):
        for theirs, verdict in ((799, "missed"), (800, "met")):
            lines = (
                micro("churn, 4k live", ASYNC, p50=100),
                micro("churn, 4k live", TORCH, p50=theirs),
            )
            self.assertEqual(self.one("churn, 4k live: PyTorch-like", *lines), verdict)

    def test_the_worst_trace_counts(self):
        good = replay("a.sync", "balanced", reserved=1062 * MIB)
        bad = replay("b.sync", "balanced", reserved=1063 * MIB)
        self.assertEqual(self.one("balanced: reserved", good), "met")
        self.assertEqual(self.one("balanced: reserved", good, bad), "missed")

    def test_modes_are_judged_by_their_own_bounds_on_an_idle_device(self):
        lines = [
            replay("a.sync", mode, reserved=1050 * MIB) for mode in ("balanced", "speed", "tight")
        ]
        lines.append(replay("a.sync", "speed, busy", reserved=9000 * MIB))
        self.assertEqual(self.one("balanced: reserved", *lines), "met")
        self.assertEqual(self.one("speed: reserved", *lines), "met")
        self.assertEqual(self.one("tight: reserved", *lines), "missed")

    def test_the_default_heap_is_compared_with_the_layout_that_does_best_on_a_trace(self):
        lines = [
            replay("a", "layout direct", reserved=1100 * MIB, ns=100),
            replay("a", "layout sliced", reserved=1300 * MIB, ns=60),
            replay("b", "layout direct", reserved=9000 * MIB, ns=900),
        ]
        for reserved, ns, of_space, of_time in (
            (1100, 60, "met", "met"), (1101, 60, "missed", "met"), (1100, 61, "met", "missed"),
        ):  # fmt: skip
            ours = [replay(trace, "balanced", reserved=reserved * MIB, ns=ns) for trace in "ab"]
            self.assertEqual(self.one("layouts: reserved", *lines, *ours), of_space)
            self.assertEqual(self.one("layouts: time", *lines, *ours), of_time)

    def test_remaps_are_counted_by_the_hundred_and_late_ones_at_all(self):
        self.assertEqual(
            self.one("balanced: remaps", replay("a", "balanced", reserved=1, moves=30)), "met"
        )
        self.assertEqual(
            self.one("balanced: remaps", replay("a", "balanced", reserved=1, moves=31)), "missed"
        )
        self.assertEqual(
            self.one("speed: remaps", replay("a", "speed", reserved=1, moves=9, late_moves=0)), "met"
        )
        self.assertEqual(
            self.one("speed: remaps", replay("a", "speed", reserved=1, moves=9, late_moves=1)),
            "missed",
        )

    def test_threads_are_compared_with_one_where_the_machine_gives_two(self):
        for ours, given, verdict in (
            (17, 199, "missed"),
            (18, 199, "met"),
            (18, 150, "met"),
            (17, 150, "n/a: the machine gives 1.50"),
        ):
            lines = [
                f"threads\town streams, hot pair\t{peer}\t{count}\t{rate}"
                for peer, count, rate in (
                    ("streampool, magazines", 1, 10),
                    ("streampool, magazines", 2, ours),
                    (NOBODY, 1, 100),
                    (NOBODY, 2, given),
                )
            ]
            self.assertEqual(self.one("two threads", *lines), verdict)

    def test_tails_and_records_have_bounds(self):
        self.assertEqual(
            self.one("p99.9", micro("churn, 64 live", ASYNC, p50=10, p99_9=401)), "missed"
        )
        self.assertEqual(
            self.one("host records", replay("a", "tight", reserved=1000, records=2)), "missed"
        )


class TablesTest(unittest.TestCase):
    def test_more_than_the_mode_may_is_bold(self):
        figures = Figures(
            [
                replay("a.sync", "balanced", reserved=1063 * MIB, capacity=1010 * MIB),
                replay("a.sync", "speed", reserved=1063 * MIB),
            ]
        )
        text = "\n".join(tables.density(figures))
        self.assertIn("| **1.063** | 1.063 |", text)
        self.assertIn("| 1.010 |", text)

    def test_every_line_of_a_table_has_as_many_cells(self):
        lines = [
            micro("churn, 64 live", ASYNC, p50=10, records=1, pool=100),
            replay("a.sync", "balanced", reserved=1),
            replay("b.async", "balanced", reserved=1),
            replay("a.sync", "balanced, 512 B", reserved=1),
            f"threads\tx\t{NOBODY}\t1\tn/a",
        ]
        printed = tables.everything(Figures(lines), True)
        self.assertGreater(sum(line.startswith("|---") for line in printed), 8)
        for before, after in zip(printed, printed[1:]):
            if before.startswith("|") and after.startswith("|"):
                self.assertEqual(before.count("|"), after.count("|"), after)

    def test_a_line_of_another_shape_is_refused(self):
        with self.assertRaises(ValueError):
            Figures(["micro\tchurn, 64 live\tsomebody\t1"])


if __name__ == "__main__":
    unittest.main()
