#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check report -- is the JSON form what its schema says, and does it add up?

    check_report.py MAKE_REPORT SCHEMA     write reports, check them
    check_report.py --file REPORT SCHEMA   check a report that is there

Knows the words of JSON Schema that report.schema.json uses, and refuses others,
so nothing in the schema goes unread.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

TYPES = {
    "object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "null": type(None),
}  # fmt: skip
WORDS = {
    "$schema", "$defs", "$ref", "title", "type", "enum", "pattern", "minimum", "properties",
    "required", "additionalProperties", "items",
}  # fmt: skip
USES = {"use_after_free", "out_of_bounds", "use_before_alloc", "race", "overlap"}
UNSURE = {"leak", "argument-after-free"}  # warnings in SARIF
ORDER = {"use_before_alloc", "race", "free_before_use", "free_before_alloc", "sync_free"}


def is_of(value, name):
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, TYPES[name])


def problems(value, schema, root, where):
    """What is wrong with `value`, a line each."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    if set(schema) - WORDS:
        raise SystemExit(f"{where}: the schema says {set(schema) - WORDS}, which is not known here")
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if not any(is_of(value, name) for name in types):
        yield f"{where}: {json.dumps(value)[:60]} is not {' or '.join(types)}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: {value!r} is none of {schema['enum']}"
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        yield f"{where}: {value!r} does not look like {schema['pattern']}"
    if "minimum" in schema and value is not None and value < schema["minimum"]:
        yield f"{where}: {value} is below {schema['minimum']}"
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from problems(item, schema["items"], root, f"{where}[{index}]")
    if isinstance(value, dict):
        yield from object_problems(value, schema, root, where)


def object_problems(value, schema, root, where):
    known = schema.get("properties", {})
    other = schema.get("additionalProperties", False)
    for name in schema.get("required", []):
        if name not in value:
            yield f"{where}: {name} is missing"
    for name, item in value.items():
        if name in known or other:
            yield from problems(item, known.get(name, other), root, f"{where}.{name}")
        else:
            yield f"{where}: {name} is in no schema"


def sizes(report):
    """What a survey says of the sizes of live blocks must agree with itself."""
    for row in report["pools"]:
        live = row["survey"]["live"] if row["survey"] else None
        if live and (len(live["buckets"]), sum(live["buckets"])) != (32, live["count"]):
            yield f"pools: sizes of {live['count']} blocks are {live['buckets']}"
        if live and not live["smallest"] <= live["median"] <= live["p90"] <= live["p99"] <= live["largest"]:
            yield f"pools: sizes are not in order: {live}"


def sums(report):
    """Figures that must agree with each other."""
    leaks = report["leaks"]
    if leaks["count"] != sum(place["count"] for place in leaks["places"]):
        yield "leaks: the places do not add up to the count"
    if leaks["bytes"] != sum(place["bytes"] for place in leaks["places"]):
        yield "leaks: the places do not add up to the bytes"
    held = sum(row["bytes"] for row in report["memory"] if row["kind"] not in ("imported", "shared", "mapped"))
    told = leaks["bytes"] + report["suppressed"]["bytes"] + sum(row["bytes"] for row in report["library_leaks"])
    if told != held:
        yield f"leaks: {told} bytes, also of libraries and suppressed, but {held} are held"
    for kind, count in report["finding_counts"].items():
        listed = sum(row["times"] for row in report["findings"] if row["kind"] == kind)
        if listed != count and not report["findings_unlisted"]:
            yield f"findings: {listed} times {kind} listed, {count} counted"
    saved = report["saved"]
    if saved["ns"] != sum(cost["calls"] * cost["ns"] for cost in saved["costs"]):
        yield "saved: calls times costs is not the time"
    for row in report["findings"]:
        use = row["use"]
        argument = row["argument"]
        is_seen_before = argument is not None or row["kind"] in USES | ORDER
        if (use is None) != (row["kind"] not in USES) or (argument is None) != (row["kind"] != "argument_after_free"):
            yield f"findings: {row['kind']} is of use {use} and argument {argument}"
        if is_seen_before != (row["result"] is None):
            yield f"findings: {row['kind']} has result {row['result']}"
        if use and ("outside" in use, "beyond" in use) != (row["kind"] == "out_of_bounds",) * 2:
            yield f"findings: {row['kind']} is outside by {use}"
        order = row["order"]
        if (order is None) != (row["kind"] not in ORDER):
            yield f"findings: {row['kind']} is of order {order}"
        given = use and use["access"] == "argument"
        if order and order["proven"] == (given or order["earlier"]["kind"] == "argument"):
            yield f"findings: {row['kind']} is proven by an argument"
        other = row["reused"]
        if other and (row["kind"] not in ("double_free", "after_context") or (other["freed_by"] is None) != (other["freed_at"] is None)):
            yield f"findings: {row['kind']} is reused by {other}"
        if (row["overlap"] is None) != (row["kind"] != "overlap"):
            yield f"findings: {row['kind']} has overlap {row['overlap']}"
        if (row["overrun"] is None) != (row["kind"] != "overrun"):
            yield f"findings: {row['kind']} is overrun by {row['overrun']}"
    short = report["shortage"]
    if short and short["complete"] and short["held_bytes"] != sum(row["bytes"] for row in short["kinds"]):
        yield "shortage: the kinds do not add up to what is held"
    for row in report["faults"]:
        if row["failed"] > row["matched"]:
            yield f"faults: {row['rule']} failed more often than it matched"
    for row in report["memory"]:
        if row["bytes"] > row["bytes_high"] or row["count"] > row["count_high"]:
            yield f"memory: {row['kind']} is above its peak"


def check(path, schema):
    with open(path, encoding="utf-8") as source:
        report = json.load(source)
    return report, [*problems(report, schema, schema, "report"), *sums(report), *sizes(report)]


def made(program, what, folder, suffix=".json", **variables):
    """Run `program` and return where its report is, or is not."""
    path = os.path.join(folder, "rep%%ort.%p.%r" + suffix)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STREAMPOOL_")}
    environment.update(variables, STREAMPOOL_REPORT=path, PMI_RANK="7")
    process = subprocess.Popen([program, what], env=environment)
    status = process.wait()
    return status, os.path.join(folder, f"rep%ort.{process.pid}.7{suffix}")


def expectations(program, schema, folder):
    status, path = made(program, "rich", folder)
    report, wrong = check(path, schema)
    yield from wrong
    if status != 1 or report["finding_counts"] != {
        "use_after_free": 1, "out_of_bounds": 1, "use_before_alloc": 0, "race": 1, "overlap": 1, "overrun": 1, "free_before_use": 1, "free_before_alloc": 0,
        "sync_free": 1, "double_free": 2, "wrong_kind": 1, "interior": 1, "after_context": 0, "foreign": 9, "argument_after_free": 2,
    }:  # fmt: skip
        yield f"rich: exit {status}, {report['finding_counts']}"
    if [row["kind"] for row in report["findings"][:9]] != [
        "use_after_free", "out_of_bounds", "race", "overlap", "overrun", "free_before_use", "sync_free", "double_free", "wrong_kind",
    ]:  # fmt: skip
        yield "rich: the worst finding is not first"
    lives = [(row["allocation"]["bytes"], row["freed_by"], row["reused"]["bytes"], row["reused"]["freed_by"])
             for row in report["findings"] if row["reused"]]  # fmt: skip
    if lives != [(1 << 19, "cuMemFreeAsync", 1 << 20, "cuMemFree")]:
        yield f"rich: reused are {lives}"
    kernels = [row["argument"]["kernel"] for row in report["findings"] if row["argument"]]
    if kernels != ["void fill<float>(float*, unsigned long)", None]:
        yield f"rich: {kernels}"
    if report["leaks"]["places"][0]["kind"] != "pinned" or report["leaks"]["count"] != 34:
        yield f"rich: {report['leaks']}"
    if report["process"]["rank"] != "7" or report["process"]["program"] != os.path.basename(program):
        yield f"rich: {report['process']}"
    if report["saved"]["calls"] != 14400 or report["saved"]["calls_instead"] != 37:
        yield f"rich: {report['saved']}"
    if [row["survey"] is None for row in report["pools"]] != [False, True, False]:
        yield f"rich: {report['pools']}"
    short = report["shortage"]
    if [row["bytes"] for row in short["places"][:3]] != [210 << 16, 3 << 20, 3 << 20] or len(short["places"]) != 5:
        yield f"rich: {short}"
    if short["held_count"] != 33 or short["limit"] is not None or short["by_limit"]:
        yield f"rich: {short}"
    if [(row["rule"], row["error"], row["seed"], row["matched"], row["failed"]) for row in report["faults"]] != [
        ("nth=2,error=999", 999, None, 3, 1), ("kind=array", 2, None, 0, 0), ('p=1,seed=9,site="app"', 2, 9, 0, 0),
    ]:  # fmt: skip
        yield f"rich: {report['faults']}"
    site = report["findings"][0]["site"]
    if os.path.basename(site["path"]) != os.path.basename(program):
        yield f"rich: the call came from {site}"

    status, path = made(program, "rich", folder, STREAMPOOL_SYMBOLS="0")
    report, wrong = check(path, schema)
    yield from wrong
    if not any(row["argument"] and row["argument"]["kernel"] == "_Z4fillIfEvPT_m" for row in report["findings"]):
        yield "STREAMPOOL_SYMBOLS=0 named a kernel"
    for place in report["leaks"]["places"]:
        site = place["site"]
        if site and (site["function"], site["source"], site["line"], site["inlined_into"]) != (None, None, None, []):
            yield f"STREAMPOOL_SYMBOLS=0 named {site}"

    status, path = made(program, "clean", folder)
    report, wrong = check(path, schema)
    yield from wrong
    if status != 0 or report["findings"] or report["leaks"]["count"] or report["shortage"] or report["faults"]:
        yield f"clean: exit {status}, {report['findings']}, {report['leaks']}"

    status, path = made(program, "clean", folder, ".txt", STREAMPOOL_FORMAT="json")
    yield from check(path, schema)[1]

    status, path = made(program, "empty", folder)
    if os.path.exists(path):
        yield "empty: nothing was intercepted, and there is a report"

    status, path = made(program, "rich", folder, ".json", STREAMPOOL_FORMAT="text")
    with open(path, encoding="utf-8") as source:
        if not source.read().startswith("\nstreampool "):
            yield "STREAMPOOL_FORMAT=text did not write text"


URI = re.compile(r"^([A-Za-z0-9/._~+-]|%[0-9A-F]{2})+$")


def locations(value):
    """Every physical location in a result, wherever it is."""
    if isinstance(value, dict):
        if "physicalLocation" in value:
            yield value["physicalLocation"]
        for each in value.values():
            yield from locations(each)
    elif isinstance(value, list):
        for each in value:
            yield from locations(each)


def sarif_problems(path, report):
    """What is wrong with a report as SARIF, beside the JSON form of an equal run."""
    with open(path, encoding="utf-8") as source:
        lines = source.read().splitlines()
    log = json.loads("\n".join(lines))
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    if log["version"] != "2.1.0" or run["tool"]["driver"]["name"] != "streampool":
        yield f"sarif: {log['version']}, {run['tool']['driver']['name']}"
    counts = dict.fromkeys(rules, 0)
    for result in run["results"]:
        counts[result["ruleId"]] += result["occurrenceCount"]
        if rules[result["ruleIndex"]] != result["ruleId"]:
            yield f"sarif: rule {result['ruleIndex']} is not {result['ruleId']}"
        if result["level"] != ("warning" if result["ruleId"] in UNSURE else "error"):
            yield f"sarif: {result['ruleId']} is a {result['level']}"
        if len(result["locations"]) != 1 or not result["message"]["text"]:
            yield f"sarif: {result}"
        for place in locations(result):
            if not URI.match(place["artifactLocation"]["uri"]):
                yield f"sarif: {place['artifactLocation']['uri']} is no URI"
    wanted = {name.replace("_", "-"): count for name, count in report["finding_counts"].items()}
    wanted["leak"] = report["leaks"]["count"]
    if counts != wanted:
        yield f"sarif: {counts} and not {wanted}"
    if sum('"ruleId"' in line for line in lines) != len(run["results"]):
        yield "sarif: a result is not on a line of its own"
    told = [place["message"]["text"] for result in run["results"] if result["ruleId"] == "double-free" for place in result["relatedLocations"]]
    if told != ["allocated here", "freed before here", "its address had been allocated here", "and freed here"]:
        yield f"sarif: of the double free it is told {told}"
    if [result["ruleId"] for result in run["results"]][0] != "use-after-free":
        yield "sarif: the worst finding is not first"


def forms(program, folder):
    """Several forms in one run, by their names."""
    names = [os.path.join(folder, "a b." + suffix) for suffix in ("txt", "json", "sarif")]
    environment = {**os.environ, "STREAMPOOL_REPORT": ",".join([names[0], "none", *names[1:]])}
    subprocess.run([program, "rich"], env=environment, check=False, stderr=subprocess.DEVNULL)
    with open(names[0], encoding="utf-8") as text, open(names[1], encoding="utf-8") as source:
        if not text.read().startswith("\nstreampool "):
            yield "several names: the first is no text"
        yield from sarif_problems(names[2], json.load(source))
    if os.path.exists("none"):
        yield "several names: none is a file"


def self_check(schema, report):
    """A checker that accepts everything would be worth nothing."""
    worst, *others = report["findings"]
    spoilt = [
        {**report, "version": 2},
        {**report, "more": 1},
        {name: value for name, value in report.items() if name != "pools"},
        {**report, "unwritten": -1},
        {**report, "unwritten": True},
        {**report, "findings": [{**report["findings"][0], "address": "12"}]},
        {**report, "findings": [{**report["findings"][0], "site": {"path": None, "offset": "0x1", "symbol": None}}]},
        {**report, "findings": [{**report["findings"][0], "site": {**report["findings"][0]["site"], "line": 0}}]},
        {**report, "leaks": {**report["leaks"], "bytes": 1}},
        {**report, "shortage": {**report["shortage"], "held_bytes": 1}},
        {**report, "shortage": {**report["shortage"], "limit": "none"}},
        {**report, "faults": [{**report["faults"][0], "failed": 4}]},
        {**report, "faults": [{**report["faults"][0], "seed": "9"}]},
        {**report, "finding_counts": {**report["finding_counts"], "foreign": 1}},
        {**report, "findings": [{**worst, "use": None}, *others]},
        {**report, "findings": [{**worst, "result": 1}, *others]},
        {**report, "findings": [{**worst, "use": {**worst["use"], "beyond": 1}}, *others]},
        {**report, "findings": [{**worst, "reused": report["findings"][7]["reused"]}, *others]},
        {**report, "findings": [{**row, "reused": row["reused"] and {**row["reused"], "freed_at": None}} for row in report["findings"]]},
        {**report, "findings": [{**row, "overlap": None} for row in report["findings"]]},
        {**report, "findings": [{**worst, "overlap": {"source": "0x1", "shared": "0x2"}}, *others]},
        {**report, "findings": [{**worst, "overrun": {"outside": 1}}, *others]},
        {**report, "findings": [{**worst, "argument": {"number": 1, "kernel": "fill"}}, *others]},
        {**report, "findings": [{**row, "argument": None} for row in report["findings"]]},
        {**report, "findings": [worst, others[0], {**others[1], "order": None}, *others[2:]]},
        {**report, "findings": [worst, others[0], {**others[1], "order": {**others[1]["order"], "proven": False}}, *others[2:]]},
    ]
    for index, each in enumerate(spoilt):
        if not [*problems(each, schema, schema, "report"), *sums(each)]:
            yield f"the checker accepts spoilt report {index}"


def main():
    with open(sys.argv[-1], encoding="utf-8") as source:
        schema = json.load(source)
    if sys.argv[1] == "--file":
        wrong = check(sys.argv[2], schema)[1]
    else:
        with tempfile.TemporaryDirectory() as folder:
            wrong = list(expectations(sys.argv[1], schema, folder))
            wrong += forms(sys.argv[1], folder)
            wrong += self_check(schema, check(made(sys.argv[1], "rich", folder)[1], schema)[0])
    print("\n".join(wrong) if wrong else "the report is what its schema says")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
