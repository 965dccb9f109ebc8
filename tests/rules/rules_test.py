#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rules test -- check_rules.py sees each thing that can be wrong, and nothing else

    rules_test.py [unittest options]

A small tree with a table of three rules, in which nothing is wrong; each test spoils one thing
and expects the complaint about exactly that.
"""

import os
import shutil
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import check_rules  # pylint: disable=wrong-import-position

HEAD = "# a remark\nids: A1-A2 B1-B1\n\n"
GOOD = HEAD + (
    "A1  zero is refused\n"
    "    tests/model/pool.c zero\n"
    "    tests/e2e/more.py test_zero\n\n"
    "A2  so is one | too many\n"
    "    tests/model/pool.c stats.one\n"
    "    tests/conformance/memory.c memory.one\n"
    "    otherwise: with another code\n\n"
    "B1  all of it\n"
    "    tests/e2e/matrix.py all_of_it\n"
    "    tests/property/meson.build property walk\n"
)
TREE = {
    "tests/model/pool.c": "Test(pool, zero)\n{\n}\nTest(pool, one)\n{\n}\n"
    "Test(stats, one,\n     .init = begin)\n{\n}\n/* Test(pool, two) */\n"
    "ParameterizedTest(bool *old, pool, given)\n{\n}\n/*\nTest(pool, three)\n*/\n",
    "tests/model/unbuilt.c": "Test(pool, zero)\n{\n}\n",
    "tests/model/meson.build": "names = [\n  'pool',\n]\n",
    "tests/conformance/memory.c": '        {"memory.one", one, 0, NULL},\n',
    "tests/conformance/meson.build": "  'memory.c',\n",
    "tests/e2e/more.py": "class More:\n    def test_zero(self):\n        pass\n",
    "tests/e2e/matrix.py": "def all_of_it():\n    pass\n\ndef idle():\n    pass\n\ndef help(x):\n    pass\n",
    "tests/e2e/run.py": "@case\ndef exports():\n    pass\n\ndef helper():\n    pass\n",
    "tests/e2e/guards.py": "def main():\n    for suite in (orders, waits):\n        suite()\n",
    "tests/e2e/meson.build": "files('more.py')\n['run.py', 'guards.py']\n    'all_of_it',\n",
    "tests/sim_driver/test_pool.c": "Test(pool, plain)\n{\n}\n",
    "tests/sim_driver/meson.build": "foreach name : ['pool']\n",
    "tests/property/meson.build": "  test('property walk ' + part, walk)\n  test('twice', py)\n",
    "tests/notes.txt": "zero\n",
}


class Rules(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        for path, text in TREE.items():
            self.write(path, text)
        self.write_table(GOOD)

    def write(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as target:
            target.write(text)

    def write_table(self, text):
        """The table, and the page as it should be."""
        self.write(check_rules.TABLE, text)
        self.write(check_rules.PAGE, check_rules.page(check_rules.Table(text)))

    def expect(self, *complaints):
        found = list(check_rules.checks(self.root))
        self.assertEqual(len(found), len(complaints), found)
        for complaint, line in zip(complaints, found):
            self.assertIn(complaint, line)

    def expect_of(self, old, new, *complaints):
        """What is said when `old` in the table is `new`?"""
        self.assertIn(old, GOOD)
        self.write_table(GOOD.replace(old, new))
        self.expect(*complaints)

    # what is well

    def test_nothing_is_said_where_nothing_is_wrong(self):
        self.expect()

    def test_the_page_counts_and_shows_every_rule(self):
        page = check_rules.page(check_rules.Table(GOOD))
        self.assertIn("3 rules: 3 are held by a test, none pending, none missing. 1 are met", page)
        self.assertIn("| A1 | zero is refused | `model/pool.c` `zero`<br>`e2e/more.py` `test_zero`", page)
        self.assertIn("| so is one \\| too many |", page)
        self.assertIn("| with another code |", page)

    def test_a_parameterized_test_is_one(self):
        self.expect_of("pool.c zero", "pool.c given")

    def test_a_case_and_a_suite_are_tests(self):
        self.expect_of("more.py test_zero", "run.py exports")
        self.expect_of("more.py test_zero", "guards.py waits")

    def test_a_file_may_be_built_by_a_part_of_its_name(self):
        self.expect_of("model/pool.c zero", "sim_driver/test_pool.c plain")

    # tests

    def test_a_test_that_is_not_there(self):
        self.expect_of("pool.c zero", "pool.c zer", "rules.txt:4: A1: tests/model/pool.c has no test zer")

    def test_a_test_in_a_remark(self):
        self.expect_of("pool.c zero", "pool.c two", "has no test two")
        self.expect_of("pool.c zero", "pool.c three", "has no test three")

    def test_a_test_of_another_suite(self):
        self.expect_of("stats.one", "other.one", "has no test other.one")

    def test_a_name_that_two_suites_have(self):
        self.expect_of("stats.one", "one", "A2: tests/model/pool.c has 2 tests one: say of which suite")

    def test_a_file_that_is_not_there(self):
        self.expect_of("model/pool.c zero", "model/heap.c zero", "A1: there is no tests/model/heap.c")

    def test_a_file_that_nobody_builds(self):
        self.expect_of("pool.c zero", "unbuilt.c zero", "unbuilt.c: no meson.build has it")

    def test_a_file_without_tests(self):
        self.expect_of("model/pool.c zero", "notes.txt zero", "notes.txt is nothing that has tests")

    def test_a_method_that_is_not_there(self):
        self.expect_of("test_zero", "test_one", "more.py has no test test_one")
        self.expect_of("more.py test_zero", "run.py helper", "run.py has no test helper")
        self.expect_of("more.py test_zero", "guards.py main", "guards.py has no test main")

    def test_a_case_that_is_not_there(self):
        self.expect_of("memory.one", "memory.two", "memory.c has no test memory.two")

    def test_a_suite_that_is_not_there_or_not_run(self):
        self.expect_of("all_of_it", "some_of_it", "matrix.py has no test some_of_it")
        self.expect_of("all_of_it", "help", "matrix.py has no test help")
        self.expect_of("all_of_it", "idle", "matrix.py: no meson.build has idle")

    def test_a_program_that_is_no_test(self):
        self.expect_of("property walk", "property run", "meson.build has no test property run")

    def test_a_rule_without_a_test(self):
        self.expect_of("    tests/model/pool.c stats.one\n    tests/conformance/memory.c memory.one\n", "",
                       "rules.txt:8: A2 has no test")

    # ids

    def test_a_rule_that_is_missing(self):
        self.expect_of("A1-A2", "A1-A3", "A3 is missing")
        page = check_rules.page(check_rules.Table(GOOD.replace("A1-A2", "A1-A3")))
        self.assertIn("4 rules: 3 are held by a test, none pending, 1 missing", page)

    def test_a_rule_that_nobody_asks_for(self):
        self.expect_of("A1-A2", "A1-A1", "rules.txt:8: A2 is none of the ids")

    def test_a_rule_that_is_there_twice(self):
        self.expect_of("B1  all", "A1  all", "A1 is in line 4, too", "B1 is missing")

    def test_rules_in_another_order(self):
        self.expect_of("A1-A2 B1-B1", "B1-B1 A1-A2", "not in the order of their ids")

    def test_a_head_without_ids(self):
        self.expect_of("ids: A1-A2 B1-B1\n", "", "A1 is none", "A2 is none", "B1 is none", "says no ids")

    def test_a_range_that_is_none(self):
        self.expect_of("A1-A2 B1-B1", "A1-A2 B1-B1 C3", "rules.txt:2: no range of ids: C3")

    # lines

    def test_a_line_that_is_neither(self):
        self.expect_of("# a remark", "a remark", "rules.txt:1: neither a rule nor a part of one: a remark")

    def test_a_part_of_no_rule(self):
        self.expect_of("# a remark", "  a remark", "rules.txt:1: belongs to no rule")

    def test_a_test_without_a_name(self):
        self.expect_of("pool.c zero", "pool.c", "rules.txt:5: a test has a file and a name: tests/model/pool.c")

    # pending

    def pending(self, table):
        start = table.index("    tests/e2e/matrix.py")
        return table[:start] + "    pending: branch\n"

    def test_a_pending_rule_where_none_may_be(self):
        self.write_table(self.pending(GOOD))
        self.expect("rules.txt:13: B1 is pending, and nothing may be")

    def test_a_pending_rule_where_it_may_be_is_counted_and_shown(self):
        table = "allow pending\n" + self.pending(GOOD)
        self.write_table(table)
        self.expect()
        page = check_rules.page(check_rules.Table(table))
        self.assertIn("3 rules: 2 are held by a test, 1 pending, none missing", page)
        self.assertIn("**pending**: branch", page)

    def test_a_pending_rule_with_a_test(self):
        self.write_table("allow pending\n" + GOOD + "    pending: branch\n")
        self.expect("B1 has a test and is pending")

    def test_leave_to_be_pending_that_nobody_needs(self):
        self.write_table("allow pending\n" + GOOD)
        self.expect("nothing is pending: take `allow pending` out")

    # files

    def test_a_page_that_is_out_of_date(self):
        self.write(check_rules.PAGE, check_rules.page(check_rules.Table(GOOD)) + "\n")
        self.expect("tests/rules/README.md is out of date")

    def test_no_page(self):
        os.remove(os.path.join(self.root, check_rules.PAGE))
        self.expect("tests/rules/README.md is out of date")

    def test_no_table(self):
        os.remove(os.path.join(self.root, check_rules.TABLE))
        self.expect("there is no tests/rules/rules.txt")


if __name__ == "__main__":
    unittest.main()
