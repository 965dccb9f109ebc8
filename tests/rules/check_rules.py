#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check rules -- every rule of the design has a test, and the test is there

    check_rules.py ROOT            complains of what is wrong, exits with 1 then
    check_rules.py --write ROOT    writes tests/rules/README.md anew

tests/rules/rules.txt has one entry a rule. Its head says which there are:

    ids: A1-A53 B1-B54        letters with their numbers; each has one entry
    allow pending             entries may be pending; a complaint once none is

An entry is a line that begins with the id, and indented lines:

    A20  a request for no bytes is refused, and nothing is counted
        tests/model/ladder.c zero_and_overflow_are_invalid
        otherwise: the reason why this is not what the design proposes, or by which code
        pending: the branch that brings it

A test is named by its file and, in that file,

    a C file             NAME, or SUITE.NAME where two suites have one, of Test(SUITE, NAME);
                         or a case of the conformance program, as its table calls it
    a Python file        a method test_...; a case of the routes; a suite of matrix.py; or a
                         function that main() calls one by one, in `for suite in (one, two):`
    a meson.build        test('NAME', with what is before a `+` for NAME; for programs that are
                         one test as a whole

and its file has to be in a meson.build, or it would not run. `checks()` is for the test of this.
"""

import argparse
import os
import re
import sys

TABLE = "tests/rules/rules.txt"
PAGE = "tests/rules/README.md"

RANGE = re.compile(r"([A-Z])1-\1([1-9]\d*)")
ENTRY = re.compile(r"([A-Z][1-9]\d*)  (\S.*)")
CRITERION = re.compile(r"^(?:Test\(|ParameterizedTest\([^,)]+, )(\w+),\s+(\w+)[,)]", re.M)
SECTIONS = {
    "A": "Streams, allocations, frees, pools and their figures",
    "B": "Generations, uses, budgets, observers, guards",
    "C": "Layouts, persistent memory, plans",
    "D": "Kinds of memory, and what programs do with it",
    "E": "The contract of the driver",
}


class Rule:
    """One entry: where it stands, what it says, and who holds it."""

    def __init__(self, rule, title, number):
        self.rule, self.title, self.number = rule, title, number
        self.tests, self.otherwise, self.pending = [], [], None


class Table:
    """rules.txt, as far as it could be read; `wrong` says what could not."""

    def __init__(self, text):
        self.ids, self.rules, self.wrong, self.may_be_pending = [], [], [], False
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip() and not line.startswith("#"):
                complaint = self.read(line, number)
                if complaint:
                    self.wrong.append(f"{TABLE}:{number}: {complaint}")

    def read(self, line, number):
        entry = ENTRY.fullmatch(line)
        if entry:
            self.rules.append(Rule(entry[1], entry[2], number))
            return None
        if line.startswith(" "):
            return self.read_detail(line.strip()) if self.rules else "belongs to no rule"
        if line == "allow pending":
            self.may_be_pending = True
            return None
        if line.startswith("ids: "):
            return self.read_ids(line[5:].split())
        return f"neither a rule nor a part of one: {line}"

    def read_ids(self, ranges):
        for text in ranges:
            match = RANGE.fullmatch(text)
            if not match:
                return f"no range of ids: {text}"
            self.ids += [f"{match[1]}{i}" for i in range(1, int(match[2]) + 1)]
        return None

    def read_detail(self, text):
        rule = self.rules[-1]
        if text.startswith("otherwise: "):
            rule.otherwise.append(text[11:])
        elif text.startswith("pending: "):
            rule.pending = text[9:]
        elif " " in text:
            rule.tests.append(tuple(text.split(" ", 1)))
        else:
            return f"a test has a file and a name: {text}"
        return None


def read(root, path):
    try:
        with open(os.path.join(root, path), encoding="utf-8") as source:
            return source.read()
    except OSError:
        return None


# tests: are they there?


def c_tests(path, text):
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    names = []
    for suite, name in CRITERION.findall(text):
        names += [name, f"{suite}.{name}"]
    if path.startswith("tests/conformance/"):
        names += re.findall(r'\{"([a-z]+\.\w+)", \w+, ', re.sub(r",\s+", ", ", text))
    return names


def python_tests(path, text):
    names = re.findall(r"^    def (test_\w+)\(self", text, re.M)
    names += re.findall(r"^@case\ndef (\w+)\(\):", text, re.M)
    if os.path.basename(path) == "matrix.py":
        names += re.findall(r"^def (\w+)\(\):", text, re.M)
    for suites in re.findall(r"^    for (?:suite|test) in \(([\w, ]+)\):$", text, re.M):
        names += suites.split(", ")
    return names


def meson_tests(_path, text):
    calls = re.findall(r"^ *test\('([^']+)'( \+)?", text, re.M)
    return [name.rstrip(" -") if more else name for name, more in calls]


def reader_of(path):
    if os.path.basename(path) == "meson.build":
        return meson_tests
    return {".c": c_tests, ".py": python_tests}.get(os.path.splitext(path)[1])


def file_words(name):
    """How a meson.build may call a file: lists leave out what all of their files have in common."""
    stem = name[:-2] if name.endswith(".c") else name
    return [name, stem, stem[5:]] if stem.startswith("test_") else [name, stem]


def is_built(root, path, name):
    """Does the meson.build next to the file, or one above, know it? A suite of matrix.py is named
    there itself."""
    words = [name] if os.path.basename(path) == "matrix.py" else file_words(os.path.basename(path))
    folder = os.path.dirname(path)
    while folder:
        text = read(root, folder + "/meson.build") or ""
        if any(re.search(rf"['/]{re.escape(word)}'", text) for word in words):
            return True
        folder = os.path.dirname(folder)
    return False


def check_test(root, path, name):
    """What is wrong with the test, or None."""
    text, reader = read(root, path), reader_of(path)
    if text is None:
        return f"there is no {path}"
    if reader is None:
        return f"{path} is nothing that has tests"
    found = reader(path, text).count(name)
    if not found:
        return f"{path} has no test {name}"
    if found > 1:
        return f"{path} has {found} tests {name}: say of which suite"
    if reader is not meson_tests and not is_built(root, path, name):
        return f"{path}: no meson.build has {name if path.endswith('matrix.py') else 'it'}"
    return None


# the table


def check_ids(table):
    seen = {}
    for rule in table.rules:
        where = f"{TABLE}:{rule.number}"
        if rule.rule not in table.ids:
            yield f"{where}: {rule.rule} is none of the ids"
        if rule.rule in seen:
            yield f"{where}: {rule.rule} is in line {seen[rule.rule]}, too"
        seen.setdefault(rule.rule, rule.number)
    for rule in table.ids:
        if rule not in seen:
            yield f"{TABLE}: {rule} is missing"
    order = [rule.rule for rule in table.rules]
    if not table.ids:
        yield f"{TABLE}: the head says no ids"
    elif sorted(order) == sorted(table.ids) and order != table.ids:
        yield f"{TABLE}: the rules are not in the order of their ids"


def check_rule(root, table, rule):
    if rule.pending and not table.may_be_pending:
        yield f"{rule.rule} is pending, and nothing may be"
    if rule.pending and rule.tests:
        yield f"{rule.rule} has a test and is pending: one of them is wrong"
    if not rule.pending and not rule.tests:
        yield f"{rule.rule} has no test"
    for path, name in rule.tests:
        complaint = check_test(root, path, name)
        if complaint:
            yield f"{rule.rule}: {complaint}"


def checks(root):
    """What is wrong with the table, the tests it names and the page."""
    text = read(root, TABLE)
    if text is None:
        yield f"there is no {TABLE}"
        return
    table = Table(text)
    yield from table.wrong
    yield from check_ids(table)
    for rule in table.rules:
        for complaint in check_rule(root, table, rule):
            yield f"{TABLE}:{rule.number}: {complaint}"
    if table.may_be_pending and not any(rule.pending for rule in table.rules):
        yield f"{TABLE}: nothing is pending: take `allow pending` out"
    if read(root, PAGE) != page(table):
        yield f"{PAGE} is out of date: {os.path.basename(__file__)} --write writes it"


# the page


def row(rule):
    tests = "<br>".join(f"`{path[6:]}` `{name}`" for path, name in rule.tests)
    if rule.pending:
        tests = f"**pending**: {rule.pending}"
    title = rule.title.replace("|", "\\|")
    otherwise = " ".join(rule.otherwise).replace("|", "\\|")
    return f"| {rule.rule} | {title} | {tests} | {otherwise} |\n"


def summary(table):
    pending = sum(1 for rule in table.rules if rule.pending)
    held = sum(1 for rule in table.rules if rule.tests and not rule.pending)
    otherwise = sum(1 for rule in table.rules if rule.otherwise)
    missing = len(set(table.ids) - {rule.rule for rule in table.rules if rule.tests or rule.pending})
    return (
        f"{len(table.ids)} rules: {held} are held by a test, {pending or 'none'} pending, "
        f"{missing or 'none'} missing. {otherwise} are met otherwise than was proposed.\n"
    )


def page(table):
    text = (
        "# Rules\n\nOne row for each rule of the systems that this project grew from, and of the driver, with the\n"
        "tests that fail if it is broken. Written by `check_rules.py --write` from `rules.txt`; the test\n"
        "`rules` fails when a rule, a test or this page is behind. Files are those below `tests/`.\n\n"
    )
    text += summary(table)
    letters = list(dict.fromkeys(rule.rule[0] for rule in table.rules))
    for letter in letters:
        text += f"\n## {letter}: {SECTIONS.get(letter, 'more')}\n\n"
        text += "| rule | in a few words | held by | met otherwise, because |\n|---|---|---|---|\n"
        text += "".join(row(rule) for rule in table.rules if rule.rule[0] == letter)
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--write", action="store_true", help="write the page anew")
    parser.add_argument("root")
    options = parser.parse_args()
    if options.write:
        table = Table(read(options.root, TABLE))
        with open(os.path.join(options.root, PAGE), "w", encoding="utf-8") as target:
            target.write(page(table))
    complaints = list(checks(options.root))
    print("\n".join(complaints) if complaints else summary(Table(read(options.root, TABLE))), end="")
    if complaints:
        print()
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
