#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GPU bench tables test -- medians, ratios and goals are what they are said to be"""

import unittest

import bench_rows as rows
import bench_tables as tables
import bench_watch as watch

MLP = next(row for row in rows.ROWS if row.name == "mlp")
RESNET = next(row for row in rows.ROWS if row.name == "resnet50")


def cell(*rates, mib=100.0, checksum="1", trouble=None):
    return {"rates": list(rates), "peak_mib": mib, "checksum": checksum, "trouble": trouble}


def torch(**cells):
    """A row's result: default at 100 a second, the others slower, unless said otherwise."""
    known = {
        "default": cell(100, 100, 100, mib=200.0),
        "no cache": cell(50, 50, 50),
        "cudaMallocAsync": cell(90, 90, 90, mib=120.0),
        "expandable": cell(95, 95, 95, mib=150.0),
        "no cache + shim": cell(110, 110, 110),
        "async + shim": cell(100, 100, 100),
    }
    return {**known, **{name.replace("_", " "): value for name, value in cells.items()}}


def with_shim(*rates, **known):
    result = torch()
    result["no cache + shim"] = cell(*rates, **known)
    return result


class RatiosTest(unittest.TestCase):
    def test_a_ratio_is_the_median_of_the_ratios_of_each_repetition(self):
        # The machine was faster and slower in between: the ratio of the medians is 1.04.
        result = with_shim(204, 103, 156)
        result["default"] = cell(200, 100, 150)
        seen = tables.judge(MLP, result, "no cache + shim")
        self.assertEqual(seen["ratios"], [1.02, 1.03, 1.04])
        self.assertEqual(seen["speed"], 1.03)

    def test_the_best_of_the_others_is_never_a_shim(self):
        result = torch(async_shim=cell(500))
        result["async + shim"] = cell(500)
        self.assertEqual(tables.judge(MLP, result, "no cache + shim")["best"], "default")
        result["cudaMallocAsync"] = cell(101, 101, 101)
        self.assertEqual(tables.judge(MLP, result, "no cache + shim")["best"], "cudaMallocAsync")

    def test_a_repetition_that_one_lacks_is_left_out(self):
        self.assertEqual(tables.paired([2, 4, 6], [1, 2]), [2, 2])
        self.assertIsNone(tables.median([]))

    def test_what_failed_is_not_the_best(self):
        result = with_shim(110)
        result["default"] = cell(trouble="ended with 1")
        self.assertEqual(tables.judge(MLP, result, "no cache + shim")["best"], "expandable")


class GoalsTest(unittest.TestCase):
    def test_the_host_bound_must_gain_and_others_must_not_lose(self):
        for rate, host, device in ((106, True, True), (104, False, True), (99, False, False)):
            result = with_shim(rate)
            self.assertEqual(tables.judge(MLP, result, "no cache + shim")["speed_met"], host)
            self.assertEqual(tables.judge(RESNET, result, "no cache + shim")["speed_met"], device)

    def test_memory_is_compared_with_the_bare_driver(self):
        for mib, met in ((99.0, True), (100.0, True), (101.0, False)):
            result = with_shim(110, mib=mib)
            self.assertEqual(tables.judge(MLP, result, "no cache + shim")["memory_met"], met)

    def test_memory_that_was_not_measured_is_not_judged(self):
        seen = tables.judge(MLP, with_shim(110, mib=None), "no cache + shim")
        self.assertIsNone(seen["memory"])
        self.assertIsNone(seen["memory_met"])

    def test_goals_of_single_calls(self):
        for goal, bare, shim, ratio, met in (
            ("<= 60", 60000, 60, None, True),
            ("<= 60", 60000, 60.1, None, False),
            (">= 100", 0.27, 99, None, False),
            ("<= bare + 5", 3300, 3305, None, True),
            ("<= bare + 5", 3300, 3306, None, False),
            ("<= bare + 5", None, 3306, None, None),
            (">= 98 % of bare", 1000, 979, 0.979, False),
            (">= 98 % of bare", 1000, 981, 0.981, True),
            ("<= 60", 60000, None, None, None),
            ("", 1, 1, 1, None),
        ):
            self.assertEqual(tables.within(goal, bare, shim, ratio), met, (goal, shim))

    def test_every_goal_can_be_read(self):
        for figure in rows.MICRO:
            tables.within(figure.goal, 1, 1, 1)


class ChecksumsTest(unittest.TestCase):
    def same(self, ours, **others):
        result = with_shim(110, checksum=ours)
        for name, value in others.items():
            result[name.replace("_", " ")]["checksum"] = value
        return tables.judge(MLP, result, "no cache + shim")["same"]

    def test_equal_and_different(self):
        self.assertIs(self.same("1"), True)
        self.assertIs(self.same("2"), False)

    def test_none_is_not_equal(self):
        self.assertIsNone(self.same(None))

    def test_where_the_others_do_not_agree_the_same_settings_count(self):
        self.assertIs(self.same("1", default="3"), True)
        self.assertIsNone(self.same("2", default="3"))


class TablesTest(unittest.TestCase):
    def test_every_line_has_as_many_cells_as_the_head(self):
        seen = {"pairs": 1000, "calls": {"cuLaunchKernel": 1000, "cuEventRecord": 2}}
        lines = tables.everything({
            "workloads": {"mlp": with_shim(100, mib=102.0), "jax": {
                "default": cell(1), "no cache": cell(1), "no cache + shim": cell(2)}},
            "micro": {"pair.sync": {"bare": [60000, 61000], "shim": [50, 55]}},
            "calls": {"source": "CUPTI", "phases": {"pair.sync": {"bare": seen, "shim": seen}}},
            "startup": {"/bin/true": {"bare": [1.0, 1.2], "shim": [1.1, 1.3]}},
        })  # fmt: skip
        width = None
        for line in lines:
            if not line.startswith("|"):
                width = None
                continue
            width = width or line.count("|")
            self.assertEqual(line.count("|"), width, line)
        text = "\n".join(lines)
        for part in ("(reason?)", "**missed**", "met", "cuEventRecord 2000", "| 0.1 |"):
            self.assertIn(part, text)

    def test_the_programs_own_launches_are_no_calls_of_the_allocator(self):
        counts = tables.per_million({"pairs": 500, "calls": {"cuLaunchKernel": 500}})
        self.assertEqual(counts, {})
        counts = tables.per_million({"pairs": 500, "calls": {"cuLaunchKernel": 501}})
        self.assertEqual(counts, {"cuLaunchKernel": 2000})

    def test_numbers_have_three_digits_or_none_after_the_point(self):
        for value, text in ((None, "n/a"), (0, "0"), (0.1234, "0.123"), (62.345, "62.3"), (60000, "60000")):
            self.assertEqual(tables.number(value), text)


class WatchingTest(unittest.TestCase):
    RESULT = {
        "bare": {"rates": [100, 50, 80]},
        "shim": {"rates": [125, 62.5, 40]},
        "Python stacks": {"rates": [80, 40, 64]},
        "memcheck --leak-check full": {"rates": [4]},
        "initcheck": {"rates": [], "trouble": "no answer in 45 s"},
    }

    def cell(self, name):
        return watch.time_cell(self.RESULT, name)

    def test_a_factor_is_of_times_and_paired(self):
        self.assertEqual(self.cell("shim"), "0.80")
        self.assertEqual(self.cell("Python stacks"), "1.25 **missed**")

    def test_a_single_run_is_compared_with_the_median(self):
        self.assertEqual(self.cell("memcheck --leak-check full"), "20")

    def test_what_was_not_measured_says_why(self):
        self.assertEqual(self.cell("initcheck"), "no answer in 45 s")
        self.assertEqual(self.cell("everything"), "n/a")

    def test_nothing_is_found_only_where_there_is_a_report(self):
        clean = {"finding_counts": {"double_free": 0}, "leaks": {"places": []}}
        leak = {"kind": "device", "count": 2, "bytes": 8}
        bad = {"finding_counts": {"double_free": 3}, "leaks": {"places": [leak]}}
        self.assertEqual(watch.found([]), "no report")
        self.assertEqual(watch.found([clean]), "nothing")
        self.assertEqual(watch.found([clean, bad]), "3 double_free, 2 leaked, device")

    def test_the_sanitizers_own_words(self):
        log = "========= LEAK SUMMARY: 96 bytes leaked in 2 allocations\n========= ERROR SUMMARY: 5 errors\n"
        self.assertEqual(watch.said(log), "5 errors, of these 2 leaks")
        self.assertEqual(watch.said("process didn't terminate successfully"),
                         "no summary, did not end well")  # fmt: skip


if __name__ == "__main__":
    unittest.main()
